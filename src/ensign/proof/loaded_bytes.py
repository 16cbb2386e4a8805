"""Identity of built files: sizes, a hash of what gets loaded, what a loader reads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from elftools.elf.constants import SH_FLAGS
from elftools.elf.dynamic import DynamicSection, DynamicSegment
from elftools.elf.sections import Section
from elftools.elf.segments import NoteSegment

from ensign.host.files import file_sha256
from ensign.model.builds import BuiltFile
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


_PIECE_BYTES = 1 << 20
_PIECES = 32
_FLAGS_1_PIE = 0x0800_0000
_TEXTS = {
    "DT_SONAME": "soname",
    "DT_NEEDED": "needed",
    "DT_RPATH": "rpath",
    "DT_RUNPATH": "runpath",
}
_ARCHIVES = (b"!<arch>\n", b"!<thin>\n")


@dataclass(frozen=True, slots=True)
class Artifact:
    """An ELF file. `loadable_sha256` hashes the bytes that are loaded, without the build id.

    `text_bytes` is all code that is loaded: every executable section, not `.text` alone, which
    after BOLT is the hot part. BOLT leaves the whole original code in the file (`.bolt.org.text`),
    and functions without a profile run there; the originals of those that it moved are dead, but
    loaded, and counted.
    """

    size_bytes: int
    text_bytes: int
    loadable_sha256: str


def read_artifact(path: Path) -> Artifact | None:
    """Sizes and hash of an ELF file; None if it is not one."""
    size_bytes = path.stat().st_size
    try:
        with elf_of(path) as elf:
            text_bytes = sum(int(code_section["sh_size"]) for code_section in code_sections(elf))
            return Artifact(size_bytes, text_bytes, _loadable_sha256(elf))
    except DamagedFile:
        return None


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A loader's view of an ELF file: how it is called, what it needs, where it looks.

    `search` are the folders of RUNPATH, or of RPATH, as written.
    """

    is_program: bool
    soname: str = ""
    needed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


def read_dynamic(path: Path) -> Dynamic | None:
    """A loader's view of a program or shared library; None for anything else."""
    try:
        with elf_of(path) as elf:
            if elf["e_type"] not in ("ET_EXEC", "ET_DYN"):
                return None
            return _dynamic(elf)
    except DamagedFile:
        return None


def loader_name(path: str) -> str:
    """Name by which a loader asks for a file: its soname, else its own name."""
    dynamic = read_dynamic(Path(path))
    return (dynamic.soname if dynamic is not None else "") or Path(path).name


def _dynamic(elf: BoundedElf) -> Dynamic:
    is_program = elf["e_type"] == "ET_EXEC" or any(elf.iter_segments("PT_INTERP"))
    texts: dict[str, list[str]] = {}
    for segment in elf.iter_segments("PT_DYNAMIC"):
        for tag in segment.iter_tags() if isinstance(segment, DynamicSegment) else ():
            name = _TEXTS.get(str(tag.entry.d_tag))
            if name is not None:
                texts.setdefault(name, []).append(str(getattr(tag, name)))
            elif tag.entry.d_tag == "DT_FLAGS_1":
                is_program = is_program or bool(tag.entry.d_val & _FLAGS_1_PIE)
    paths = texts.get("runpath") or texts.get("rpath") or [""]
    return Dynamic(
        is_program=is_program,
        soname=texts.get("soname", [""])[-1],
        needed=tuple(texts.get("needed", ())),
        search=tuple(part for part in paths[-1].split(":") if part),
    )


def read_built(path: Path, name: str) -> BuiltFile:
    """Identity of a kept file, to be called `name`."""
    dynamic = read_dynamic(path)
    artifact = None if dynamic is None else read_artifact(path)
    if dynamic is not None and artifact is not None:
        return BuiltFile(
            path=name,
            kind="program" if dynamic.is_program else "library",
            size_bytes=artifact.size_bytes,
            text_bytes=artifact.text_bytes,
            sha256=artifact.loadable_sha256,
            soname=dynamic.soname,
        )
    kind: Literal["object", "data"] = "object" if _is_object(path) else "data"
    return BuiltFile(name, kind, path.stat().st_size, 0, file_sha256(path))


def _is_object(path: Path) -> bool:
    """True if it is an object or an archive: a linker reads it, no loader does."""
    with path.open("rb") as file:
        if file.read(len(_ARCHIVES[0])) in _ARCHIVES:
            return True
    try:
        with elf_of(path) as elf:
            return bool(elf["e_type"] == "ET_REL")
    except DamagedFile:
        return False


def code_sections(elf: BoundedElf) -> Iterator[Section]:
    """Every executable section that is loaded."""
    loaded_code = SH_FLAGS.SHF_ALLOC | SH_FLAGS.SHF_EXECINSTR
    for section in elf.iter_sections():
        if section["sh_flags"] & loaded_code == loaded_code:
            yield section


def pieces(size: int, total: int, most: int) -> Iterator[tuple[int, int]]:
    """Places and lengths in a section so that of all code (`total`) at most so much is read."""
    if total <= most:
        yield 0, size
        return
    share = max(1, size * most // max(total, 1))
    number = max(1, min(_PIECES, share // 4096))
    for index in range(number):
        yield index * (size // number), share // number


def _loadable_sha256(elf: BoundedElf) -> str:
    """Hash each loaded segment's address, size, rights and bytes.

    Left out are the build-id note, which changes with a flag that changes nothing else, and the
    header fields that say where things lie in the file, which change with debug information.
    """
    blank = list(_blank_ranges(elf))
    digest = hashlib.sha256()
    for segment in elf.iter_segments("PT_LOAD"):
        start = segment["p_offset"]
        size = max(min(segment["p_filesz"], elf.size_bytes - start), 0)
        shape = (segment["p_vaddr"], segment["p_memsz"], segment["p_flags"], size)
        digest.update(repr(shape).encode())
        for at in range(start, start + size, _PIECE_BYTES):
            data = bytearray(elf.piece(at, min(_PIECE_BYTES, start + size - at)))
            for low, high in blank:
                first, last = max(low - at, 0), min(high - at, len(data))
                if first < last:
                    data[first:last] = bytes(last - first)
            digest.update(data)
    return digest.hexdigest()


def _blank_ranges(elf: BoundedElf) -> Iterator[tuple[int, int]]:
    wide = elf.is_wide
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
