"""A link that names members of archives as objects, where that gives the same program."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

from ensign.builders import layouts
from ensign.builders.layouts import LinkCommand
from ensign.host.foreign_files import HostileFileError, read_foreign
from ensign.host.processes import Outcome
from ensign.model.calls import AskedCall, Call
from ensign.proof.archives import contents, is_archive
from ensign.proof.bounded_elf import DamagedFile, damage_told
from ensign.proof.link import MAP, TreePlace, path_of, read_map
from ensign.proof.link_line import files_in_map, members_in_map
from ensign.proof.loaded_bytes import Artifact, read_artifact
from ensign.proof.origins import is_runtime


@dataclass(frozen=True, slots=True)
class RelinkContext:
    """Relinks of files at these paths in the tree of `place`, the program first.

    `run` runs one command in the sandbox, for so many nanoseconds at most where it is told a
    number; `scratch` is a folder of the sandbox's own, as a pair: its path here, and as commands in
    the sandbox see it. `path` has programs as the build finds them without the recorder, whose
    folder is `recorder`; `parse` reads a command line as it does.
    """

    run: Callable[[tuple[str, ...], int | None], Outcome]
    calls: Sequence[Call]
    place: TreePlace
    scratch: tuple[Path, str]
    files: tuple[str, ...]
    path: str = ""
    recorder: str = ""
    parse: Callable[[AskedCall], Call] | None = None

    def of(self, number: int) -> RelinkContext:
        """The context of one of the files, with a scratch folder of its own."""
        here, seen = self.scratch[0] / str(number), f"{self.scratch[1]}/{number}"
        here.mkdir(parents=True)
        return replace(self, scratch=(here, seen), files=(self.files[number],))


class CannotError(Exception):
    """A program that cannot be relinked; the text says why."""


class EndlessError(Exception):
    """A link that did not end in its time."""


def repeat(
    context: RelinkContext, link: LinkCommand, argv: tuple[str, ...], limit_ns: int | None = None
) -> None:
    """Run a command in the folder of the link. CannotError, EndlessError."""
    outcome = context.run(("env", "-C", link.cwd, *argv), limit_ns)
    if limit_ns is not None and outcome.reason == "deadline":
        raise EndlessError
    if not outcome.ok:
        raise CannotError(f"its link, repeated, {outcome.describe()}")


LINK_ARGS = "link-args"
_LONGEST_BYTES = 1 << 24
_ASSIGNED = re.compile(r"[A-Z_]+=.*", re.DOTALL)
_USED = re.compile(r"# env-dep:(\w+)=(.*)")
_EMIT = re.compile(r"--emit=.*")


def objects_kept(call: Call, folder: str) -> tuple[str, ...]:
    """The same call, which leaves objects in `folder`, and the linker's words in its `LINK_ARGS`.

    The program there has the name `program`.
    """
    words = list(call.ran[1:])
    split = {at for at, pair in enumerate(pairwise(words)) if pair[0] == "--emit"}
    kept = [
        word
        for at, word in enumerate(words)
        if at not in split and at - 1 not in split and not _EMIT.fullmatch(word)
    ]
    keep = ("-Csave-temps", f"--print=link-args={folder}/{LINK_ARGS}", "-o", f"{folder}/program")
    return (call.program, *kept, "--emit=link", *keep)


def used_variables(call: Call, place: TreePlace) -> tuple[str, ...]:
    """Variables that Cargo set for the crate and it read (`env!`), by rustc's own list."""
    variables = dict(variable.split("=", 1) for variable in call.variables)
    for output in call.outputs:
        try:
            path = place.find(f"{output.path}.d", call.cwd)
            text = read_foreign(path, _LONGEST_BYTES).decode(errors="replace")
        except HostileFileError:
            continue
        variables.update((name, _unescaped(value)) for name, value in _USED.findall(text))
    return tuple(f"{name}={value}" for name, value in variables.items())


def linker_words(text: str, recorder: str) -> tuple[str, ...]:
    """The linker's call, of rustc's text. One behind the recorder is called by its own name."""
    words = shlex.split(text)
    while words and _ASSIGNED.fullmatch(words[0]):
        del words[0]
    if words and recorder and words[0].startswith(f"{recorder}/"):
        words[0] = PurePosixPath(words[0]).name
    return tuple(words)


