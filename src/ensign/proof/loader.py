"""Libraries that a program would load, and where, by the rules of glibc's loader.

Nothing is run. The order is that of ld.so(8): RPATH of whoever needs a library and of who loaded
that (without a RUNPATH), `LD_LIBRARY_PATH`, RUNPATH, the cache, the usual folders. Folders are
looked through with `glibc-hwcaps` for what the processor can do.
"""

from __future__ import annotations

import os
import posixpath
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ensign.host.regular_file import read_regular
from ensign.model.builds import BuiltFile
from ensign.proof.identity import Identity, read_identity
from ensign.proof.loaded_bytes import Dynamic

ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc", "hoard", "snmalloc", "scudo")
"""Parts of the names of libraries that bring a malloc."""

_CACHE = Path("/etc/ld.so.cache")
_LARGEST_CACHE_BYTES = 32 << 20
_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER, _ENTRY = struct.Struct("<20sII20x"), struct.Struct("<iIIIQ")
_MOST_LIBRARIES = 2000
_MULTIARCH = {
    ("x86-64", 64): "x86_64-linux-gnu",
    ("x86 (32 bits)", 32): "i386-linux-gnu",
    ("AArch64", 64): "aarch64-linux-gnu",
    ("RISC-V", 64): "riscv64-linux-gnu",
}
_USUAL = ("/lib/{arch}", "/usr/lib/{arch}", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
_OTHER_LIBC = re.compile(r"libc\.musl-\S*|libc\.so|libc\.so\.0|ld-musl-\S*")
_ORIGIN = ("$ORIGIN", "${ORIGIN}")
_GLIBC = ("ld-linux", "ld64.so", "ld.so", "ld-2.")


@dataclass(frozen=True, slots=True)
class Library:
    """A library that would be loaded: the name asked for, and the file, None where there is none.

    `identity` is what the file is, None with the file.
    """

    name: str
    path: Path | None = None
    identity: Identity | None = None

    @property
    def version(self) -> str:
        """Version by the file's own name, else the highest that it defines; empty where unsaid."""
        if self.path is None:
            return ""
        real = self.path.resolve().name
        _, _, of_file = real.partition(".so.")
        _, _, of_name = self.name.partition(".so.")
        if of_file and of_file != of_name:
            return of_file
        return "" if self.identity is None else self.identity.version.replace("_", " ")


@dataclass(frozen=True, slots=True)
class LoaderSurroundings:
    """Circumstances besides the program: the variable, the processor's levels, the cache."""

    library_path: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    cache: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Loaded:
    path: Path
    identity: Identity
    by: _Loaded | None = None


def is_of_glibc(identity: Identity) -> bool:
    """True if the loader is glibc's, whose rules are known here."""
    return not unknown_loader(identity)


def unknown_loader(identity: Identity) -> str:
    """Why its libraries cannot be told; empty where glibc's loader loads it, or none does.

    A library names no loader; the C library that it needs says of which one it is.
    """
    name = Path(identity.interpreter).name
    if name and not name.startswith(_GLIBC):
        return f"its loader is {name}, not glibc's"
    other = next((library for library in identity.needed if _OTHER_LIBC.fullmatch(library)), "")
    return f"its C library is {other}, not glibc" if other else ""


def libraries_of(
    path: Path, identity: Identity, surroundings: LoaderSurroundings
) -> tuple[Library, ...]:
    """All libraries, breadth first as they would be loaded, each once."""
    libraries: dict[str, Library] = {}
    queue = [_Loaded(path.absolute(), identity)]
    while queue:
        loaded = queue.pop(0)
        for name in loaded.identity.needed:
            if name in libraries or len(libraries) >= _MOST_LIBRARIES:
                continue
            if any(
                other.identity and other.identity.soname == name for other in libraries.values()
            ):
                continue
            library = _find(name, loaded, surroundings)
            libraries[name] = library
            if library.path is not None and library.identity is not None:
                queue.append(_Loaded(library.path, library.identity, loaded))
    return tuple(libraries.values())


def _find(name: str, by: _Loaded, surroundings: LoaderSurroundings) -> Library:
    for path in _places(name, by, surroundings):
        if not path.is_file():
            continue
        identity = read_identity(path)
        wanted = (by.identity.machine, by.identity.bits)
        if identity is not None and (identity.machine, identity.bits) == wanted:
            return Library(name, path, identity)
    return Library(name)


def _places(name: str, by: _Loaded, surroundings: LoaderSurroundings) -> Iterator[Path]:
    if "/" in name:
        yield Path(_expanded(name, by))
        return
    arch = _MULTIARCH.get((by.identity.machine, by.identity.bits), "")
    folders = [*_rpaths(by), *surroundings.library_path]
    if not by.identity.rpath:
        folders += [_expanded(folder, by) for folder in by.identity.search]
    yield from _in(folders, name, surroundings.levels)
    yield from map(Path, surroundings.cache.get(name, ()))
    yield from _in([folder.format(arch=arch) for folder in _USUAL], name, surroundings.levels)


def _rpaths(by: _Loaded) -> list[str]:
    """Folders of who needs the library and of who loaded that; a RUNPATH takes its own away."""
    folders: list[str] = []
    if by.identity.search and not by.identity.rpath:
        return folders
    at: _Loaded | None = by
    while at is not None:
        if at.identity.rpath:
            folders += [_expanded(folder, at) for folder in at.identity.search]
        at = at.by
    return folders


def _in(folders: Sequence[str], name: str, levels: Sequence[str]) -> Iterator[Path]:
    for folder in folders:
        for level in levels:
            yield Path(folder) / "glibc-hwcaps" / level / name
        yield Path(folder) / name


def _expanded(text: str, by: _Loaded) -> str:
    arch = _MULTIARCH.get((by.identity.machine, by.identity.bits), "")
    values = {"ORIGIN": str(by.path.resolve().parent), "LIB": f"lib/{arch}" if arch else "lib"}
    for key, value in values.items():
        text = text.replace(f"${{{key}}}", value).replace(f"${key}", value)
    return os.path.normpath(text)


def read_cache(path: Path = _CACHE) -> dict[str, tuple[str, ...]]:
    """Names and paths of the loader's cache; nothing where there is none, or a damaged one."""
    try:
        return cache_of(read_regular(path, _LARGEST_CACHE_BYTES))
    except OSError:
        return {}


def cache_of(data: bytes) -> dict[str, tuple[str, ...]]:
    """The same of its bytes."""
    start = data.find(_MAGIC)
    if start < 0 or len(data) < start + _HEADER.size:
        return {}
    _, count, _ = _HEADER.unpack_from(data, start)
    names: dict[str, dict[str, None]] = {}
    for number in range(min(count, len(data) // _ENTRY.size)):
        at = start + _HEADER.size + number * _ENTRY.size
        if at + _ENTRY.size > len(data):
            break
        _, key, value, _, _ = _ENTRY.unpack_from(data, at)
        name, file = (_text(data, start + offset) for offset in (key, value))
        if name and file.startswith("/"):
            names.setdefault(name, {})[file] = None
    return {name: tuple(files) for name, files in names.items()}


def _text(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + 4096)
    return os.fsdecode(data[at:end]) if 0 <= at < end else ""


def library_folders(
    files: Sequence[BuiltFile], dynamics: Mapping[str, Dynamic], names: Mapping[str, str]
) -> tuple[str, ...]:
    """Folders of kept libraries that no search path relative to a kept file leads to.

    `dynamics` are by path; `names` has each path at which a file can be opened, links too, with the
    path of the file itself. In the order of the files; relative to the source folder.
    """
    searched = {path: set(_origins(path, dynamic.search)) for path, dynamic in dynamics.items()}
    anywhere = {folder for folders in searched.values() for folder in folders}
    every: dict[str, None] = {}
    for file in files:
        if file.kind != "library":
            continue
        folders = _folders_of(file, names)
        needers = [path for path, read in dynamics.items() if file.names & {*read.needed}]
        # What nothing needs is opened by its name, which any of them may do.
        places = [searched[path] for path in needers] or [anywhere]
        if not all(place.intersection(folders) for place in places):
            every.update(dict.fromkeys(folders))
    return tuple(every)


def _folders_of(library: BuiltFile, names: Mapping[str, str]) -> tuple[str, ...]:
    """Those in which it can be opened by a name that a loader asks for."""
    asked = {name for name, path in names.items() if path == library.path}
    fitting = {name for name in asked if posixpath.basename(name) in library.names}
    if library.soname:  # what was linked against it asks for this name alone
        named = {name for name in fitting if posixpath.basename(name) == library.soname}
        fitting = named or fitting
    return tuple(sorted({posixpath.dirname(name) for name in fitting or asked}))


def _origins(path: str, search: Iterable[str]) -> Iterable[str]:
    for entry in search:
        for mark in _ORIGIN:
            if entry == mark or entry.startswith(f"{mark}/"):
                inside = posixpath.normpath(
                    posixpath.join(posixpath.dirname(path), "." + entry[len(mark) :])
                )
                yield "" if inside == "." else inside
