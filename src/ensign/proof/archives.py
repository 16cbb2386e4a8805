"""Reading archives (`ar`): members and the index. The format is that of ar(5), System V's flavour.

Thin archives name their members' files, which lie beside them.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ensign.host.processes import Processes, ProcessRequest
from ensign.host.regular_file import read_regular
from ensign.host.temporary import temporary_folder
from ensign.proof.bounded_elf import (
    BoundedElf,
    DamagedFile,
    damage_told,
    data_of,
    elf_of,
    opened_file,
)
from ensign.proof.elf import symbols

_TABLE = ".gnu.lto_.symtab."
_FIXED_BYTES = 1 + 1 + 8 + 4
_UNDEFINED, _WEAK_UNDEFINED = 2, 3
_DEADLINE_NS = 20 * 10**9


@dataclass(frozen=True, slots=True)
class LtoSymbols:
    """Global symbols that an object defines, and those that it needs (not the weak ones)."""

    defines: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()


class UnreadError(Exception):
    """The symbols cannot be read; the text completes "unknown, because …"."""


def gcc_symbols(elf: BoundedElf) -> LtoSymbols:
    """Symbols of an object of GCC's. ValueError where a table is cut off."""
    defines: set[str] = set()
    needs: set[str] = set()
    for section in elf.iter_sections():
        if section.name.startswith(_TABLE):
            for name, kind in _records(data_of(section)):
                if kind == _UNDEFINED:
                    needs.add(name)
                elif kind != _WEAK_UNDEFINED:
                    defines.add(name)
    return LtoSymbols(frozenset(defines), frozenset(needs - defines))


def _records(data: bytes) -> Iterator[tuple[str, int]]:
    at = 0
    while at < len(data):
        name_end = data.index(b"\0", at)
        fixed = data.index(b"\0", name_end + 1) + 1
        if fixed + _FIXED_BYTES > len(data):
            raise ValueError("a symbol table of LTO is cut off")
        yield data[at:name_end].decode(errors="replace"), data[fixed]
        at = fixed + _FIXED_BYTES


def bitcode_symbols(path: Path, compiler: str, processes: Processes) -> Mapping[str, LtoSymbols]:
    """Symbols of an object, under an empty name, or of an archive's members by their names.

    `compiler` is the program that linked it. UnreadError where there is no llvm-nm beside it, or
    where that cannot read the file.
    """
    program = shutil.which(compiler)
    nm = None if program is None else Path(program).resolve().parent / "llvm-nm"
    if nm is None or not nm.is_file():
        raise UnreadError(f"the objects hold LLVM's bitcode, and there is no llvm-nm by {compiler}")
    with temporary_folder("nm") as scratch:
        table = scratch / "symbols"
        argv = (str(nm), "--format=posix", "--print-file-name", str(path))
        request = ProcessRequest(
            argv, {"LC_ALL": "C"}, scratch, stdout=table, deadline_ns=_DEADLINE_NS
        )
        outcome = processes.run(request)
        if not outcome.ok:
            raise UnreadError(f"{nm} {outcome.describe()} at {path.name}")
        return symbols_by_member(table.read_text(errors="replace"), str(path))


def symbols_by_member(text: str, path: str) -> Mapping[str, LtoSymbols]:
    """From lines of llvm-nm: `PATH[MEMBER]: NAME KIND …`, without brackets for an object."""
    defines: dict[str, set[str]] = {}
    needs: dict[str, set[str]] = {}
    for line in text.splitlines():
        if not line.startswith(path):
            continue
        where, _, symbol = line[len(path) :].partition(": ")
        name, _, rest = symbol.partition(" ")
        member, kind = where[1:-1], rest[:1]
        if kind == "U":
            needs.setdefault(member, set()).add(name)
        elif kind not in ("w", "v") and (kind.isupper() or kind == "u"):
            defines.setdefault(member, set()).add(name)
    return {
        member: LtoSymbols(
            frozenset(defines.get(member, ())),
            frozenset(needs.get(member, set()) - defines.get(member, set())),
        )
        for member in defines.keys() | needs.keys()
    }


_MAGIC, _THIN = b"!<arch>\n", b"!<thin>\n"
_HEADER_BYTES = 60
# Objects are smaller; a file without content may claim any size.
_LARGEST_MEMBER_BYTES = 1 << 30
_SPECIAL = ("/", "//", "/SYM64/")
# binutils leaves the slash behind a name of 15 letters that it moved to the long ones.
_LONG_NAME = re.compile(r"/(\d+) */?", re.ASCII)
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
    """True if a file begins like an archive. OSError."""
    return read_regular(path, 8) in (_MAGIC, _THIN)


def read_archive(path: Path) -> Archive | None:
    """Read members and index; None if this is no archive, or a broken one."""
    index: frozenset[str] | None = None
    members = []
    try:
        with damage_told(), opened_file(path) as file:
            magic = file.read(8)
            if magic not in (_MAGIC, _THIN):
                return None
            for name, content in _entries(file, path):
                if name in ("/", "/SYM64/"):
                    index = (index or frozenset()) | frozenset(_index(content, wide=name != "/"))
                else:
                    members.append(_member(name, content))
    except DamagedFile:
        return None
    return Archive(tuple(members), index, thin=magic == _THIN)


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of an archive's members. DamagedFile where it, or a named file, is broken."""
    with damage_told(), opened_file(path) as file:
        for name, content in _entries(file, path):
            if name not in ("/", "/SYM64/"):
                yield name, content