def read_linker_words(folder: Path, recorder: str) -> tuple[str, ...]:
    """Words of the linker that the repeated call left; None where nothing is readable."""
    try:
        text = read_foreign(folder / LINK_ARGS, _LONGEST_BYTES).decode()
        return linker_words(text, recorder)
    except (HostileFileError, ValueError):
        return ()


def _unescaped(value: str) -> str:
    return value.replace("\\n", "\n").replace("\\r", "\r").replace("\\\\", "\\")


RUST_STANDARD = "Rust's standard library"
Pulled = Mapping[tuple[Path, str], None]


@dataclass(frozen=True, slots=True)
class BuildArchive:
    """An archive of the build, by the word that names it in the link; `whole`: with all members."""

    word: str
    path: Path
    whole: bool


@dataclass(frozen=True, slots=True)
class NamedMembers:
    """Members of an archive as files: their paths as the link sees them, in its order.

    `taken` are the same as the map had them. There are none where `left` says why.
    """

    archive: BuildArchive
    names: tuple[str, ...] = ()
    taken: frozenset[tuple[Path, str]] = frozenset()
    left: str = ""


def build_archives(call: Call, place: TreePlace) -> tuple[BuildArchive, ...]:
    """The archives of a link that the build made; each once."""
    archives: dict[str, BuildArchive] = {}
    for word in call.line.inputs:
        archive = word.is_library or word.text.endswith(".rlib")
        if not archive or word.text not in call.ran:
            continue
        try:
            with damage_told():
                path = path_of(word, call, place).resolve()
                own = path.is_relative_to(place.tree.resolve()) and is_archive(path)
        except DamagedFile:
            continue
        if own:
            archives.setdefault(word.text, BuildArchive(word.text, path, word.whole))
    return tuple(archives.values())


def pulled(text: str, cwd: str, place: TreePlace) -> Pulled:
    """The members that a link took, by its map, in its order: archives as they are called here.

    A map may name members of thin archives as files: these have an empty name of a member.
    """
    members = ((place.find(path, cwd).resolve(), name) for path, name in members_in_map(text))
    files = (place.find(name, cwd).resolve() for name in files_in_map(text))
    tree = place.tree.resolve()
    own = ((path, "") for path in files if path.is_relative_to(tree))
    return dict.fromkeys((*members, *own))


def is_rust_standard(path: Path) -> bool:
    """True if an archive is of Rust's standard library."""
    return "rustlib" in path.parts


def foreign_archives(found: Pulled, place: TreePlace) -> tuple[str, ...]:
    """Archives that the build did not make, and from which members were taken; no runtimes."""
    tree = place.tree.resolve()
    paths = (path for path, member in found if member and not path.is_relative_to(tree))
    names = (RUST_STANDARD if is_rust_standard(path) else str(path) for path in paths)
    return tuple(name for name in dict.fromkeys(names) if not is_runtime(name))


def written_members(
    archives: Sequence[BuildArchive], found: Pulled, folders: tuple[Path, str]
) -> tuple[NamedMembers, ...]:
    """The members that the link took, each in a file below the first folder.

    The second is what the link calls that folder.
    """
    here, seen = folders
    return tuple(
        _written(archive, found, (here / str(number), f"{seen}/{number}"))
        for number, archive in enumerate(archives)
    )


def _written(archive: BuildArchive, found: Pulled, folders: tuple[Path, str]) -> NamedMembers:
    here, seen = folders
    made: list[tuple[tuple[Path, str], str]] = []
    try:
        counted = Counter(name for name, _ in contents(archive.path))
        for number, (name, content) in enumerate(contents(archive.path)):
            key = _key(archive, name, found)
            if key is None:
                continue
            if counted[name] > 1 and not archive.whole:
                return NamedMembers(archive, left=f"it has several members called {name}")
            file = PurePosixPath(str(number)) / (PurePosixPath(name).name or "member.o")
            (here / file).parent.mkdir(parents=True)
            (here / file).write_bytes(content)
            made.append((key, f"{seen}/{file}"))
    except DamagedFile as error:
        return NamedMembers(archive, left=str(error))
    if not archive.whole:
        places = {key: at for at, key in enumerate(found)}
        made.sort(key=lambda each: places[each[0]])
    taken = frozenset(key for key, _ in made)
    return NamedMembers(archive, tuple(name for _, name in made), taken)


