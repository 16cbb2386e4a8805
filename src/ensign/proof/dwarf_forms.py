"""Values of debug information by their forms (DWARF 5, section 7.5.6, and GNU's own). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ensign.proof.bounded_elf import DamagedFile

_LONGEST_NUMBER = 20
_GOES_ON = 0x80
_LONGEST_TEXT = 64 << 10

# By the form: its size in bytes, where that is fixed.
_FIXED = {
    0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x19: 0,
    0x1C: 4, 0x1E: 16, 0x20: 8, 0x24: 8, 0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4,
}  # fmt: skip
_COUNTED = {0x03: 2, 0x04: 4, 0x0A: 1}  # blocks: the size of their length
_NUMBERS = (0x0D, 0x0F, 0x15, 0x1B, 0x22, 0x23, 0x1F01)
_OFFSETS = (0x17, 0x1D, 0x1F20, 0x1F21)
_ADDRESS, _TO_ADDRESS, _INLINE, _INDIRECT = 0x01, 0x10, 0x08, 0x16
_BLOCKS = (0x09, 0x18)
_TEXTS = {0x0E: ".debug_str", 0x1F: ".debug_line_str"}
_INDEXED = {0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4}
_INDEXED_BY_NUMBER = (0x1A, 0x1F02)


class Sizes(Protocol):
    """Those of a unit."""

    @property
    def version(self) -> int:
        """Of DWARF."""
        ...

    @property
    def address_bytes(self) -> int:
        """Size of an address."""
        ...

    @property
    def offset_bytes(self) -> int:
        """Size of a place in a section."""
        ...


@dataclass(frozen=True, slots=True)
class TextAt:
    """A text in a section, or an index of one; in no section it is `text`."""

    section: str = ""
    at: int = 0
    text: str = ""


class Cursor:
    """Reads numbers of bytes one after the other. IndexError at the end."""

    def __init__(self, data: bytes, *, little: bool) -> None:
        self._data = data
        self._order = "little" if little else "big"
        self.at = 0

    def number(self, size: int) -> int:
        """Of a fixed size."""
        return int.from_bytes(self.taken(size), self._order)  # type: ignore[arg-type]  # as named

    def unsigned(self) -> int:
        """One that says by itself how long it is (LEB128)."""
        first = self._data[self.at]
        if first < _GOES_ON:  # most do
            self.at += 1
            return first
        value = shift = 0
        for _ in range(_LONGEST_NUMBER):
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < _GOES_ON:
                return value
        raise DamagedFile("a number in it does not end")

    def taken(self, size: int) -> bytes:
        """So many bytes."""
        if self.at + size > len(self._data):
            raise IndexError
        self.at += size
        return self._data[self.at - size : self.at]

    def text(self) -> str:
        """Up to the next zero."""
        end = self._data.find(b"\0", self.at, self.at + _LONGEST_TEXT)
        if end < 0:
            raise IndexError
        found = self._data[self.at : end]
        self.at = end + 1
        return found.decode(errors="replace")


def read_value(cursor: Cursor, form: int, sizes: Sizes) -> TextAt | int | None:
    """Read one value, and go behind it; None for what is neither text nor number. DamagedFile."""
    text = _text(cursor, form, sizes)
    if text is not None:
        return text
    if form in _FIXED:
        return cursor.number(_FIXED[form]) if _FIXED[form] else 1
    if form in _NUMBERS:
        return cursor.unsigned()
    if form in _OFFSETS:
        return cursor.number(sizes.offset_bytes)
    return _rare(cursor, form, sizes)


def _text(cursor: Cursor, form: int, sizes: Sizes) -> TextAt | None:
    if form in _TEXTS:
        return TextAt(_TEXTS[form], cursor.number(sizes.offset_bytes))
    if form in _INDEXED:
        return TextAt(".debug_str_offsets", cursor.number(_INDEXED[form]))
    if form in _INDEXED_BY_NUMBER:
        return TextAt(".debug_str_offsets", cursor.unsigned())
    return TextAt(text=cursor.text()) if form == _INLINE else None


def _rare(cursor: Cursor, form: int, sizes: Sizes) -> TextAt | int | None:
    old = form == _TO_ADDRESS and sizes.version <= 2  # noqa: PLR2004  # as that version had it
    if form == _ADDRESS or old:
        cursor.taken(sizes.address_bytes)
    elif form == _TO_ADDRESS:
        cursor.taken(sizes.offset_bytes)
    elif form in _COUNTED:
        cursor.taken(cursor.number(_COUNTED[form]))
    elif form in _BLOCKS:
        cursor.taken(cursor.unsigned())
    elif form == _INDIRECT:
        inner = cursor.unsigned()
        return None if inner == _INDIRECT else read_value(cursor, inner, sizes)
    else:
        raise DamagedFile(f"its debug information has a value of the unknown form {form:#x}")
    return None
