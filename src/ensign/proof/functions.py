"""Functions of ELF files: where they begin, by the table for unwinding and by symbols."""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from elftools.elf.sections import Section
from elftools.elf.segments import Segment

from ensign.proof.bounded_elf import BoundedElf, DamagedFile
from ensign.proof.loaded_bytes import code_sections, pieces
from ensign.proof.symbol_tables import function_symbols

# .eh_frame_hdr with a sorted table of 4-byte places relative to itself (LSB, 10.6.2).
_HEADER = struct.Struct("<4BiI")
_TABLE_FORM = (1, 0x1B, 0x03, 0x3B)
_ENTRY = struct.Struct("<iI")
# `push rbp; mov rbp, rsp`, in the way of GCC, Clang and rustc.
_PROLOGUE = re.compile(rb"(?:\xf3\x0f\x1e\xfa)?\x55\x48\x89\xe5")

_EXECUTABLE, _MOST_SEGMENTS = 1, 64


class Function(NamedTuple):
    """Its code, with padding behind it; `name` is empty where no symbol is there."""

    address: int
    code: bytes
    name: str = ""


def function_starts(elf: BoundedElf) -> tuple[int, ...]:
    """Starts of functions, in order, by the table for unwinding; empty where it has none."""
    for segment in elf.iter_segments("PT_GNU_EH_FRAME"):
        at, size = int(segment["p_offset"]), int(segment["p_filesz"])
        data = elf.piece(at, size)
        if len(data) < _HEADER.size:
            return ()
        *form, _, count = _HEADER.unpack_from(data)
        if tuple(form) != _TABLE_FORM:
            return ()
        table = data[_HEADER.size :][: count * _ENTRY.size]
        entries = _ENTRY.iter_unpack(table[: len(table) - len(table) % _ENTRY.size])
        return tuple(int(segment["p_vaddr"]) + place for place, _ in entries)
    return ()


def loaded_code(elf: BoundedElf) -> tuple[Segment, ...]:
    """Executable segments, of which no file has many."""
    loaded = (
        segment for segment in elf.iter_segments("PT_LOAD") if segment["p_flags"] & _EXECUTABLE
    )
    return tuple(islice(loaded, _MOST_SEGMENTS))


def code_at(elf: BoundedElf, segments: Iterable[Segment], address: int, size: int) -> bytes:
    """So much of what is loaded there, or as much as the file has."""
    for segment in segments:
        at = address - int(segment["p_vaddr"])
        if 0 <= at < int(segment["p_filesz"]):
            there = min(size, int(segment["p_filesz"]) - at)
            return elf.piece(int(segment["p_offset"]) + at, there)
    return b""


def functions_of(elf: BoundedElf, most_bytes: int) -> Iterator[Function]:
    """All functions, or of so many bytes of code, spread evenly, those that are whole there."""
    sections = [
        (number, each)
        for number, each in _code_sections(elf)
        if each["sh_type"] == "SHT_PROGBITS" and not each.name.startswith(".plt")
    ]
    total = sum(int(each["sh_size"]) for _, each in sections)
    unwound, named = function_starts(elf), _names(elf)
    left = 2 * len(unwound)
    for number, section in sections:
        begin, size = int(section["sh_addr"]), min(int(section["sh_size"]), elf.size_bytes)
        names = named.get(number, {})
        low, high = bisect_left(unwound, begin), bisect_left(unwound, begin + size)
        left -= max(0, high - low)
        if left < 0:
            raise DamagedFile("its sections of code lie over each other")
        starts = sorted({*unwound[low:high], *names})
        for at, length in pieces(size, total, most_bytes):
            code = elf.piece(int(section["sh_offset"]) + at, length)
            places = starts or [begin + at + match.start() for match in _PROLOGUE.finditer(code)]
            # What is there besides belongs to no function that is known.
            first = bisect_left(places, begin + at)
            last = bisect_left(places, begin + at + len(code))
            ends = places[first + 1 : last + 1]
            if last == len(places) and last > first:
                ends = [*ends, begin + size]
            for start, end in zip(places[first:last], ends, strict=False):
                if end <= begin + at + len(code):
                    body = code[start - begin - at : end - begin - at]
                    yield Function(start, body, names.get(start, ""))


def _code_sections(elf: BoundedElf) -> Iterator[tuple[int, Section]]:
    """With their numbers, by which symbols of objects name them."""
    wanted = {id(code_section) for code_section in code_sections(elf)}
    return ((n, section) for n, section in enumerate(elf.iter_sections()) if id(section) in wanted)


def _names(elf: BoundedElf) -> dict[int, dict[int, str]]:
    """Symbols by number of the section and address; in objects that is the place in the section."""
    names: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for table in (".dynsym", ".symtab"):
        for symbol in function_symbols(elf, table):
            names[symbol.section][symbol.address] = symbol.name
    return names