def with_changed_members(path: Path, change: Callable[[int, bytes], bytes]) -> bytes:
    """The archive with other contents of its members; its index says where these lie now.

    Each is changed by its place in the archive and its content. DamagedFile where it cannot be
    read, or is thin.
    """
    with damage_told(), opened_file(path) as file:
        content = file.read(_LARGEST_MEMBER_BYTES)
    if not content.startswith(_MAGIC):
        raise DamagedFile("it has no members of its own")
    made, places, indexes = bytearray(_MAGIC), {}, []
    at = len(_MAGIC)
    while at + _HEADER_BYTES <= len(content):
        header, body_at = content[at : at + _HEADER_BYTES], at + _HEADER_BYTES
        name, size = header[:16].decode(errors="replace").rstrip(), _number(header[48:58])
        if size > len(content) - body_at:
            raise DamagedFile(f"'{name}' in it is cut off")
        body = content[body_at : body_at + size]
        places[at] = len(made)
        if name not in _SPECIAL:
            body = change(at, body)
        elif name != "//":
            indexes.append((len(made) + _HEADER_BYTES, name != "/"))
        made += header[:48] + b"%-10d" % len(body) + header[58:] + body + b"\n" * (len(body) % 2)
        at = body_at + size + size % 2
    for index_at, wide in indexes:
        _move_index(made, index_at, places, wide=wide)
    return bytes(made)


def _move_index(made: bytearray, at: int, places: Mapping[int, int], *, wide: bool) -> None:
    code = "Q" if wide else "I"
    with damage_told():
        (count,) = struct.unpack_from(f">{code}", made, at)
        form = struct.Struct(f">{min(count, len(made))}{code}")
        first = at + struct.calcsize(f">{code}")
        moved = [places.get(old, -1) for old in form.unpack_from(made, first)]
        if -1 in moved:
            raise DamagedFile("its index names a place without a member")
        form.pack_into(made, first, *moved)


def _entries(file: BinaryIO, path: Path) -> Iterator[tuple[str, bytes]]:
    end = file.seek(0, os.SEEK_END)
    file.seek(0)
    thin = file.read(8) == _THIN
    long_names = b""
    seen: set[tuple[int, int]] = set()
    while len(header := file.read(_HEADER_BYTES)) == _HEADER_BYTES:
        raw, size = header[:16].decode().rstrip(), _number(header[48:58])
        special = raw in _SPECIAL
        content = b""
        if special or not thin:
            if size > min(end - file.tell(), _LARGEST_MEMBER_BYTES):
                raise DamagedFile(f"'{raw}' in it is cut off, or too large")
            content = file.read(size)
            file.seek(size % 2, os.SEEK_CUR)
        if raw == "//":
            long_names = content
            continue
        name = raw if special else _name(raw, long_names)
        if thin and not special:
            beside = _beside(path.parent / name, seen)
            if beside is None:
                continue
            content = beside
        yield name, content


def _number(digits: bytes) -> int:
    text = digits.rstrip()
    if not text.isdigit():
        raise DamagedFile(f"a size in it is {digits!r}")
    return int(text)


def _name(raw: str, long_names: bytes) -> str:
    if match := _LONG_NAME.fullmatch(raw):
        raw = long_names[int(match[1]) :].split(b"\n", 1)[0].decode()
    return raw.rstrip("/")


def _beside(path: Path, seen: set[tuple[int, int]]) -> bytes | None:
    """The file that a thin archive names; None for the second time."""
    with opened_file(path) as file:
        status = os.fstat(file.fileno())
        if (status.st_dev, status.st_ino) in seen:
            return None
        seen.add((status.st_dev, status.st_ino))
        if status.st_size > _LARGEST_MEMBER_BYTES:
            raise DamagedFile(f"{path} is too large for an object")
        return file.read(_LARGEST_MEMBER_BYTES)


def _index(content: bytes, *, wide: bool) -> Iterator[str]:
    size = 8 if wide else 4
    (count,) = struct.unpack(">Q" if wide else ">I", content[:size])
    names = content[size * (count + 1) :].split(b"\0")
    decoded = (name.decode(errors="replace") for name in names[:count])
    yield from (name for name in decoded if not name.startswith("__gnu_lto_"))


def _member(name: str, content: bytes) -> Member:
    code = intermediate(content)
    try:
        defines, needs = symbols_of(content, code)
    except DamagedFile:
        defines, needs = frozenset(), frozenset()
    return Member(name, code.slim, defines, needs)


def symbols_of(source: Path | bytes, found: Intermediate) -> tuple[frozenset[str], frozenset[str]]:
    """Global symbols that an object defines and needs; none of bitcode. DamagedFile for others."""
    if found.slim == "llvm":
        return frozenset(), frozenset()
    with elf_of(source) as elf:
        if found.slim == "gcc":
            read = gcc_symbols(elf)
            return read.defines, read.needs
        return symbols(elf)


def intermediate(source: Path | bytes) -> Intermediate:
    """Intermediate language that an object file holds."""
    try:
        with damage_told():
            if _start(source) in _BITCODE:
                return Intermediate("llvm")
        with elf_of(source) as elf:
            names = {section.name for section in elf.iter_sections()}
            if ".llvm.lto" in names:
                return Intermediate("llvm", fat=True)
            if not any(name.startswith(".gnu.lto_") for name in names):
                return Intermediate()
            # A slim object says so by a symbol of this name.
            texts = elf.get_section_by_name(".strtab")
            slim = texts is not None and b"__gnu_lto_slim" in data_of(texts)
            return Intermediate("gcc", fat=not slim)
    except DamagedFile:
        return Intermediate()


def _start(source: Path | bytes) -> bytes:
    if isinstance(source, bytes):
        return source[:4]
    with opened_file(source) as file:
        return file.read(4)
