"""Kinds of ELF files that are no programs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from elftools.elf.segments import NoteSegment

from ensign.proof.bounded_elf import BoundedElf, DamagedFile, data_of, elf_of

_LARGEST_INFO_BYTES = 1 << 20
_MADE_FOR = re.compile(rb"(?:^|\0)vermagic=([^\0 ]+)")
_NOT_PARSED = "its headers lead nowhere"
_PARTS = (".text", ".dynamic")


class FileKind(StrEnum):
    """`DEBUG` is a file that has nothing but the debug information of another one."""

    PROGRAM = "program or library"
    OBJECT = "object"
    MODULE = "kernel module"
    CORE = "core dump"
    DEBUG = "debug information"
    DAMAGED = "damaged"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ElfKind:
    """`detail`: of a core dump who dumped it, of a module its kernel, of a damaged file why."""

    kind: FileKind
    detail: str = ""


def kind_of(path: Path) -> ElfKind:
    """Kind of a file that begins as ELF files do; any other one is damaged."""
    try:
        with elf_of(path) as elf:
            return _kind(elf)
    except DamagedFile as error:
        problem = str(error)
        return ElfKind(
            FileKind.DAMAGED, _NOT_PARSED if problem.startswith("it cannot") else problem
        )


def _kind(elf: BoundedElf) -> ElfKind:
    if elf["e_type"] == "ET_CORE":
        return ElfKind(FileKind.CORE, _dumped_by(elf))
    if elf["e_type"] == "ET_REL":
        module = elf.get_section_by_name(".modinfo")
        if module is None or elf.get_section_by_name(".gnu.linkonce.this_module") is None:
            return ElfKind(FileKind.OBJECT)
        match = _MADE_FOR.search(data_of(module)[:_LARGEST_INFO_BYTES])
        return ElfKind(FileKind.MODULE, match[1].decode(errors="replace") if match else "")
    if elf["e_type"] not in ("ET_EXEC", "ET_DYN"):
        return ElfKind(FileKind.OTHER)
    parts = [section for section in elf.iter_sections() if section.name in _PARTS]
    if parts and all(section["sh_type"] == "SHT_NOBITS" for section in parts):
        return ElfKind(FileKind.DEBUG)
    return ElfKind(FileKind.PROGRAM)


def _dumped_by(elf: BoundedElf) -> str:
    for segment in elf.iter_segments("PT_NOTE"):
        for note in segment.iter_notes() if isinstance(segment, NoteSegment) else ():
            if note["n_type"] == "NT_PRPSINFO":
                name = note["n_desc"]["pr_fname"]
                return bytes(name).partition(b"\0")[0].decode(errors="replace")
    return ""
