"""Carrying out relinks in the sandbox in which the program was built, right after its build."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.builders import layouts
from ensign.builders.layouts import LinkCommand, Relinks
from ensign.builders.link_members import (
    CannotError,
    EndlessError,
    Named,
    Pulled,
    RelinkContext,
    build_archives,
    is_rust_standard,
    linked,
    objects_kept,
    pulled_again,
    read_linker_words,
    repeat,
    same_program,
    used_variables,
    with_named_members,
)
from ensign.builders.section_padding import write_padded_copies
from ensign.host.cache import key_of
from ensign.host.files import file_sha256, remove_tree
from ensign.host.foreign_files import copy_foreign
from ensign.host.processes import Outcome
from ensign.model.calls import AskedCall, Call
from ensign.proof.archives import intermediate
from ensign.proof.link import MAP
from ensign.proof.loaded_bytes import Artifact, read_artifact
from ensign.proof.order_dependence import order_groups

FOLDER = "layouts"
_LARGEST_BYTES = 2**36
# mold 1.10 goes round for ever on some orders; a link that ends takes about as long as the first.
_TIMES_ITS_LINK, _LEAST_NS = 10, 10_000_000_000


@dataclass(frozen=True, slots=True)
class Relinked:
    """Outcome: hashes of the loadable bytes of each distinct relink, in order.

    A relink is of all files that can be relinked; `obstacles` names the others, and says why.
    `notes` are what is less than was asked for.
    """

    hashes: tuple[str, ...] = ()
    kind: str = ""
    obstacles: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


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
        problems = () if few == many else (f"{many} relinks gave only {few} different programs",)
        if self.endless:
            problems = (*problems, f"the linker did not end in {self.endless} of {many} orders")
        return problems


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
                raise CannotError(f"BOLT, run again, {outcome.describe()}")
            return one.scratch[0] / "relinked"

        if one.files[0] not in argv_of:
            raise CannotError("BOLT did not lay it out")
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
        except CannotError as error:
            obstacles[name] = str(error)
    found_layouts = None
    while makers and found_layouts is None:
        try:
            found_layouts = _distinct(asked, makers, folder)
        except _FileError as error:
            obstacles[error.name] = str(error)
            del makers[error.name]
            remove_tree(folder)
    if found_layouts is None:
        return Relinked(obstacles=tuple(obstacles.items()))
    own_notes = {
        note if len(context.files) == 1 else f"{name}: {note}": None
        for name, each in makers.items()
        for note in each.notes
    }
    notes = (*own_notes, *found_layouts.notes(asked))
    if not found_layouts.hashes:
        return Relinked(obstacles=(*obstacles.items(), (context.files[0], notes[-1])))
    kinds = "; ".join(dict.fromkeys(each.kind for each in makers.values()))
    return Relinked(found_layouts.hashes, kinds, tuple(obstacles.items()), notes)


def _relinker(asked: Relinks, context: RelinkContext) -> _Maker:
    name = context.files[0]
    built = context.place.tree / name
    if not context.calls:
        raise CannotError("the calls of its build were not recorded")
    digest = file_sha256(built) if built.is_file() else ""
    call = layouts.link_call(context.calls, f"{context.place.seen_as}/{name}", digest)
    if call is None:
        raise CannotError("no recorded call of a compiler linked it")
    if call.is_rust:
        call, context = _linker_of_rust(call, context)
    link = layouts.link_of(call)
    obstacle = layouts.obstacle(link, asked)
    if obstacle:
        raise CannotError(obstacle)
    output = "a" if call.line.output in (None, "a.out") else call.line.output
    link = _compiled(link, f"{output}-" if asked.gcc else "", context)
    if link.lto:
        link = _generated(link, asked, context, built)
        first = linked(link, context)
    else:
        first = linked(link, context)
        _check_same(first.artifact, read_artifact(built))
    named = Named(link)
    if not layouts.shuffles(link, asked):
        named = with_named_members(link, build_archives(call, context.place), first, context)
        if not named.link.units:
            raise CannotError("its link line names no object")
        named = replace(named, link=_with_orders(named.link, context))
        _write_paddings(link, context)
    limit_ns = max(_LEAST_NS, _TIMES_ITS_LINK * call.wall_ns)
    return _Maker(
        _relinks_by_seed(named, asked, context, limit_ns),
        layouts.kind_of_relink(named.link, asked),
        (*layouts.notes_on(named.link, asked), *named.notes),
    )


def _compiled(link: LinkCommand, dump_prefix: str, context: RelinkContext) -> LinkCommand:
    """The link with its sources as objects, which are compiled once for all relinks."""
    seen = context.scratch[1]
    objects = {}
    for at in link.unit_places:
        if link.words[at] in link.sources:
            objects[at] = f"{seen}/source{at}.o"
            repeat(context, link, layouts.compiled_source(link, at, objects[at], dump_prefix))
    return layouts.with_objects(link, objects) if objects else link


def _linker_of_rust(call: Call, context: RelinkContext) -> tuple[Call, RelinkContext]:
    """The linker's call of a call of rustc, and where it can be repeated.

    In there rustc finds its linker past the recorder: what it does is none of the build's.
    """
    here, seen = context.scratch[0] / "rust", f"{context.scratch[1]}/rust"
    here.mkdir()

    def run(argv: tuple[str, ...], limit_ns: int | None) -> Outcome:
        return context.run(("env", f"PATH={context.path}", *argv), limit_ns)

    past = replace(context, run=run)
    variables = used_variables(call, context.place)
    again = (*("env", "-C", call.cwd), *variables, *objects_kept(call, seen))
    outcome = past.run(again, None)
    words = read_linker_words(here, context.recorder)
    if not outcome.ok or not words or context.parse is None:
        raise CannotError(f"the call of rustc that linked it, repeated, {outcome.describe()}")
    return context.parse(AskedCall("cc", words, call.cwd)), past


def _with_orders(link: LinkCommand, context: RelinkContext) -> LinkCommand:
    """With what must keep its order, and copies of what has places within."""
    here, seen = context.scratch
    objects = {name: _found(name, link, context) for name in link.units}
    folders = (here / "padded", f"{seen}/padded")
    archives = _archives(link, context)
    copies = {} if link.folds_equal else write_padded_copies(objects, archives, folders)
    return replace(link, in_order=order_groups(objects), padded=copies)


def _found(name: str, link: LinkCommand, context: RelinkContext) -> Path:
    """A file of the link, here: of the scratch folder, or of the tree."""
    here, seen = context.scratch
    if name.startswith(f"{seen}/"):
        return here / name[len(seen) + 1 :]
    return context.place.find(name, link.cwd)


def _archives(link: LinkCommand, context: RelinkContext) -> dict[str, Path]:
    """Archives of the build and of Rust's standard library, by the words that name them."""
    tree = context.place.tree.resolve()
    words = (link.words[at] for at in link.file_places)
    paths = {
        word: _original(word, link, context) for word in words if word.endswith((".a", ".rlib"))
    }
    return {
        word: path
        for word, path in paths.items()
        if (path.is_relative_to(tree) or is_rust_standard(path)) and path.is_file()
    }


