"""What of an ELF file runs or is read when it runs, wherever tables of the loader happen to lie.

A build-id of another length moves these tables, and nothing else; `loaded_bytes` then differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.constants import SH_FLAGS
from elftools.elf.dynamic import DynamicSection
from elftools.elf.sections import Section

from ensign.proof.bounded_elf import BoundedElf, DamagedFile, elf_of

_BUILD_ID = ".note.gnu.build-id"
# What a program reaches by address; all else is found by the loader, wherever it lies.
_PLACED = ("SHT_PROGBITS", "SHT_NOBITS", "SHT_INIT_ARRAY", "SHT_FINI_ARRAY", "SHT_PREINIT_ARRAY")
_NOT_PLACED = (".interp",)
_PLACES = ("PT_TLS", "PT_GNU_RELRO")
# Tags whose value is a number or a text, not an address.
_VALUES = (
    "DT_FLAGS", "DT_FLAGS_1", "DT_PLTREL", "DT_PLTRELSZ", "DT_RELASZ", "DT_RELACOUNT", "DT_RELRSZ",
    "DT_INIT_ARRAYSZ", "DT_FINI_ARRAYSZ", "DT_NEEDED", "DT_SONAME", "DT_RPATH", "DT_RUNPATH",
    "DT_BIND_NOW", "DT_TEXTREL", "DT_SYMBOLIC",
)  # fmt: skip
_SYMBOL_BYTES = {32: (16, 14), 64: (24, 6)}


def content_sha256(path: Path) -> str:
    """A hash that is equal for programs that run alike; empty where the file cannot tell."""
    digest = hashlib.sha256()
    try:
        with elf_of(path) as elf:
            if not elf.num_sections():
                return ""
            for part in _parts(elf):
                digest.update(part)
    except (DamagedFile, OSError):
        return ""
    return digest.hexdigest()


def _parts(elf: BoundedElf) -> Iterator[bytes]:
    yield repr([elf[key] for key in ("e_type", "e_machine", "e_entry", "e_flags")]).encode()
    for segment in elf.iter_segments():
        place = (segment["p_vaddr"], segment["p_memsz"]) if segment["p_type"] in _PLACES else ()
        if segment["p_type"] != "PT_NOTE":
            yield repr((segment["p_type"], segment["p_flags"], *place)).encode()
    for section in elf.iter_sections():
        if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section.name != _BUILD_ID:
            yield from _of_section(elf, section)


def _of_section(elf: BoundedElf, section: Section) -> Iterator[bytes]:
    kind = section["sh_type"]
    placed = kind in _PLACED and section.name not in _NOT_PLACED
    place = section["sh_addr"] if placed else None
    yield repr((section.name, kind, section["sh_flags"], section["sh_size"], place)).encode()
    if kind == "SHT_NOBITS":
        return
    if isinstance(section, DynamicSection):
        for tag in section.iter_tags():
            value = tag.entry.d_val if tag.entry.d_tag in _VALUES else None
            yield repr((tag.entry.d_tag, value)).encode()
        return
    data = bytearray(elf.piece(section["sh_offset"], min(section["sh_size"], elf.size_bytes)))
    if kind == "SHT_DYNSYM":
        _without_section_numbers(data, elf.elfclass)
    yield bytes(data)


def _without_section_numbers(symbols: bytearray, bits: int) -> None:
    """In which section a symbol lies follows from its address; whether it is defined is kept."""
    size, at = _SYMBOL_BYTES[bits]
    for start in range(0, len(symbols) - size + 1, size):
        defined = any(symbols[start + at : start + at + 2])
        symbols[start + at : start + at + 2] = bytes((int(defined), 0))
