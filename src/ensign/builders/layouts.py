"""Links of one program that differ in nothing but where its code lies. Pure.

A relink is the recorded link with its objects in another order and a little padding before them
(`order`), or with every function's section moved by the linker (`shuffle`). Objects change places
only among neighbors: none passes an archive or a library, which would resolve other symbols then.
Members of archives are objects, too, once the link names them.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Literal

from ensign.model.calls import Call, is_object
from ensign.proof.flags import lto_of

How = Literal["order", "shuffle"]

# Words after which the linker sees what follows with other eyes, or which resolve symbols.
_BARRIER = re.compile(r"-(l|Wl,|Xlinker|T)")
_FOR_PADDING = ("-m", "-fcf-protection", "--target=", "-fPIC", "-fPIE", "-fpic", "-fpie")
_LINKER = re.compile(r"-fuse-ld=(?:\S*ld\.)?(\w+)\S*")
# Objects of padding, each twice as large as the one before; up to 4 KiB together.
PADDINGS, _PAD_STEP_BYTES = 8, 16
# Of these, before objects that keep their order: enough for any place within four cache lines.
_BETWEEN = 4
# Sections of functions that a profile called hot, or never run, keep to themselves.
_CLASSES = (
    *(".text.hot.*", ".text.unlikely.*", ".text.[!hu]*"),
    *(".text.h[!o]*", ".text.u[!n]*"),  # functions whose own names begin like these classes
)
# An order by counted calls comes before any shuffle, and is what keeps hot and cold apart.
_UNSORTED = ("-Wl,--no-call-graph-profile-sort", "-Wl,-z,keep-text-section-prefix")


@dataclass(frozen=True, slots=True)
class Relinks:
    """Relinks asked of a stage: one per seed. `profiled` keeps hot and cold code apart.

    `gcc` tells how code is generated at an LTO link.
    """

    how: How
    seeds: tuple[int, ...]
    gcc: bool
    profiled: bool


@dataclass(frozen=True, slots=True)
class LinkCommand:
    """A recorded link, without its output. `words` holds what follows the program's name.

    Of these `file_places` are the files, and `unit_places` the objects and sources among them.
    `sources` names those. `in_order` are groups of units, by name, that keep their order within the
    group; `padded` has copies of units and archives, by name, with padding within them.
    """

    program: str
    cwd: str
    words: tuple[str, ...]
    file_places: tuple[int, ...] = ()
    unit_places: tuple[int, ...] = ()
    sources: tuple[str, ...] = ()
    in_order: tuple[frozenset[str], ...] = ()
    padded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def linker(self) -> str:
        """Name of the linker asked for, `bfd` where none is: that is GCC's own."""
        named = [match[1] for word in self.words if (match := _LINKER.fullmatch(word))]
        return named[-1] if named else "bfd"

    @property
    def lto(self) -> bool:
        """True if code is generated at this link."""
        return lto_of(self.words)

    @property
    def drops_unused(self) -> bool:
        """True if sections that nothing refers to are left out."""
        return any("-gc-sections" in word and "no-gc" not in word for word in self.words)

    @property
    def units(self) -> tuple[str, ...]:
        """Objects and sources, in order; not archives and libraries."""
        return tuple(self.words[at] for at in self.unit_places)

    @property
    def folds_equal(self) -> bool:
        """True if functions of equal code become one: padding would tell them apart."""
        return any("-icf=" in word and "-icf=none" not in word for word in self.words)

    @property
    def movable(self) -> int:
        """Number of units that have a neighbor to change places with."""
        runs = ([self.words[at] for at in run] for run in _runs(self))
        return sum(len(run) for run in runs if len(run) > 1 and not _within(run, self.in_order))


