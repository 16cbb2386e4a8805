"""Sections of an object file, read as fast as thousands of them want to be."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ensign.proof.bounded_elf import BoundedElf, DamagedFile

_MOST_SECTIONS = 0xFF00


class ObjectSection(NamedTuple):
    """What a section header says: `kind` is sh_type, `at` and `size` are in bytes."""

    name: str
    kind: int
    flags: int
    at: int
    size: int
    info: int


def object_sections(elf: BoundedElf) -> list[ObjectSection]:
    """All of them, by number. DamagedFile where there are too many."""
    count, wide = elf.num_sections(), elf.is_wide
    if count >= _MOST_SECTIONS:
        raise DamagedFile("it has too many sections")
    order = "<" if elf.little_endian else ">"
    form = struct.Struct(order + ("IIQ8xQQ4xI16x" if wide else "III4xII4xI8x"))
    rows = list(form.iter_unpack(elf.piece(elf["e_shoff"], count * form.size)))
    if not rows:
        return []
    names_at, names_size = rows[elf.get_shstrndx()][3:5]
    names = elf.piece(names_at, names_size)

    def name(at: int) -> str:
        return names[at : names.find(b"\0", at)].decode(errors="replace")

    return [ObjectSection(name(row[0]), *row[1:]) for row in rows]
