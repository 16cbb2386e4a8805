"""What an artefact is: sizes, and a hash of what of it gets loaded. Its flags: see `proof`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section
from elftools.elf.segments import NoteSegment

_WIDE_BITS = 64


@dataclass(frozen=True, slots=True)
class Artefact:
    """An ELF file. `loadable_sha256` hashes the bytes that are loaded, without the build id.

    `text_bytes` is all code that is loaded: every executable section, not `.text` alone, which
    after BOLT is the hot part. BOLT leaves the whole original code in the file (`.bolt.org.text`),
    and functions without a profile run there; the originals of those that it moved are dead, but
    loaded, and counted.
    """

    size_bytes: int
    text_bytes: int
    loadable_sha256: str


def read_artefact(path: Path) -> Artefact | None:
    """Sizes and hash of an ELF file; None if it is not one."""
    with path.open("rb") as file:
        try:
            elf = ELFFile(file)
            text_bytes = sum(int(each["sh_size"]) for each in _code_sections(elf))
            digest = _loadable_sha256(elf)
        except (ELFError, ValueError):
            return None
        return Artefact(path.stat().st_size, text_bytes, digest)


def _code_sections(elf: ELFFile) -> Iterator[Section]:
    loaded_code = SH_FLAGS.SHF_ALLOC | SH_FLAGS.SHF_EXECINSTR
    for section in elf.iter_sections():
        if section["sh_flags"] & loaded_code == loaded_code:
            yield section


def _loadable_sha256(elf: ELFFile) -> str:
    """Hash each loaded segment's address, size, rights and bytes.

    Left out are the build-id note, which changes with a flag that changes nothing else, and the
    header fields that say where things lie in the file, which change with debug information.
    """
    blank = list(_blank_ranges(elf))
    digest = hashlib.sha256()
    for segment in elf.iter_segments("PT_LOAD"):
        start = segment["p_offset"]
        data = bytearray(segment.data())
        for low, high in blank:
            first, last = max(low - start, 0), min(high - start, len(data))
            if first < last:
                data[first:last] = bytes(last - first)
        shape = (segment["p_vaddr"], segment["p_memsz"], segment["p_flags"], len(data))
        digest.update(repr(shape).encode() + data)
    return digest.hexdigest()


def _blank_ranges(elf: ELFFile) -> Iterator[tuple[int, int]]:
    wide = elf.elfclass == _WIDE_BITS
    # e_shoff; then e_shnum and e_shstrndx, which follow e_shentsize.
    yield (40, 48) if wide else (32, 36)
    yield (60, 64) if wide else (48, 52)
    for index in range(elf.num_segments()):
        header = elf["e_phoff"] + index * elf["e_phentsize"]
        yield (header + 8, header + 16) if wide else (header + 4, header + 8)  # p_offset
    for segment in elf.iter_segments("PT_NOTE"):
        if not isinstance(segment, NoteSegment):
            continue
        for note in segment.iter_notes():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                end = note["n_offset"] + note["n_size"]
                yield end - (note["n_descsz"] + 3) // 4 * 4, end
