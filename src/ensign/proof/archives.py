"""Reading archives (`ar`): members and the index. The format is that of ar(5), System V's flavour.

Thin archives name their members' files, which lie beside them.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from ensign.proof.elf import READ_ERRORS, symbols
from ensign.proof.lto_symbols import gcc_symbols

_MAGIC, _THIN = b"!<arch>\n", b"!<thin>\n"
_HEADER_BYTES = 60
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")


@dataclass(frozen=True, slots=True)
class Intermediate:
    """The intermediate language in an object: `gcc`, `llvm` or none; `fat` with code beside it."""

    language: str = ""
    fat: bool = False

    @property
    def slim(self) -> str:
        """The language, where there is nothing else."""
        return "" if self.fat else self.language


@dataclass(frozen=True, slots=True)
class Member:
    """An object of an archive, with the global symbols that it defines and needs.

    `language` is the intermediate one of an object that has nothing else. Symbols of `llvm` are not
    read here.
    """

    name: str
    language: str
    defines: frozenset[str]
    needs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Archive:
    """`index` holds the symbols by which a linker finds members; None if there is no index.

    A `thin` one names files beside it, its members.
    """

    members: tuple[Member, ...]
    index: frozenset[str] | None
    thin: bool = False


def is_archive(path: Path) -> bool:
    """Whether a file begins like an archive."""
    with path.open("rb") as file:
        return file.read(8) in (_MAGIC, _THIN)


def read_archive(path: Path) -> Archive | None:
    """Read members and index; None if this is no archive, or a broken one."""
    try:
        data = path.read_bytes()
        if data[:8] not in (_MAGIC, _THIN):
            return None
        index: frozenset[str] | None = None
        members = []
        for name, content in _entries(data, path):
            if name in ("/", "/SYM64/"):
                index = (index or frozenset()) | frozenset(_index(content, wide=name != "/"))
            else:
                members.append(_member(name, content))
    except (*READ_ERRORS, struct.error):
        return None
    return Archive(tuple(members), index, thin=data[:8] == _THIN)


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of an archive's members. READ_ERRORS where it, or a named file, is broken."""
    for name, content in _entries(path.read_bytes(), path):
        if name not in ("/", "/SYM64/"):
            yield name, content


def _entries(data: bytes, path: Path) -> Iterator[tuple[str, bytes]]:
    thin = data[:8] == _THIN
    long_names = b""
    at = 8
    while at + _HEADER_BYTES <= len(data):
        header = data[at : at + _HEADER_BYTES]
        raw, size = header[:16].decode().rstrip(), int(header[48:58])
        at += _HEADER_BYTES
        special = raw in ("/", "//", "/SYM64/")
        content = data[at : at + size] if special or not thin else b""
        at += len(content) + (len(content) % 2)
        if raw == "//":
            long_names = content
            continue
        name = raw
        if raw[:1] == "/" and raw[1:].isdigit():
            name = long_names[int(raw[1:]) :].split(b"\n", 1)[0].decode()
        name = name if special else name.rstrip("/")
        if thin and not special:
            content = (path.parent / name).read_bytes()
        yield name, content


def _index(content: bytes, *, wide: bool) -> Iterator[str]:
    size = 8 if wide else 4
    (count,) = struct.unpack(">Q" if wide else ">I", content[:size])
    names = content[size * (count + 1) :].split(b"\0")
    found = (name.decode(errors="replace") for name in names[:count])
    yield from (name for name in found if not name.startswith("__gnu_lto_"))


def _member(name: str, content: bytes) -> Member:
    found = intermediate(content)
    try:
        defines, needs = symbols_of(content, found)
    except READ_ERRORS:
        defines, needs = frozenset(), frozenset()
    return Member(name, found.slim, defines, needs)


def symbols_of(content: bytes, found: Intermediate) -> tuple[frozenset[str], frozenset[str]]:
    """Global symbols that an object defines and needs; none of bitcode. READ_ERRORS for others."""
    if found.slim == "llvm":
        return frozenset(), frozenset()
    if found.slim == "gcc":
        read = gcc_symbols(ELFFile(io.BytesIO(content)))
        return read.defines, read.needs
    return symbols(io.BytesIO(content))


def intermediate(content: bytes) -> Intermediate:
    """Which intermediate language an object file holds."""
    if content[:4] in _BITCODE:
        return Intermediate("llvm")
    try:
        elf = ELFFile(io.BytesIO(content))
        names = {section.name: section["sh_size"] for section in elf.iter_sections()}
    except READ_ERRORS:
        return Intermediate()
    if ".llvm.lto" in names:
        return Intermediate("llvm", fat=True)
    if not any(name.startswith(".gnu.lto_") for name in names):
        return Intermediate()
    # A slim object says so by a symbol of this name.
    slim = b"__gnu_lto_slim" in content
    return Intermediate("gcc", fat=not slim)
