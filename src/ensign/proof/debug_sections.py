"""Sections of debug information, read in pieces, compressed or not.

A compressed one is unpacked if it is small; a large one is read forward, and nothing of it kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from typing import Protocol

from elftools.elf.sections import Section

from ensign.proof.bounded_elf import BoundedElf, DamagedFile, check_size

_LONGEST_TEXT = 64 << 10
_PIECE_BYTES = 1 << 20
_OLD_MAGIC, _OLD_HEADER_BYTES = b"ZLIB", 12
_MOST_KEPT_BYTES = 64 << 20
_READ_FORWARD = (".debug_info", ".debug_str", ".debug_line_str")
_WIDE_BITS, _BY_ZLIB = 64, 1
_HEADER_BYTES = {32: 12, _WIDE_BITS: 24}


class DebugSection(Protocol):
    """`size_bytes` is that of its content."""

    @property
    def size_bytes(self) -> int:
        """Of its content."""
        ...

    def piece(self, at: int, size_bytes: int) -> bytes:
        """A piece, shorter at the end."""
        ...

    def texts(self, places: Collection[int]) -> Iterator[tuple[int, str]]:
        """The texts that begin at these places, each with its place."""
        ...


def debug_section(elf: BoundedElf, name: str) -> DebugSection | None:
    """The section of that name, in either form of compression; None where there is none."""
    section = elf.get_section_by_name(name)
    if section is None:
        section = elf.get_section_by_name(name.replace(".debug", ".zdebug"))
    if section is None or section["sh_type"] == "SHT_NOBITS":
        return None
    if not section.compressed and not section.name.startswith(".zdebug"):
        return _Plain(elf, section)
    found = _Compressed(elf, section)
    if found.size_bytes <= _MOST_KEPT_BYTES:
        return _Unpacked(found.piece(0, found.size_bytes))
    if name not in _READ_FORWARD:
        raise DamagedFile(f"{name} of it is larger than any that is read")
    return found


class _Plain:
    def __init__(self, elf: BoundedElf, section: Section) -> None:
        self._elf = elf
        self._at = int(section["sh_offset"])
        self.size_bytes = min(int(section["sh_size"]), max(elf.size_bytes - self._at, 0))

    def piece(self, at: int, size_bytes: int) -> bytes:
        """See `DebugSection.piece`."""
        left = max(self.size_bytes - at, 0)
        return self._elf.piece(self._at + at, min(size_bytes, left))

    def texts(self, places: Collection[int]) -> Iterator[tuple[int, str]]:
        """See `DebugSection.texts`."""
        for at in places:
            yield at, _text(self.piece(at, 1 << 10)) or _text(self.piece(at, _LONGEST_TEXT))


class _Unpacked:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size_bytes = len(data)

    def piece(self, at: int, size_bytes: int) -> bytes:
        """See `DebugSection.piece`."""
        return self._data[at : at + size_bytes]

    def texts(self, places: Collection[int]) -> Iterator[tuple[int, str]]:
        """See `DebugSection.texts`."""
        for at in places:
            yield at, _text(self.piece(at, _LONGEST_TEXT))


class _Compressed:
    def __init__(self, elf: BoundedElf, section: Section) -> None:
        check_size(section)
        self._elf = elf
        skipped = _HEADER_BYTES[int(elf.elfclass)]
        self.size_bytes = int(section.data_size)
        if section.name.startswith(".zdebug"):
            head = elf.piece(int(section["sh_offset"]), _OLD_HEADER_BYTES)
            if not head.startswith(_OLD_MAGIC):
                raise DamagedFile(f"{section.name} is not compressed as its name says")
            skipped = _OLD_HEADER_BYTES
            self.size_bytes = int.from_bytes(head[len(_OLD_MAGIC) :], "big")
        elif _number(elf, int(section["sh_offset"])) != _BY_ZLIB:
            raise DamagedFile("its debug information is not compressed by zlib, and so not read")
        self._from = int(section["sh_offset"]) + skipped
        self._end = int(section["sh_offset"]) + int(section["sh_size"])
        self._restart()

    def _restart(self) -> None:
        self._unpacking = zlib.decompressobj()
        self._next = self._from
        self._begin, self._kept = 0, b""

    def piece(self, at: int, size_bytes: int) -> bytes:
        """See `DebugSection.piece`."""
        if at < self._begin:
            self._restart()
        while self._begin + len(self._kept) < at + size_bytes and self._more(at):
            pass
        return self._kept[max(at - self._begin, 0) :][:size_bytes]

    def _more(self, at: int) -> bool:
        """Unpack another piece, and forget what lies before a place."""
        packed = self._unpacking.unconsumed_tail
        if not packed:
            packed = self._elf.piece(self._next, max(min(_PIECE_BYTES, self._end - self._next), 0))
            self._next += len(packed)
        found = self._unpacking.decompress(packed, _PIECE_BYTES)
        gone = min(max(at - self._begin, 0), len(self._kept))
        self._kept = self._kept[gone:] + found
        self._begin += gone
        return bool(found) or (bool(packed) and not self._unpacking.eof)

    def texts(self, places: Collection[int]) -> Iterator[tuple[int, str]]:
        """See `DebugSection.texts`."""
        for at in sorted(places):
            yield at, _text(self.piece(at, _LONGEST_TEXT))


def _number(elf: BoundedElf, at: int) -> int:
    return int.from_bytes(elf.piece(at, 4), "little" if elf.little_endian else "big")


def _text(piece: bytes) -> str:
    end = piece.find(b"\0")
    return "" if end < 0 else piece[:end].decode(errors="replace")
