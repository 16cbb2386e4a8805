"""Files taken from the tree of a build: program, tools, and `build.runtime_files`."""

from __future__ import annotations

import filecmp
import os
import posixpath
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from ensign.builders.stages import Stage
from ensign.host.files import tree_entries
from ensign.host.foreign_files import HostileFileError, copy_foreign, open_foreign
from ensign.model.builds import BuiltFile, MadeLibrary
from ensign.proof.link import TreePlace
from ensign.proof.loaded_bytes import read_built, read_dynamic
from ensign.proof.loader import library_folders

_MOST_LINKS = 40
_LIBRARY = re.compile(r"\.so(\.[0-9A-Za-z_.-]+)?$")
_LONGEST_WRAPPER_BYTES = 100_000
_MOST_BYTES = 2**62


class TakingError(Exception):
    """A file to be taken that is not there, or is no program; the text says so."""


@dataclass(frozen=True, slots=True)
class Taken:
    """`files` are what counts, the program first; `folders` those that a loader must be told of."""

    files: tuple[BuiltFile, ...]
    folders: tuple[str, ...]

    @property
    def others(self) -> tuple[str, ...]:
        """Paths of what is loaded besides the program itself."""
        return tuple(file.path for file in self.files[1:] if file.loaded)


def take(stage: Stage, place: TreePlace, files: Path) -> Taken:
    """Copy what is kept of a tree to the new folder `files`. TakingError.

    Links stay links, and bring what they lead to; a library also brings the links that lead to it.
    """
    taker = _Taker(place, files, stage.disk_bytes)
    taker.bring_named(stage.artifact)
    for pattern in stage.runtime_files:
        if pattern.endswith("/"):
            (files / pattern).mkdir(parents=True, exist_ok=True)
            continue
        matches = sorted(str(path.relative_to(place.tree)) for path in place.tree.glob(pattern))
        if not matches:
            raise TakingError(f"'{pattern}' of 'runtime_files' matches nothing after the build")
        for name in matches:
            taker.bring(name)
    if stage.finds_libraries:
        taker.bring_needed()
    taker.add_names()
    counted = frozenset(taker.brought)
    for _, name in stage.tools:
        taker.bring_named(name)
    taken = _taken(stage.artifact, files, frozenset(taker.brought) - counted)
    if not taken.files or not taken.files[0].loaded:
        raise TakingError(_no_program(stage.artifact, place.tree))
    return taken


def _taken(artifact: str, files: Path, tools: frozenset[str]) -> Taken:
    program = _inside(files / artifact, files)
    taken_files: dict[str, BuiltFile] = {}
    names: dict[str, str] = {}
    for name, path in tree_entries(files):
        real = _inside(path, files)
        if not real or real in tools or not path.is_file():
            continue
        names[name] = real
        if not path.is_symlink():
            taken_files[name] = read_built(path, name)
    ordered = sorted(taken_files.values(), key=lambda file: (file.path != program, file.path))
    read = {file.path: read_dynamic(files / file.path) for file in ordered if file.loaded}
    dynamics = {path: dynamic for path, dynamic in read.items() if dynamic is not None}
    return Taken(tuple(ordered), library_folders(ordered, dynamics, names))


def _inside(path: Path, files: Path) -> str:
    """The file behind a name, relative to `files`; empty where it is not in there."""
    real, root = os.path.realpath(path), os.path.realpath(files)
    return os.path.relpath(real, root) if real.startswith(root + os.sep) else ""


def made_libraries(
    place: TreePlace, source: Path, taken: Iterable[BuiltFile]
) -> tuple[MadeLibrary, ...]:
    """Shared libraries in the tree that came neither with the source nor are taken out of it."""
    kept = {file.path for file in taken}
    return tuple(library for library in _made(place.tree, source) if library.path not in kept)


def _made(tree: Path, source: Path) -> Iterator[MadeLibrary]:
    for name, path in tree_entries(tree):
        if not _LIBRARY.search(name) or path.is_symlink() or not path.is_file():
            continue
        if _is_pristine(path, source / name):
            continue
        dynamic = read_dynamic(path)
        if dynamic is not None and not dynamic.is_program:
            yield MadeLibrary(name, dynamic.soname)


def _is_pristine(path: Path, source: Path) -> bool:
    return source.is_file() and filecmp.cmp(source, path, shallow=False)


