"""Members of a build's archives as objects of their own, which a relink can move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ensign.model.calls import Call
from ensign.proof.archives import contents, is_archive
from ensign.proof.bounded_elf import DamagedFile, damage_told
from ensign.proof.link import TreePlace, path_of
from ensign.proof.link_line import files_in_map, members_in_map
from ensign.proof.origins import is_runtime

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
    found: dict[str, BuildArchive] = {}
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
            found.setdefault(word.text, BuildArchive(word.text, path, word.whole))
    return tuple(found.values())


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
    """Whether an archive is of Rust's standard library."""
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
    """What the map calls a member; None where the link did not take it."""
    own, beside = (archive.path, name), ((archive.path.parent / name).resolve(), "")
    if own in found:
        return own
    if beside in found:
        return beside
    return own if archive.whole else None
