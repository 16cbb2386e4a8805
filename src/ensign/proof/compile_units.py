"""What each compile unit says of itself: the first entry of its tree, and nothing below that.

pyelftools reads whole sections and every table of abbreviations, which of a program of half a
gigabyte takes a minute and as much memory as the file has. Objects, whose debug information must
be relocated first, are read by it all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ensign.proof.bounded_elf import BoundedElf, DamagedFile
from ensign.proof.debug_sections import DebugSection, debug_section
from ensign.proof.dwarf_forms import Cursor, TextAt, read_value

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