class _FileError(Exception):
    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


def _distinct(asked: Relinks, makers: Mapping[str, _Maker], folder: Path) -> _FoundLayouts:
    """Keep what differs. `_FileError` names the file that cannot be relinked after all."""
    digests: dict[str, None] = {}
    endless = 0
    for seed in asked.seeds:
        try:
            made = {name: _made(name, maker, seed) for name, maker in makers.items()}
        except EndlessError:
            endless += 1
            continue
        facts = {name: read_artifact(path) for name, path in made.items()}
        hashes = [fact.loadable_sha256 for fact in facts.values() if fact is not None]
        digest = hashes[0] if len(makers) == 1 and hashes else key_of(hashes)
        if len(hashes) == len(makers) and digest not in digests:
            for name, path in made.items():
                target = folder / str(len(digests)) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                copy_foreign(path, target, _LARGEST_BYTES)
            digests[digest] = None
        for path in made.values():
            path.unlink()
    return _FoundLayouts(tuple(digests), endless)


def _made(name: str, maker: _Maker, seed: int) -> Path:
    try:
        return maker.make(seed)
    except CannotError as error:
        raise _FileError(name, str(error)) from None


def _check_same(again: Artifact | None, built: Artifact | None) -> None:
    """Refuses what was changed after its link: a relink does not give that."""
    if not same_program(again, built):
        raise CannotError(
            "its recorded link, repeated, gives a different program: it was changed after the link"
        )


