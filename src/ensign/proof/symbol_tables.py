"""Symbol tables of ELF files, a million symbols in a second.

pyelftools makes an object of each field of each symbol, which takes a hundred times as long; so
only sections are found by it.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import NamedTuple

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.sections import Section, StringTableSection, SymbolTableSection

from ensign.proof.bounded_elf import BoundedElf, data_of

# Both hold name, type and binding, section; the narrow one has value and size before those two.
_WIDE, _NARROW = "IBxH16x", "I8xBxH"
_WIDE_PLACE, _NARROW_PLACE = "IBxHQ8x", "II4xBxH"
_LONGEST_NAME = 16 << 10
_TYPE_BITS, _LOCAL, _FUNCTION, _IFUNC = 0xF, 0, 2, 10
_WEAK = (2, 10)  # the latter are unique in a process
_LAST_SECTION = 0xFEFF
_COUNTED, _WRITABLE = "__gcov_.", 1


class Symbol(NamedTuple):
    """`chosen`: one of several functions is taken when the file is loaded (IFUNC)."""

    name: str
    defined: bool
    local: bool = False
    chosen: bool = False


class FunctionSymbol(NamedTuple):
    """A function that is defined: `section` is a number, `address` the place in an object's."""

    name: str
    section: int
    address: int


def function_symbols(elf: BoundedElf, section: str) -> Iterator[FunctionSymbol]:
    """Functions of `.symtab` or `.dynsym` that the file defines."""
    functions, names = _functions(elf, section)
    for at, index, address in functions:
        yield FunctionSymbol(_name(names, at), index, address)


def function_places(elf: BoundedElf) -> frozenset[tuple[int, int]]:
    """Number of the section and address of each function that `.symtab` defines."""
    functions, _ = _functions(elf, ".symtab")
    return frozenset((index, address) for _, index, address in functions)


def counter_idents(elf: BoundedElf) -> Iterator[tuple[str, int]]:
    """Functions that GCC made count themselves, and their numbers among its counts.

    libgcov's `struct gcov_fn_info`, `__gcov_.NAME`, has the number behind a pointer.
    """
    wide = elf.is_wide
    entries, names = _read_table(elf, ".symtab", _WIDE_PLACE if wide else _NARROW_PLACE) or (
        (),
        b"",
    )
    number = struct.Struct(f"{'<' if elf.little_endian else '>'}{8 if wide else 4}xI")
    data = {
        section["sh_addr"]: data_of(section) for section in elf.iter_sections() if _is_data(section)
    }
    starts = sorted(data)
    for entry in entries:
        name = _name(names, entry[0])
        if not name.startswith(_COUNTED):
            continue
        address = entry[3] if wide else entry[1]
        start = starts[bisect_right(starts, address) - 1] if starts else 0
        with suppress(struct.error, KeyError, ValueError):
            yield name.removeprefix(_COUNTED), number.unpack_from(data[start], address - start)[0]


def _is_data(section: Section) -> bool:
    return section["sh_type"] == "SHT_PROGBITS" and bool(section["sh_flags"] & _WRITABLE)


def _functions(elf: BoundedElf, section: str) -> tuple[Iterator[tuple[int, int, int]], bytes]:
    """Name's place, section and address of each function; and the names."""
    wide = elf.is_wide
    table = _read_table(elf, section, _WIDE_PLACE if wide else _NARROW_PLACE)
    entries, names = table or (iter(()), b"")
    ordered = (entry if wide else (entry[0], entry[2], entry[3], entry[1]) for entry in entries)
    functions = (
        (at, index, address)
        for at, info, index, address in ordered
        if info & _TYPE_BITS == _FUNCTION and 0 < index <= _LAST_SECTION
    )
    return functions, names


def symbols_of(elf: BoundedElf, section: str) -> Iterator[Symbol]:
    """All of `.symtab` or `.dynsym`; the latter is found without section headers, too."""
    table = _table(elf, section)
    if table is not None:
        entries, names = table
        for at, info, index in entries:
            local, chosen = info >> 4 == _LOCAL, info & _TYPE_BITS == _IFUNC
            yield Symbol(_name(names, at), index != 0, local, chosen)
    elif section == ".dynsym" and not elf.num_sections():
        for segment in elf.iter_segments("PT_DYNAMIC"):
            if isinstance(segment, DynamicSegment):
                for symbol in segment.iter_symbols():
                    chosen = symbol["st_info"]["type"] == "STT_LOOS"
                    local = symbol["st_info"]["bind"] == "STB_LOCAL"
                    defined = symbol["st_shndx"] != "SHN_UNDEF"
                    yield Symbol(str(symbol.name), defined, local, chosen)


def defined_among(elf: BoundedElf, section: str, wanted: Collection[str]) -> frozenset[str]:
    """Those of the wanted names that a table defines, without reading all names."""
    table = _table(elf, section)
    if table is None:
        return frozenset()
    entries, names = table
    places: dict[int, str] = {}
    for name in wanted:
        text = name.encode() + b"\0"
        at = names.find(text)
        while at >= 0:  # the end of a longer name may be shared
            places[at] = name
            at = names.find(text, at + 1)
    return frozenset(places[at] for at, _, index in entries if index and at in places)


def weak_definitions(elf: BoundedElf) -> Iterator[tuple[str, int]]:
    """Definitions of an object that others may define too: names, and numbers of sections."""
    table = _table(elf, ".symtab")
    if table is not None:
        entries, names = table
        for at, info, index in entries:
            if info >> 4 in _WEAK and 0 < index <= _LAST_SECTION:
                yield _name(names, at), index


def _table(elf: BoundedElf, section: str) -> tuple[Iterator[tuple[int, ...]], bytes] | None:
    """Name's place, type and binding, section of each symbol; and the names."""
    return _read_table(elf, section, _WIDE if elf.is_wide else _NARROW)


def _read_table(
    elf: BoundedElf, section: str, form: str
) -> tuple[Iterator[tuple[int, ...]], bytes] | None:
    table = elf.get_section_by_name(section)
    if not isinstance(table, SymbolTableSection):
        return None
    texts = elf.get_section(table["sh_link"])
    if not isinstance(texts, StringTableSection):
        return None
    order = "<" if elf.little_endian else ">"
    entry = struct.Struct(order + form)
    data = data_of(table)
    return entry.iter_unpack(data[: len(data) - len(data) % entry.size]), data_of(texts)


def _name(names: bytes, at: int) -> str:
    end = names.find(b"\0", at, at + _LONGEST_NAME)
    return names[at : end if end >= 0 else at + _LONGEST_NAME].decode(errors="replace")