def link_call(calls: Sequence[Call], path: str, sha256: str) -> Call | None:
    """The last successful call of a compiler or rustc that made the file of that path or content.

    Stricter than `proof.read.link_of`, which must do with names where a dry run recorded no files.
    """
    for call in reversed(calls):
        if not (call.is_compiler or call.is_rust) or call.exit != 0:
            continue
        if any(path == made.path or (sha256 and sha256 == made.sha256) for made in call.outputs):
            return call
    return None


def link_of(call: Call) -> LinkCommand:
    """Take a link call apart. Temporary files that it was told to keep are left out."""
    line = call.line
    objects = {link_input.path for link_input in call.inputs if link_input.kind == "object"}

    def whole(word: str) -> str:
        return os.path.normpath(PurePosixPath(call.cwd) / word)

    kept = [
        (word, at in line.files, is_object(word) or word in line.sources or whole(word) in objects)
        for at, word in enumerate(call.ran[1:])
        if at not in line.output_words and not word.startswith("-save-temps")
    ]
    return LinkCommand(
        call.program,
        call.cwd,
        words=tuple(word for word, _, _ in kept),
        file_places=tuple(at for at, (_, is_file, _) in enumerate(kept) if is_file),
        unit_places=tuple(at for at, (_, is_file, unit) in enumerate(kept) if is_file and unit),
        sources=line.sources,
    )


def obstacle(link: LinkCommand, asked: Relinks) -> str:
    """Why this link cannot be done again with other places for the same code; empty if it can."""
    if link.lto and not asked.gcc and link.linker != "lld":
        return f"what the LTO link generates cannot be obtained from {link.linker}"
    return ""


def shuffles(link: LinkCommand, asked: Relinks) -> bool:
    """True if sections will be shuffled; objects change places instead where they cannot be."""
    able = link.linker == "lld" or (link.linker == "mold" and not asked.profiled)
    return asked.how == "shuffle" and able


def code_generation(link: LinkCommand, folder: str, *, gcc: bool) -> tuple[str, ...]:
    """The LTO link once more, leaving generated code in `folder`, as `generated_pattern` says.

    Debug information is left out with GCC: it would refer to objects that are not kept.
    """
    keep = ("-save-temps=obj", "-g0") if gcc else (f"-Wl,--lto-obj-path={folder}/lto.o",)
    return (link.program, *link.words, *keep, "-o", f"{folder}/program")


def generated_pattern(*, gcc: bool) -> str:
    """Glob of what `code_generation` leaves: assembly of GCC, objects of Clang."""
    return "program.ltrans*.ltrans.s" if gcc else "lto.o*"


def in_number_order(names: Sequence[str]) -> list[str]:
    """Names sorted by the numbers in them: `lto.o10` after `lto.o2`."""
    return sorted(names, key=lambda name: [int(part) for part in re.findall(r"\d+", name)])


def compiling(link: LinkCommand, sources: Sequence[str]) -> tuple[str, ...]:
    """Compile or assemble files of our own as the program's link would."""
    flags = tuple(word for word in link.words if word.startswith(_FOR_PADDING))
    return (link.program, *flags, "-fno-lto", "-g0", "-c", *sources)


def compiled_source(link: LinkCommand, at: int, output: str, dump_prefix: str) -> tuple[str, ...]:
    """Compile one source of a link alone; by its prefix GCC finds the profile of that link."""
    words = (word for place, word in enumerate(link.words) if place not in link.file_places)
    # As it was spelled: profiles and __FILE__ name it so.
    source = link.words[at]
    path = PurePosixPath(source)
    named = ("-dumpdir", dump_prefix, "-dumpbase", path.name, "-dumpbase-ext", path.suffix)
    return (link.program, *words, *(named if dump_prefix else ()), "-c", source, "-o", output)


def with_objects(link: LinkCommand, objects: Mapping[int, str]) -> LinkCommand:
    """The link of these objects instead of its sources, by their places."""
    changed = {at: [(name, True, True)] for at, name in objects.items()}
    return replace(_with_words(link, changed), sources=())


