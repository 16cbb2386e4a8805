"""What each compile unit says of itself: the first entry of its tree, and nothing below that.

pyelftools reads whole sections and every table of abbreviations, which of a program of half a
gigabyte takes a minute and as much memory as the file has. Objects, whose debug information must
be relocated first, are read by it all the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from elftools.elf.sections import Section

from ensign.proof.bounded_elf import BoundedElf, DamagedFile, check_size
from ensign.proof.dwarf_forms import Cursor, TextAt, read_value

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


_COMPILE_UNIT, _SKELETON_UNIT = 0x11, 0x4A
_NAME, _LANGUAGE, _FOLDER, _PRODUCER = 0x03, 0x13, 0x1B, 0x25
_TEXT_OFFSETS, _SPLIT_NAMES = 0x72, (0x76, 0x2130)
_WANTED = (_NAME, _LANGUAGE, _FOLDER, _PRODUCER, _TEXT_OFFSETS, *_SPLIT_NAMES)
_IMPLICIT = 0x21
_WIDE, _RESERVED = 0xFFFFFFFF, 0xFFFFFFF0
_VERSIONS = range(2, 6)
_SPLIT_TYPES, _TYPE_TYPES = (4, 5), (2, 6)
_FIRST_BYTES, _MORE_BYTES = 256, 64 << 10
_MOST_UNITS = 200_000
_MOST_ATTRIBUTES = 1000


@dataclass(frozen=True, slots=True)
class TopEntry:
    """`split`: the rest of it is in a file of its own (`-gsplit-dwarf`), and so is the producer."""

    producer: str = ""
    name: str = ""
    folder: str = ""
    language: int | None = None
    split: bool = False


@dataclass(frozen=True, slots=True)
class _Head:
    """Where a unit's first entry begins in its piece, and where the next unit begins."""

    entry: int
    following: int
    version: int
    address_bytes: int
    offset_bytes: int
    abbreviations: int


_Values = dict[int, TextAt | int]


def top_entries(elf: BoundedElf) -> tuple[TopEntry, ...]:
    """Those of a program or library, in their order. DamagedFile where they cannot be read."""
    info = debug_section(elf, ".debug_info")
    if info is None:
        return ()
    abbreviations = _Abbreviations(elf)
    found: list[tuple[_Values, _Head]] = []
    at = 0
    while at < info.size_bytes:
        values, head = _first_entry(info, at, abbreviations, little=elf.little_endian)
        if values is not None:
            found.append((values, head))
        if len(found) > _MOST_UNITS:
            raise DamagedFile(f"it has more than {_MOST_UNITS:,} compile units")
        at = head.following
    texts = _Texts(elf, [values for values, _ in found], [head for _, head in found])
    return tuple(_entry(values, texts, number) for number, (values, _) in enumerate(found))


def _first_entry(
    info: DebugSection, at: int, abbreviations: _Abbreviations, *, little: bool
) -> tuple[_Values | None, _Head]:
    for size in (_FIRST_BYTES, _MORE_BYTES):
        piece = info.piece(at, size)
        cursor = Cursor(piece, little=little)
        try:
            head = _head(cursor, at)
            return _values(cursor, head, abbreviations), head
        except IndexError:
            if len(piece) < size:
                break
    raise DamagedFile("a compile unit of it ends too early")


def _head(cursor: Cursor, at: int) -> _Head:
    length, offset_bytes = cursor.number(4), 4
    if length == _WIDE:
        length, offset_bytes = cursor.number(8), 8
    elif length >= _RESERVED:
        raise DamagedFile("a compile unit of it has no length")
    following = at + cursor.at + length
    version = cursor.number(2)
    if version not in _VERSIONS:
        raise DamagedFile(f"its debug information is of version {version}, which is not known")
    if version < _VERSIONS[-1]:
        abbreviations, address_bytes = cursor.number(offset_bytes), cursor.number(1)
    else:
        kind, address_bytes = cursor.number(1), cursor.number(1)
        abbreviations = cursor.number(offset_bytes)
        cursor.at += 8 if kind in _SPLIT_TYPES else 0
        cursor.at += 8 + offset_bytes if kind in _TYPE_TYPES else 0
    return _Head(cursor.at, following, version, address_bytes, offset_bytes, abbreviations)