@dataclass
class _Taker:
    place: TreePlace
    files: Path
    most_bytes: int
    brought: set[str] = field(default_factory=set)

    def bring(self, name: str) -> str:
        """Copy a file or folder, and what links on its way lead to; its real name.

        Empty where there is none, or where it lies outside the tree.
        """
        real = self._follow(name)
        if not real or not (self.place.tree / real).exists():
            return ""
        if real not in self.brought:
            self.brought.add(real)
            self._copy(real)
        return real

    def bring_named(self, name: str) -> None:
        """As `bring`; TakingError where it is not there."""
        if not self.bring(name):
            tree = self.place.tree
            raise TakingError(f"the build made no '{name}'{_elsewhere(name, tree)}")

    def bring_needed(self) -> None:
        """Bring the libraries of the tree that what was brought asks a loader for, and theirs."""
        by_name: dict[str, str] | None = None
        waiting = deque(sorted(self.brought))
        while waiting:
            dynamic = read_dynamic(self.files / waiting.popleft())
            if dynamic is None or not dynamic.needed:
                continue
            if by_name is None:
                by_name = dict(_libraries_by_name(self.place.tree))
            for asked in dynamic.needed:
                real = by_name.get(asked, "")
                if real and real not in self.brought:
                    self.bring(real)
                    waiting.append(real)

    def add_names(self) -> None:
        """Give libraries the links beside them in the tree, and the name that is asked for."""
        for name in [file for file in sorted(self.brought) if (self.files / file).is_file()]:
            dynamic = read_dynamic(self.files / name)
            if dynamic is None or dynamic.is_program:
                continue
            folder = PurePosixPath(name).parent
            for path in (self.place.tree / folder).iterdir():
                if path.is_symlink() and self._real(str(folder / path.name)) == name:
                    self.bring(str(folder / path.name))
            asked = self.files / folder / dynamic.soname
            if dynamic.soname and "/" not in dynamic.soname and not os.path.lexists(asked):
                asked.symlink_to(PurePosixPath(name).name)

    def _real(self, name: str) -> str:
        path = os.path.realpath(self.place.tree / name)
        root = os.path.realpath(self.place.tree)
        return os.path.relpath(path, root) if path.startswith(root + os.sep) else ""

    def _copy(self, name: str) -> None:
        source, target = self.place.tree / name, self.files / name
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            for path in sorted(source.iterdir()):
                inside = f"{name}/{path.name}"
                if not self.bring(inside) and path.is_symlink():
                    _link(self.files / inside, path.readlink())  # out of the tree, or to nothing
        elif source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                try:
                    copy_foreign(source, target, self.most_bytes)
                except HostileFileError as error:
                    raise TakingError(f"what the build made cannot be kept: {error}") from None

    def _follow(self, name: str) -> str:
        """The name behind all links of a name, which are made anew on the way; empty if outside."""
        waiting, done = deque(PurePosixPath(name).parts), PurePosixPath()
        for _ in range(_MOST_LINKS * (1 + len(waiting))):
            if not waiting:
                return str(done)
            here = done / waiting.popleft()
            if here.name == "..":
                if str(done) == ".":
                    return ""
                done = done.parent
                continue
            path = self.place.tree / here
            if not path.is_symlink():
                done = here
                continue
            target = self._target(here, path.readlink())
            if not target:
                return ""
            _link(self.files / here, Path(posixpath.relpath(target, str(here.parent))))
            done = PurePosixPath()
            waiting.extendleft(reversed(PurePosixPath(target).parts))
        return ""

    def _target(self, here: PurePosixPath, target: Path) -> str:
        """Target of a link, relative to the tree; empty if outside."""
        if not target.is_absolute():
            joined = posixpath.normpath(posixpath.join(str(here.parent), str(target)))
            return "" if joined.startswith("..") else joined
        for root in (self.place.seen_as, str(self.place.tree)):
            if root and str(target).startswith(root + "/"):
                return posixpath.normpath(str(target)[len(root) + 1 :])
        return ""


def _libraries_by_name(tree: Path) -> Iterator[tuple[str, str]]:
    """Names by which a loader asks for shared libraries in the tree, with their paths.

    Of several with the same name the one in the outermost folder is meant, which comes last.
    """
    libraries = [
        (name, path)
        for name, path in tree_entries(tree)
        if _LIBRARY.search(name) and not path.is_symlink() and path.is_file()
    ]
    for name, path in sorted(libraries, key=lambda each: (-each[0].count("/"), each[0])):
        dynamic = read_dynamic(path)
        if dynamic is not None and not dynamic.is_program:
            yield dynamic.soname or PurePosixPath(name).name, name


def _link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.path.lexists(path):
        path.symlink_to(target)


def _no_program(name: str, tree: Path) -> str:
    """Message about an artifact that no loader can run."""
    try:
        with os.fdopen(open_foreign(tree / name, _MOST_BYTES), "rb") as file:
            start = file.read(_LONGEST_WRAPPER_BYTES)
    except HostileFileError as error:
        return str(error)
    if start.startswith(b"#!") and b"libtool" in start:
        return f"'{name}' is libtool's wrapper script, not a program{_elsewhere(name, tree)}"
    if start.startswith(b"#!"):
        return f"'{name}' is a script, not a program in ELF format{_elsewhere(name, tree)}"
    return f"'{name}' is not a program in ELF format{_elsewhere(name, tree)}"


def _elsewhere(name: str, tree: Path) -> str:
    """Path of a program of that name, if there is one, and its libraries beside it."""
    base = PurePosixPath(name).name
    wanted = {base, f"lt-{base}"}
    programs: list[str] = []
    libraries: set[str] = set()
    for other, path in tree_entries(tree):
        if path.is_symlink() or not path.is_file():
            continue
        if PurePosixPath(other).name in wanted or _LIBRARY.search(other):
            dynamic = read_dynamic(path)
            if dynamic is None:
                continue
            if dynamic.is_program:
                programs.append(other)
            else:
                libraries.add(f"{PurePosixPath(other).parent}/*.so*")
    if not programs:
        return ""
    folder = PurePosixPath(name).parent
    near = sorted(
        programs,
        key=lambda other: (
            folder not in PurePosixPath(other).parents,
            PurePosixPath(other).name != base,
            other,
        ),
    )
    advice = f"; the program is '{near[0]}': write artifact = \"{near[0]}\""
    if libraries:
        names = ", ".join(f'"{library}"' for library in sorted(libraries))
        advice += f" and runtime_files = [{names}] for the libraries that it loads"
    return advice
