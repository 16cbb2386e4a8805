"""What an artefact is, and what it shows of the flags that were asked for."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import NoteSegment

from ensign.host.files import tree_entries
from ensign.model.findings import Finding, Severity

_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
_LEVEL = re.compile(r"(?<!\S)-O(?:[0-9]|s|g|z|fast)?(?!\S)")
_WIDE_BITS = 64
_NO_DEBUG = "no debug information, so the optimisation level cannot be seen (add -g)"


@dataclass(frozen=True, slots=True)
class Artefact:
    """An ELF file. `loadable_sha256` hashes the bytes that are loaded, without the build id."""

    size_bytes: int
    text_bytes: int
    loadable_sha256: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a build left to judge its flags by.

    `levels` counts the debug information's compile units by optimisation level, `?` where none is
    recorded; `lto_units` are those generated at the link by GCC. `objects` counts the object files
    of the build's tree, `lto_objects` those that hold an intermediate language.
    """

    levels: tuple[tuple[str, int], ...]
    lto_units: int
    objects: int
    lto_objects: int
    comments: tuple[str, ...]


def read_artefact(path: Path) -> Artefact | None:
    """Sizes and hash of an ELF file; None if it is not one."""
    with path.open("rb") as file:
        try:
            elf = ELFFile(file)
            text = elf.get_section_by_name(".text")
            digest = _loadable_sha256(elf)
        except (ELFError, ValueError):
            return None
        text_bytes = 0 if text is None else int(text["sh_size"])
        return Artefact(path.stat().st_size, text_bytes, digest)


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


def read_evidence(artefact: Path, tree: Path) -> Evidence:
    """Read the evidence of a build from its artefact and the object files of its tree."""
    levels: Counter[str] = Counter()
    lto_units = 0
    comments: tuple[str, ...] = ()
    with artefact.open("rb") as file:
        try:
            elf = ELFFile(file)
            comments = _comments(elf)
            for producer in _producers(elf):
                level = _LEVEL.findall(producer)
                levels[_plain(level[-1]) if level else "?"] += 1
                lto_units += producer.startswith("GNU GIMPLE")
        except (ELFError, ValueError):
            pass
    objects, lto_objects = _count_objects(tree)
    return Evidence(tuple(sorted(levels.items())), lto_units, objects, lto_objects, comments)


def _plain(level: str) -> str:
    return "-O1" if level == "-O" else level


def _comments(elf: ELFFile) -> tuple[str, ...]:
    section = elf.get_section_by_name(".comment")
    if section is None:
        return ()
    parts = section.data().split(b"\0")
    return tuple(sorted({part.decode(errors="replace") for part in parts if part}))


def _producers(elf: ELFFile) -> Iterator[str]:
    if not elf.has_dwarf_info():
        return
    dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
    for unit in dwarf.iter_CUs():
        top = unit.get_top_DIE()
        if top.tag == "DW_TAG_compile_unit" and "DW_AT_producer" in top.attributes:
            value = top.attributes["DW_AT_producer"].value
            yield value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _count_objects(tree: Path) -> tuple[int, int]:
    objects = lto_objects = 0
    for name, path in tree_entries(tree):
        if name.endswith(".o") and path.is_file() and not path.is_symlink():
            objects += 1
            lto_objects += holds_intermediate(path)
    return objects, lto_objects


def holds_intermediate(path: Path) -> bool:
    """Whether an object file is for LTO."""
    with path.open("rb") as file:
        if file.read(4) in _BITCODE:
            return True
        try:
            sections = ELFFile(file).iter_sections()
            return any(section.name.startswith(".gnu.lto_") for section in sections)
        except (ELFError, ValueError):
            return False


def judge(evidence: Evidence, optimization: str, lto: str, variant: str) -> list[Finding]:
    """Say which requested flag has no trace. What cannot be known is no finding."""
    findings = []
    seen = dict(evidence.levels)
    wanted = _plain(optimization)
    if seen and "?" not in seen and _LEVEL.fullmatch(wanted) and wanted not in seen:
        others = ", ".join(f"{level} ({count})" for level, count in evidence.levels)
        findings.append(f"{wanted} was asked for, but the compile units show {others}")
    if lto != "off" and evidence.objects and not evidence.lto_objects:
        findings.append("LTO was asked for, but no object file holds an intermediate language")
    if lto == "off" and (evidence.lto_objects or evidence.lto_units):
        findings.append("LTO was not asked for, but the build used it")
    return [
        Finding("flag-without-trace", Severity.WARNING, f"{variant}: {text}", variant)
        for text in findings
    ]


def describe(evidence: Evidence) -> tuple[str, ...]:
    """Say in sentences what was seen, and what cannot be."""
    known = [(level, count) for level, count in evidence.levels if level != "?"]
    unknown = dict(evidence.levels).get("?", 0)
    lines = []
    if known:
        lines.append(
            "compile units by level: " + ", ".join(f"{level} {count}" for level, count in known)
        )
    if unknown:
        lines.append(f"{unknown} compile units record no level (Clang: add -grecord-command-line)")
    if not evidence.levels:
        lines.append(_NO_DEBUG)
    if evidence.lto_units:
        lines.append(f"{evidence.lto_units} units were generated at the link")
    if evidence.objects:
        lines.append(f"{evidence.lto_objects} of {evidence.objects} object files are for LTO")
    lines += evidence.comments
    return tuple(lines)