def _key(archive: BuildArchive, name: str, found: Pulled) -> tuple[Path, str] | None:
    """Name of a member in the map; None where the link did not take it."""
    own, beside = (archive.path, name), ((archive.path.parent / name).resolve(), "")
    if own in found:
        return own
    if beside in found:
        return beside
    return own if archive.whole else None


_KEPT = "members of {} keep their {}: {}"
_OTHERWISE = "named as objects, they give a different program"


@dataclass(frozen=True, slots=True)
class Linked:
    """A link done once more: what it made, and the members that it took."""

    artifact: Artifact | None
    pulled: Pulled


@dataclass(frozen=True, slots=True)
class Named:
    """A link that names members of archives; `pulled` are those that it still takes by itself."""

    link: LinkCommand
    pulled: frozenset[tuple[Path, str]] | None = None
    notes: tuple[str, ...] = ()


def linked(link: LinkCommand, context: RelinkContext) -> Linked:
    """Do a link once more, with a map. CannotError."""
    here, seen = context.scratch
    argv = layouts.again(link, f"{seen}/again")
    repeat(context, link, (*argv, f"-Wl,-Map={seen}/{MAP}"))
    made = read_artifact(here / "again")
    (here / "again").unlink()
    return Linked(made, pulled_again(link, context))


def pulled_again(link: LinkCommand, context: RelinkContext) -> Pulled:
    """Members by the map that was written last; it is removed."""
    text = read_map(context.scratch[0])
    if text is None:
        raise CannotError("its link, repeated, writes no map")
    (context.scratch[0] / MAP).unlink()
    return pulled(text, link.cwd, context.place)


def with_named_members(
    link: LinkCommand, archives: Sequence[BuildArchive], first: Linked, context: RelinkContext
) -> Named:
    """Members named as far as that gives the same program: all, else archive by archive."""
    here, seen = context.scratch
    members = written_members(archives, first.pulled, (here / "members", f"{seen}/members"))
    foreign = foreign_archives(first.pulled, context.place)
    notes = [
        *(_kept_foreign(path, seen) for path in foreign),
        *(
            _KEPT.format(named_members.archive.word, "order", named_members.left)
            for named_members in members
            if named_members.left
        ),
    ]
    members = tuple(named_members for named_members in members if named_members.names)
    if not members:
        return Named(link, notes=tuple(notes))
    named = _proven(link, members, first, context)
    if named is None:
        good: list[NamedMembers] = []
        for member in members:
            more = _proven(link, (*good, member), first, context) if len(members) > 1 else None
            if more is None:
                notes.append(_KEPT.format(member.archive.word, "order", _OTHERWISE))
            else:
                good.append(member)
                named = more
    named = named or Named(link)
    return replace(named, notes=tuple(notes))


def _kept_foreign(path: str, scratch: str) -> str:
    """Why such an archive keeps its place; those in the scratch folder rustc wrote itself."""
    if path.startswith(f"{scratch}/"):
        name = path.rpartition("/")[2]
        return _KEPT.format(name, "places", "rustc wrote it for this link alone")
    of = "order" if path == RUST_STANDARD else "places"
    return _KEPT.format(path, of, "the build did not make it")


def _proven(
    link: LinkCommand, members: Sequence[NamedMembers], first: Linked, context: RelinkContext
) -> Named | None:
    """The link that names these members; None where it is another one."""
    words = {named_members.archive.word: named_members.names for named_members in members}
    whole = [named_members.archive.word for named_members in members if named_members.archive.whole]
    named = layouts.with_members(link, words, whole)
    try:
        made = linked(named, context)
    except CannotError:
        return None
    left = frozenset(first.pulled).difference(*(member.taken for member in members))
    same = same_program(made.artifact, first.artifact) and frozenset(made.pulled) == left
    return Named(named, left) if same else None


def same_program(one: Artifact | None, other: Artifact | None) -> bool:
    """True if both are programs, and load the same bytes."""
    return one is not None and other is not None and one.loadable_sha256 == other.loadable_sha256
