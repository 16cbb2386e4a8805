"""Carrying out relinks in the sandbox in which the program was built, right after its build."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders import layouts
from ensign.builders.layouts import LinkCommand, Relinks
from ensign.host.cache import key_of
from ensign.host.files import file_sha256, remove_tree
from ensign.host.foreign_files import copy_foreign
from ensign.host.processes import Outcome
from ensign.model.calls import Call
from ensign.proof.archives import intermediate
from ensign.proof.link import TreePlace
from ensign.proof.loaded_bytes import read_artifact

FOLDER = "layouts"
_LARGEST_BYTES = 2**36
# mold 1.10 goes round for ever on some orders; a link that ends takes about as long as the first.
_TIMES_ITS_LINK, _LEAST_NS = 10, 10_000_000_000


@dataclass(frozen=True, slots=True)
class RelinkContext:
    """Where relinks are made, of files at these paths in the tree of `place`, the program first.

    `run` runs one command in the sandbox, for so many nanoseconds at most where it is told a
    number; `scratch` is a folder of the sandbox's own, as a pair: its path here, and as commands in
    the sandbox see it.
    """

    run: Callable[[tuple[str, ...], int | None], Outcome]
    calls: Sequence[Call]
    place: TreePlace
    scratch: tuple[Path, str]
    files: tuple[str, ...]

    def of(self, number: int) -> RelinkContext:
        """The context of one of the files, with a scratch folder of its own."""
        here, seen = self.scratch[0] / str(number), f"{self.scratch[1]}/{number}"
        here.mkdir(parents=True)
        return replace(self, scratch=(here, seen), files=(self.files[number],))


@dataclass(frozen=True, slots=True)
class Relinked:
    """What came of it: hashes of the loadable bytes of each distinct relink, in order.

    A relink is of all files that can be relinked; `obstacles` names the others, and says why.
    `notes` are what is less than was asked for.
    """

    hashes: tuple[str, ...] = ()
    kind: str = ""
    obstacles: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


class _CannotError(Exception):
    pass


class _EndlessError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes relinks of one file; `kind` and `notes` say what they are."""

    make: Callable[[int], Path]
    kind: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _FoundLayouts:
    """Hashes of what differs, in order, and how many links did not end."""

    hashes: tuple[str, ...]
    endless: int

    def notes(self, asked: Relinks) -> tuple[str, ...]:
        many, few = len(asked.seeds), len(self.hashes)
        said = () if few == many else (f"{many} relinks gave only {few} different programs",)
        if self.endless:
            said = (*said, f"the linker did not end in {self.endless} of {many} orders")
        return said


def make_relinks(asked: Relinks, context: RelinkContext, folder: Path) -> Relinked:
    """Make the relinks, as `folder/NUMBER/PATH`. What cannot be relinked is no failure."""
    return _of_all(asked, context, folder, lambda one: _relinker(asked, one))


def make_bolted(
    asked: Relinks, argv_of: Mapping[str, tuple[str, ...]], context: RelinkContext, folder: Path
) -> Relinked:
    """As `make_relinks`, by BOLT's calls, while the files that they read are in the tree."""

    def maker(one: RelinkContext) -> _Maker:
        def make(seed: int) -> Path:
            call = layouts.bolt_again(argv_of[one.files[0]], seed, f"{one.scratch[1]}/relinked")
            outcome = one.run(call, None)
            if not outcome.ok:
                raise _CannotError(f"BOLT, run again, {outcome.describe()}")
            return one.scratch[0] / "relinked"

        if one.files[0] not in argv_of:
            raise _CannotError("BOLT did not lay it out")
        less = "BOLT can only order hot functions at random, not mildly"
        notes = (less,) if asked.how == "order" else ()
        return _Maker(make, "hot functions in random order by BOLT", notes)

    return _of_all(asked, context, folder, maker)


def _of_all(
    asked: Relinks, context: RelinkContext, folder: Path, maker: Callable[[RelinkContext], _Maker]
) -> Relinked:
    """Relinks of all files that can be relinked, each by the same seeds."""
    makers: dict[str, _Maker] = {}
    obstacles: dict[str, str] = {}
    for number, name in enumerate(context.files):
        try:
            makers[name] = maker(context.of(number))
        except _CannotError as error:
            obstacles[name] = str(error)
    found = None
    while makers and found is None:
        try:
            found = _distinct(asked, makers, folder)
        except _FileError as error:
            obstacles[error.name] = str(error)
            del makers[error.name]
            remove_tree(folder)
    if found is None:
        return Relinked(obstacles=tuple(obstacles.items()))
    said = {
        note if len(context.files) == 1 else f"{name}: {note}": None
        for name, each in makers.items()
        for note in each.notes
    }
    notes = (*said, *found.notes(asked))
    if not found.hashes:
        return Relinked(obstacles=(*obstacles.items(), (context.files[0], notes[-1])))
    kinds = "; ".join(dict.fromkeys(each.kind for each in makers.values()))
    return Relinked(found.hashes, kinds, tuple(obstacles.items()), notes)


