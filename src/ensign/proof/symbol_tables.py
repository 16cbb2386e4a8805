"""Symbol tables of ELF files, a million symbols in a second.

pyelftools makes an object of each field of each symbol, which takes a hundred times as long; so
only sections are found by it.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from typing import NamedTuple

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.sections import StringTableSection, SymbolTableSection

from ensign.proof.bounded_elf import BoundedElf, data_of

_WIDE_BITS = 64
# Both hold name, type and binding, section; the narrow one has value and size before those two.
_WIDE, _NARROW = "IBxH16x", "I8xBxH"
_LONGEST_NAME = 16 << 10
_TYPE_BITS, _LOCAL, _IFUNC = 0xF, 0, 10
_WEAK = (2, 10)  # the latter are unique in a process
_NO_SECTION = 0xFF00


class Symbol(NamedTuple):
    """`chosen`: one of several functions is taken when the file is loaded (IFUNC)."""

    name: str
    defined: bool
    local: bool = False
    chosen: bool = False


def symbols_of(elf: BoundedElf, section: str) -> Iterator[Symbol]:
    """All of `.symtab` or `.dynsym`; the latter is found without section headers, too."""
    found = _table(elf, section)
    if found is not None:
        entries, names = found
        for at, info, index in entries:
            local, chosen = info >> 4 == _LOCAL, info & _TYPE_BITS == _IFUNC
            yield Symbol(_name(names, at), index != 0, local, chosen)
    elif section == ".dynsym" and not elf.num_sections():
        for segment in elf.iter_segments("PT_DYNAMIC"):
            if isinstance(segment, DynamicSegment):
                for each in segment.iter_symbols():
                    chosen = each["st_info"]["type"] == "STT_LOOS"
                    local = each["st_info"]["bind"] == "STB_LOCAL"
                    defined = each["st_shndx"] != "SHN_UNDEF"
                    yield Symbol(str(each.name), defined, local, chosen)


def defined_among(elf: BoundedElf, section: str, wanted: Collection[str]) -> frozenset[str]:
    """Those of the wanted names that a table defines, without reading all names."""
    found = _table(elf, section)
    if found is None:
        return frozenset()
    entries, names = found
    places: dict[int, str] = {}
    for name in wanted:
        text = name.encode() + b"\0"
        at = names.find(text)
        while at >= 0:  # the end of a longer name may be shared
            places[at] = name
            at = names.find(text, at + 1)
    return frozenset(places[at] for at, _, index in entries if index and at in places)


def weak_definitions(elf: BoundedElf) -> Iterator[tuple[str, int]]:
    """What an object defines for others to define too: names, and the numbers of their sections."""
    found = _table(elf, ".symtab")
    if found is not None:
        entries, names = found
        for at, info, index in entries:
            if info >> 4 in _WEAK and 0 < index < _NO_SECTION:
                yield _name(names, at), index


def _table(elf: BoundedElf, section: str) -> tuple[Iterator[tuple[int, int, int]], bytes] | None:
    """Name's place, type and binding, section of each symbol; and the names."""
    table = elf.get_section_by_name(section)
    if not isinstance(table, SymbolTableSection):
        return None
    texts = elf.get_section(table["sh_link"])
    if not isinstance(texts, StringTableSection):
        return None
    order = "<" if elf.little_endian else ">"
    form = struct.Struct(order + (_WIDE if elf.elfclass == _WIDE_BITS else _NARROW))
    data = data_of(table)
    return form.iter_unpack(data[: len(data) - len(data) % form.size]), data_of(texts)


def _name(names: bytes, at: int) -> str:
    end = names.find(b"\0", at, at + _LONGEST_NAME)
    return names[at : end if end >= 0 else at + _LONGEST_NAME].decode(errors="replace")