def _values(cursor: Cursor, head: _Head, abbreviations: _Abbreviations) -> _Values | None:
    """None for what is no compile unit, as types and what several units share."""
    code = cursor.unsigned()
    if not code:
        return None
    tag, attributes = abbreviations.find(head.abbreviations, code)
    if tag not in (_COMPILE_UNIT, _SKELETON_UNIT):
        return None
    found: _Values = {}
    for attribute, form, implicit in attributes:
        value = implicit if form == _IMPLICIT else read_value(cursor, form, head)
        if attribute in _WANTED and value is not None:
            found[attribute] = value
    return found


class _Abbreviations:
    """Tables of abbreviations, of which one entry is looked up for each unit, mostly the first."""

    def __init__(self, elf: BoundedElf) -> None:
        self._section = debug_section(elf, ".debug_abbrev")
        self._little = elf.little_endian
        self._known: dict[tuple[int, int], tuple[int, list[tuple[int, int, int]]]] = {}

    def find(self, at: int, code: int) -> tuple[int, list[tuple[int, int, int]]]:
        """The tag, and attribute, form and implicit value of each. DamagedFile."""
        found = self._known.get((at, code))
        if found is None:
            try:
                found = self._read(at, code)
            except IndexError:
                raise DamagedFile("an abbreviation of its debug information ends early") from None
            self._known[at, code] = found
        return found

    def _read(self, at: int, code: int) -> tuple[int, list[tuple[int, int, int]]]:
        piece = b"" if self._section is None else self._section.piece(at, _MORE_BYTES)
        cursor = Cursor(piece, little=self._little)
        while cursor.unsigned() != code:
            self._entry(cursor)
        return self._entry(cursor)

    def _entry(self, cursor: Cursor) -> tuple[int, list[tuple[int, int, int]]]:
        tag = cursor.unsigned()
        cursor.at += 1
        attributes: list[tuple[int, int, int]] = []
        while len(attributes) < _MOST_ATTRIBUTES:
            attribute, form = cursor.unsigned(), cursor.unsigned()
            implicit = cursor.unsigned() if form == _IMPLICIT else 0
            if not attribute and not form:
                return tag, attributes
            attributes.append((attribute, form, implicit))
        raise DamagedFile("an abbreviation of its debug information does not end")


class _Texts:
    """Texts that units refer to, fetched at once, since compressed ones are read through."""

    def __init__(self, elf: BoundedElf, values: list[_Values], heads: list[_Head]) -> None:
        self._at: list[Mapping[int, TextAt]] = []
        indices = debug_section(elf, ".debug_str_offsets")
        wanted: dict[str, set[int]] = {}
        for each, head in zip(values, heads, strict=True):
            placed: dict[int, TextAt] = {}
            for key, value in each.items():
                if isinstance(value, TextAt):
                    place = value
                    if value.section == ".debug_str_offsets":
                        base = each.get(_TEXT_OFFSETS, 2 * head.offset_bytes)
                        place = _indexed(elf, indices, value.at, base, head.offset_bytes)
                    placed[key] = place
                    if place.section:
                        wanted.setdefault(place.section, set()).add(place.at)
            self._at.append(placed)
        self._texts = {
            (name, at): text
            for name, places in wanted.items()
            if (section := debug_section(elf, name)) is not None
            for at, text in section.texts(places)
        }

    def of(self, number: int, key: int) -> str:
        """What a unit's attribute says; empty where it says nothing."""
        place = self._at[number].get(key)
        if place is None:
            return ""
        return self._texts.get((place.section, place.at), place.text)


def _indexed(
    elf: BoundedElf, indices: DebugSection | None, index: int, base: object, size: int
) -> TextAt:
    if indices is None or not isinstance(base, int):
        return TextAt()
    piece = indices.piece(base + index * size, size)
    if len(piece) < size:
        return TextAt()
    return TextAt(".debug_str", Cursor(piece, little=elf.little_endian).number(size))


def _entry(values: _Values, texts: _Texts, number: int) -> TopEntry:
    language = values.get(_LANGUAGE)
    split = next((key for key in _SPLIT_NAMES if key in values), None)
    name = texts.of(number, _NAME) or (texts.of(number, split) if split else "")
    return TopEntry(
        producer=texts.of(number, _PRODUCER),
        name=name,
        folder=texts.of(number, _FOLDER),
        language=language if isinstance(language, int) else None,
        split=split is not None and not texts.of(number, _PRODUCER),
    )