def with_generated(
    link: LinkCommand, intermediate: frozenset[str], objects: Sequence[str]
) -> LinkCommand:
    """The link of generated objects, at the place of the first LTO object, instead of these.

    `intermediate` are the words that name LTO objects.
    """
    gone = [at for at in link.unit_places if link.words[at] in intermediate]
    if not gone:
        return link
    made = [(name, True, True) for name in objects]
    return _with_words(
        replace(link, words=(*link.words, "-fno-lto")),
        {at: made if at == gone[0] else [] for at in gone},
    )


def with_members(
    link: LinkCommand, members: Mapping[str, Sequence[str]], whole: Collection[str]
) -> LinkCommand:
    """The link that names members of archives as objects, where the archive stands first.

    Of members it has the names by the words for archives. These stay behind them, save those of
    which all members are taken (`whole`).
    """
    changed = {}
    for word, names in members.items():
        at = link.words.index(word)
        made = [(name, True, True) for name in names]
        old = [] if word in whole else [(word, at in link.file_places, False)]
        changed[at] = [*made, *old]
    return _with_words(link, changed)


def _with_words(
    link: LinkCommand, changed: Mapping[int, Sequence[tuple[str, bool, bool]]]
) -> LinkCommand:
    """The link with other words at some places: each, whether it is a file, and a unit."""
    words = [
        placed
        for at, word in enumerate(link.words)
        for placed in changed.get(at, [(word, at in link.file_places, at in link.unit_places)])
    ]
    return replace(
        link,
        words=tuple(word for word, *_ in words),
        file_places=tuple(at for at, (_, is_file, _) in enumerate(words) if is_file),
        unit_places=tuple(at for at, (_, _, is_unit) in enumerate(words) if is_unit),
    )


def padding_source(number: int, *, retained: bool) -> str:
    """A source whose object is padding alone; each class of code has its own order of sizes.

    Nothing refers to it: where a linker takes away what is unused, it must be `retained`.
    """
    lines, flags = [], "axR" if retained else "ax"
    for section, shift in ((".text.unlikely", 5), (".text.hot", 3), (".text", 0)):
        skip = _PAD_STEP_BYTES << (number + shift) % PADDINGS
        named = rf".section {section}.padding,\"{flags}\",@progbits"
        lines.append(rf"{named}\n\t.skip {skip},0x90\n\t")
    return f'__asm__("{"".join(lines)}");\n'


def relink(
    link: LinkCommand, asked: Relinks, seed: int, output: str, paddings: Sequence[str]
) -> tuple[str, ...]:
    """The command of one relink; `paddings` are objects made from `padding_source`, all of them.

    Some of them come before all objects, and some of the smaller before each that keeps its order.
    Of what has copies one is taken, or itself.
    """
    if shuffles(link, asked):
        return (link.program, *link.words, *_shuffle(link, asked, seed), *_to(link, output))
    words = list(link.words)
    rng = _rng(seed, "order")
    before = {link.unit_places[0]: _some(rng, paddings)}
    for run in _runs(link):
        names = [words[at] for at in run]
        order = rng.sample(names, len(names))
        for group in link.in_order:
            own = iter(name for name in names if name in group)
            order = [next(own) if name in group else name for name in order]
        for at, name in zip(run, order, strict=True):
            words[at] = name
            if any(name in group for group in link.in_order):
                before.setdefault(at, []).extend(_some(rng, paddings[:_BETWEEN]))
    taken = {name: rng.choice((name, *copies)) for name, copies in link.padded.items()}
    laid = (
        placed
        for at, word in enumerate(words)
        for placed in (*before.get(at, ()), taken.get(word, word))
    )
    return (link.program, *laid, *_to(link, output))


def again(link: LinkCommand, output: str) -> tuple[str, ...]:
    """The recorded link with another output, without debug information."""
    return (link.program, *link.words, *_to(link, output))