def _generated(
    link: LinkCommand, asked: Relinks, context: RelinkContext, built: Path
) -> LinkCommand:
    """The link after code generation, which is done once for all relinks."""
    here, seen = context.scratch[0] / "lto", f"{context.scratch[1]}/lto"
    here.mkdir()
    repeat(context, link, layouts.code_generation(link, seen, gcc=asked.gcc))
    _check_same(read_artifact(here / "program"), read_artifact(built))
    pattern = layouts.generated_pattern(gcc=asked.gcc)
    objects = []
    for name in layouts.in_number_order([path.name for path in here.glob(pattern)]):
        made = f"{seen}/{name}"
        if asked.gcc:
            made = f"{seen}/{name.removesuffix('.s')}.o"
            assembly = layouts.compiling(link, [f"{seen}/{name}"])
            repeat(context, link, (*assembly, "-o", made))
        objects.append(made)
    intermediate = frozenset(word for word in link.units if _is_intermediate(word, link, context))
    if not objects or not intermediate:
        raise CannotError("its LTO link left no generated code to link again")
    return layouts.with_generated(link, intermediate, objects)


def _is_intermediate(word: str, link: LinkCommand, context: RelinkContext) -> bool:
    path = _found(word, link, context)
    return path.is_file() and bool(intermediate(path.read_bytes()).language)


def _write_paddings(link: LinkCommand, context: RelinkContext) -> None:
    here, seen = context.scratch
    sources = [f"padding{number}.c" for number in range(layouts.PADDINGS)]
    for number, name in enumerate(sources):
        (here / name).write_text(layouts.padding_source(number, retained=link.drops_unused))
    repeat(context, replace(link, cwd=seen), layouts.compiling(link, sources))


def _relinks_by_seed(
    named: Named, asked: Relinks, context: RelinkContext, limit_ns: int
) -> Callable[[int], Path]:
    (here, seen), link = context.scratch, named.link
    paddings = [f"{seen}/padding{number}.o" for number in range(layouts.PADDINGS)]
    units = {(_original(unit, link, context), "") for unit in link.units}
    originals = {
        Path(copy).resolve(): _original(name, link, context)
        for name, copies in link.padded.items()
        for copy in copies
    }

    def members(pulled: Pulled) -> frozenset[tuple[Path, str]]:
        """Layout by the archives whose copies were linked, without the link's own objects."""
        members = ((originals.get(path, path), member) for path, member in pulled)
        return frozenset(members) - units

    def make(seed: int) -> Path:
        argv = layouts.relink(link, asked, seed, f"{seen}/relinked", paddings)
        if named.pulled is None:
            repeat(context, link, argv, limit_ns)
        else:
            repeat(context, link, (*argv, f"-Wl,-Map={seen}/{MAP}"), limit_ns)
            if members(pulled_again(link, context)) != named.pulled - units:
                raise CannotError("in another order its link takes other members of archives")
        return here / "relinked"

    return make


def _original(name: str, link: LinkCommand, context: RelinkContext) -> Path:
    return context.place.find(name, link.cwd).resolve()
