"""Start-up code that a link with -ffast-math adds (GCC's crtfastmath.o): it flushes denormals.

It is a constructor, which sets the bits FTZ and DAZ of MXCSR in the process' first task, whoever
loads it. That its bytes are in a constructor tells it from libraries that set the bits for a while.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from elftools.elf.sections import Section

from ensign.proof.bounded_elf import BoundedElf, DamagedFile, data_of, elf_of
from ensign.proof.functions import code_at, loaded_code

FLUSHED = "denormals are flushed to zero for the whole process"


_CONSTRUCTORS = ("SHT_INIT_ARRAY", "SHT_PREINIT_ARRAY")
_OLD_CONSTRUCTORS = ".ctors"
_MOST, _MOST_TABLES, _CODE_BYTES = 4096, 8, 64
_PLACE = struct.Struct("<Q")
_RELOCATION = struct.Struct("<QQq")
_RELATIVE = 8
# stmxcsr [slot]; or [slot], 0x8040 (or by a register, in two or three steps); ldmxcsr [slot]; ret
_SETS_BITS = re.compile(
    rb"^(?:\xf3\x0f\x1e\xfa)?(?:\x55\x48\x89\xe5|\x48\x83\xec.)?"
    rb"\x0f\xae[\x5c\x1c\x5d].{1,8}\x40\x80\x00\x00.{0,8}\x0f\xae[\x54\x14\x55].{1,8}\xc3",
    re.DOTALL,
)


def links_fast_math(path: Path) -> bool:
    """True if a program or library of x86-64 has it; False where it cannot be read."""
    try:
        with elf_of(path) as elf:
            if elf["e_machine"] != "EM_X86_64" or elf["e_type"] not in ("ET_EXEC", "ET_DYN"):
                return False
            segments = loaded_code(elf)
            places = islice(dict.fromkeys(_constructors(elf)), _MOST)
            code = (code_at(elf, segments, place, _CODE_BYTES) for place in places)
            return any(map(_SETS_BITS.match, code))
    except DamagedFile:
        return False


def _constructors(elf: BoundedElf) -> Iterator[int]:
    """Addresses in tables of constructors; of position independent files their relocations' too."""
    tables = [
        section
        for section in elf.iter_sections()
        if section["sh_type"] in _CONSTRUCTORS or section.name == _OLD_CONSTRUCTORS
    ][:_MOST_TABLES]
    for table in tables:
        data = data_of(table)[: _MOST * _PLACE.size]
        yield from (place for (place,) in _PLACE.iter_unpack(data[: len(data) // 8 * 8]) if place)
    if tables:
        yield from _relocated(elf, tables)


def _relocated(elf: BoundedElf, tables: list[Section]) -> Iterator[int]:
    ranges = [range(table["sh_addr"], table["sh_addr"] + table["sh_size"]) for table in tables]
    section = elf.get_section_by_name(".rela.dyn")
    if section is None or section["sh_type"] != "SHT_RELA":
        return
    data = data_of(section)
    size = _RELOCATION.size
    for place, what, value in _RELOCATION.iter_unpack(data[: len(data) // size * size]):
        if what == _RELATIVE and any(place in span for span in ranges):
            yield value