def bolt_call(commands: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The first command, where it is BOLT that lays out a program by a profile; else nothing."""
    first = commands[0] if commands else ("",)
    is_bolt = first[0].rpartition("/")[2].startswith("llvm-bolt")
    by_profile = any(word.startswith(("-data=", "--data=")) for word in first)
    return first if is_bolt and by_profile else ()


def bolt_again(argv: tuple[str, ...], seed: int, output: str) -> tuple[str, ...]:
    """The same layout by BOLT, with hot functions in a random order; cold ones stay apart."""
    words = []
    rest = iter(argv)
    for word in rest:
        if word == "-o":
            next(rest, None)
        elif not word.lstrip("-").startswith("reorder-functions="):
            words.append(word)
    return (*words, "-reorder-functions=random", f"-bolt-seed={seed}", "-o", output)


def kind_of_relink(link: LinkCommand, asked: Relinks) -> str:
    """Differences between these relinks, in words."""
    if shuffles(link, asked):
        return "shuffled sections, hot and cold apart" if asked.profiled else "shuffled sections"
    return "object order and padding" if link.movable else "padding"


def notes_on(link: LinkCommand, asked: Relinks) -> tuple[str, ...]:
    """Notes on what is less than was asked for."""
    notes = []
    if asked.how == "shuffle" and not shuffles(link, asked):
        notes.append(f"{link.linker} shuffles no sections as needed; objects change places instead")
    if not shuffles(link, asked) and _sorted_by_calls(link, asked):
        notes.append("lld orders hot functions by counted calls, so only the others change places")
    if not shuffles(link, asked) and not link.movable:
        several = len(link.unit_places) > 1
        why = "no two of its objects can swap" if several else "its link has one object alone"
        notes.append(f"{why}, so its relinks differ in padding only")
    return tuple(notes)


def as_inputs(asked: Relinks) -> Mapping[str, object]:
    """Parts of the request that decide bytes, for a stage's key."""
    return {"how": asked.how, "seeds": asked.seeds, "profiled": asked.profiled, "scheme": 7}


def seed_of(variant: str, seed: int, number: int) -> int:
    """Seed of a relink; variants have their own, so that their layouts are independent."""
    return random.Random(f"{variant} {seed} {number}").randrange(1, 2**31)  # noqa: S311


def _to(link: LinkCommand, output: str) -> tuple[str, ...]:
    """Debug information is none of the loaded bytes, and most of what a link writes.

    mold 1.10 would take the names of functions with it.
    """
    return (*([] if link.linker == "mold" else ["-Wl,--strip-debug"]), "-o", output)


def _shuffle(link: LinkCommand, asked: Relinks, seed: int) -> tuple[str, ...]:
    if link.linker == "mold":
        return (f"-Wl,--shuffle-sections={seed}",)
    globs = _CLASSES if asked.profiled else (".text*",)
    places = tuple(f"-Wl,--shuffle-sections={glob}={seed}" for glob in globs)
    return (*_UNSORTED, *places) if _sorted_by_calls(link, asked) else places


def _sorted_by_calls(link: LinkCommand, asked: Relinks) -> bool:
    """True if lld puts functions in order by the calls that Clang's profile counted."""
    return link.linker == "lld" and asked.profiled and not asked.gcc


def _some(rng: random.Random, names: Sequence[str]) -> list[str]:
    return [name for name in names if rng.random() < 1 / 2]


def _rng(seed: int, what: str) -> random.Random:
    return random.Random(f"{what} {seed}")  # noqa: S311  # not for secrets


def _within(run: Sequence[str], groups: Sequence[frozenset[str]]) -> bool:
    """True if all of a run keep one order."""
    return any(group.issuperset(run) for group in groups)


def _runs(link: LinkCommand) -> list[list[int]]:
    """Places of units that nothing separates."""
    runs: list[list[int]] = [[]]
    for at, word in enumerate(link.words):
        if at in link.unit_places:
            runs[-1].append(at)
        elif at in link.file_places or _BARRIER.match(word):
            runs.append([])
    return [run for run in runs if run]