def _relinker(asked: Relinks, context: RelinkContext) -> _Maker:
    name = context.files[0]
    built = context.place.tree / name
    if not context.calls:
        raise _CannotError("the calls of its build were not recorded")
    digest = file_sha256(built) if built.is_file() else ""
    call = layouts.link_call(context.calls, f"{context.place.seen_as}/{name}", digest)
    if call is None:
        raise _CannotError("no recorded call of a compiler linked it")
    link = layouts.link_of(call)
    obstacle = layouts.obstacle(link, asked)
    if obstacle:
        raise _CannotError(obstacle)
    if link.lto:
        link = _generated(link, asked, context, built)
    else:
        _run(context, link, layouts.again(link, f"{context.scratch[1]}/again"))
        _check_same(context.scratch[0] / "again", built)
    limit_ns = max(_LEAST_NS, _TIMES_ITS_LINK * call.wall_ns)
    return _Maker(
        lambda seed: _relink(link, asked, seed, context, limit_ns),
        layouts.kind_of_relink(link, asked),
        layouts.notes_on(link, asked),
    )


class _FileError(Exception):
    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


def _distinct(asked: Relinks, makers: Mapping[str, _Maker], folder: Path) -> _FoundLayouts:
    """Keep what differs. `_FileError` names the file that cannot be relinked after all."""
    found: dict[str, None] = {}
    endless = 0
    for seed in asked.seeds:
        try:
            made = {name: _made(name, each, seed) for name, each in makers.items()}
        except _EndlessError:
            endless += 1
            continue
        facts = {name: read_artifact(path) for name, path in made.items()}
        hashes = [each.loadable_sha256 for each in facts.values() if each is not None]
        digest = hashes[0] if len(makers) == 1 and hashes else key_of(hashes)
        if len(hashes) == len(makers) and digest not in found:
            for name, path in made.items():
                target = folder / str(len(found)) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                copy_foreign(path, target, _LARGEST_BYTES)
            found[digest] = None
        for path in made.values():
            path.unlink()
    return _FoundLayouts(tuple(found), endless)


def _made(name: str, maker: _Maker, seed: int) -> Path:
    try:
        return maker.make(seed)
    except _CannotError as error:
        raise _FileError(name, str(error)) from None


def _check_same(again: Path, built: Path) -> None:
    """What was changed after its link is not what a relink gives."""
    here, there = read_artifact(built), read_artifact(again)
    again.unlink()
    if here is None or there is None or here.loadable_sha256 != there.loadable_sha256:
        raise _CannotError(
            "its recorded link, repeated, gives a different program: it was changed after the link"
        )


def _generated(
    link: LinkCommand, asked: Relinks, context: RelinkContext, built: Path
) -> LinkCommand:
    """The link after code generation, which is done once for all relinks."""
    here, seen = context.scratch[0] / "lto", f"{context.scratch[1]}/lto"
    here.mkdir()
    _run(context, link, layouts.code_generation(link, seen, gcc=asked.gcc))
    _check_same(here / "program", built)
    pattern = layouts.generated_pattern(gcc=asked.gcc)
    objects = []
    for name in layouts.in_number_order([path.name for path in here.glob(pattern)]):
        made = f"{seen}/{name}"
        if asked.gcc:
            made = f"{seen}/{name.removesuffix('.s')}.o"
            _run(context, link, layouts.assembling(link, f"{seen}/{name}", made))
        objects.append(made)
    intermediate = frozenset(word for word in link.units if _is_intermediate(word, link, context))
    if not objects or not intermediate:
        raise _CannotError("its LTO link left no generated code to link again")
    return layouts.with_generated(link, intermediate, objects)


def _is_intermediate(word: str, link: LinkCommand, context: RelinkContext) -> bool:
    path = context.place.find(word, link.cwd)
    return path.is_file() and bool(intermediate(path.read_bytes()).language)


def _relink(
    link: LinkCommand, asked: Relinks, seed: int, context: RelinkContext, limit_ns: int
) -> Path:
    here, seen = context.scratch
    padding = f"{seen}/padding.o"
    if not layouts.shuffles(link, asked):
        (here / "padding.c").write_text(layouts.padding_source(seed))
        _run(context, link, layouts.assembling(link, f"{seen}/padding.c", padding))
    _run(context, link, layouts.relink(link, asked, seed, f"{seen}/relinked", padding), limit_ns)
    return here / "relinked"


def _run(
    context: RelinkContext, link: LinkCommand, argv: tuple[str, ...], limit_ns: int | None = None
) -> None:
    outcome = context.run(("env", "-C", link.cwd, *argv), limit_ns)
    if limit_ns is not None and outcome.reason == "deadline":
        raise _EndlessError
    if not outcome.ok:
        raise _CannotError(f"its link, repeated, {outcome.describe()}")
