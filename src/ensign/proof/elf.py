"""Reading ELF artifacts: compile units, protections, calls through the PLT."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import NoteSection, SymbolTableSection

from ensign.meter.client import find_meter
from ensign.meter.questions import compile_units
from ensign.proof.bounded_elf import BoundedElf, DamagedFile, damage_told, data_of, elf_of
from ensign.proof.facts import Binary, CodePlaces, Hardening, Unit, UnitKind
from ensign.proof.identity import Identity, build_id_of, dynamic_tags
from ensign.proof.symbol_tables import function_places, function_symbols, symbols_of
from ensign.toolchains.alignment import FUNCTION_BYTES

_FOLDER = Path("/usr/lib/debug")
_PIECE_BYTES = 1 << 20
_SHORTEST_ID = 4
_CHECKSUM_BYTES = 4


def find_debug_file(path: Path, identity: Identity, folder: Path = _FOLDER) -> Path | None:
    """The one that belongs to a program, by its build id, else by the checksum that it names.

    None where it is not here. One of another build is none.
    """
    if len(identity.build_id) > _SHORTEST_ID:
        named = folder / ".build-id" / identity.build_id[:2] / f"{identity.build_id[2:]}.debug"
        if _is_of(named, identity.build_id):
            return named
    link = _link(path)
    if link is None:
        return None
    name, checksum = link
    real = path.resolve().parent
    for file in (real / name, real / ".debug" / name, Path(f"{folder}{real}") / name):
        if file.is_file() and file.resolve() != path.resolve() and _checksum(file) == checksum:
            return file
    return None


def _is_of(file: Path, build_id: str) -> bool:
    if not file.is_file():
        return False
    try:
        with elf_of(file) as elf:  # its loader's tables are elsewhere, so no more is read
            return build_id_of(elf) == build_id
    except DamagedFile:
        return False


def _link(path: Path) -> tuple[str, int] | None:
    try:
        with elf_of(path) as elf:
            section = elf.get_section_by_name(".gnu_debuglink")
            if section is None:
                return None
            data = data_of(section)
            little = elf.little_endian
    except DamagedFile:
        return None
    name = data.partition(b"\0")[0].decode(errors="replace")
    if not name or "/" in name or len(data) < len(name) + 1 + _CHECKSUM_BYTES:
        return None
    return name, int.from_bytes(data[-_CHECKSUM_BYTES:], "little" if little else "big")


def _checksum(path: Path) -> int:
    checksum = 0
    for piece in _pieces(path):
        checksum = zlib.crc32(piece, checksum)
    return checksum


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


_LEFT_BY_BOLT = ".bolt.org.text"


def code_places(elf: BoundedElf) -> CodePlaces:
    """Places of code. A linker gives a section the largest alignment of its parts."""
    sections = list(elf.iter_sections())
    compiled = {
        at: section for at, section in enumerate(sections) if section.name.startswith(".text")
    }
    begins = [address for section, address in function_places(elf) if section in compiled]
    bolted = any(section.name == _LEFT_BY_BOLT for section in sections)
    alignments = [] if bolted else [int(section["sh_addralign"]) for section in compiled.values()]
    return CodePlaces(
        functions=len(begins),
        aligned=sum(address % FUNCTION_BYTES == 0 for address in begins),
        strictest=max(alignments, default=0),
    )


_GNU = re.compile(r"GNU (\S+) (\d+(?:\.\d+)*)(?: \S*prerelease\S*)?\S*")
_CLANG = re.compile(r"clang version (\d+(?:\.\d+)*)")
_RUSTC = re.compile(r"rustc version (\d[\w.-]*)")
_ASSEMBLER = 0x8001  # DW_LANG_Mips_Assembler, whatever the processor
_OF_C = ("C", "Objective-C", "GIMPLE")
# Clang wrote down a call that compiled one file: the first word that is called like a source.
_SOURCE = re.compile(r"[^-].*\.(?:c|cc|cp|cpp|cxx|c\+\+|C|CPP|i|ii|m|mm|M|s|S|sx)")
_BLANK = re.compile(r"(?<!\\) ")
_JUMP_SLOT = {"EM_X86_64": 7, "EM_386": 7, "EM_AARCH64": 1026}
_CANARIES = ("__stack_chk_fail", "__stack_chk_guard")
FORTIFIED = frozenset(
    ("printf", "fprintf", "sprintf", "snprintf", "vprintf", "vfprintf", "vsprintf", "vsnprintf")
)
_NOW, _FLAGS_1_NOW = 0x8, 0x1
_CET_BITS = 0x3
_EXECUTABLE = 0x1


def read_binary(path: Path, *, units: bool = True) -> Binary | None:
    """Read a program or shared library; None for anything else. `units` may take a while."""
    try:
        with elf_of(path) as elf:
            if elf["e_type"] not in ("ET_EXEC", "ET_DYN"):
                return None
            return _binary(elf, path, with_units=units)
    except DamagedFile:
        return None


def _binary(elf: BoundedElf, path: Path, *, with_units: bool) -> Binary:
    tags = dynamic_tags(elf)
    pie = elf["e_type"] == "ET_DYN" and tags.pie
    imports, exports = _dynamic_symbols(elf)
    slots = tuple(_jump_slots(elf))
    names = {section.name for section in elf.iter_sections()}
    units, unread = _units_or_why(elf, path) if with_units else ((), "")
    return Binary(
        path=str(path),
        shared_library=elf["e_type"] == "ET_DYN" and not pie,
        units=units,
        comments=comments(elf),
        hardening=Hardening(
            pie=pie,
            relro=any(elf.iter_segments("PT_GNU_RELRO")),
            bind_now=_binds_now(tags.numbers),
            executable_stack=any(
                segment["p_flags"] & _EXECUTABLE for segment in elf.iter_segments("PT_GNU_STACK")
            ),
            canary=any(name in imports for name in _CANARIES),
            checked=tuple(sorted(name for name in imports if name.endswith("_chk"))),
            unchecked=tuple(sorted(imports & FORTIFIED)),
            cet=_cet(elf),
        ),
        own_plt=tuple(sorted(name for name in slots if name in exports)),
        exported_functions=sum(1 for _ in function_symbols(elf, ".dynsym")),
        plt_imports=sum(name not in exports for name in slots),
        bolted=".note.bolt_info" in names or ".bolt.org.text" in names,
        places=code_places(elf),
        has_symbols=".symtab" in names,
        debug_elsewhere=".gnu_debuglink" in names,
        debug_unread=unread,
        read=True,
    )


def _units_or_why(elf: BoundedElf, path: Path) -> tuple[tuple[Unit, ...], str]:
    """The units, or why they cannot be read: the rest of the file may be whole."""
    try:
        with damage_told():
            return tuple(recorded_units(elf, path)), ""
    except DamagedFile as error:
        return (), str(error)


def _binds_now(tags: dict[str, int]) -> bool:
    now = tags.get("DT_FLAGS_1", 0) & _FLAGS_1_NOW or tags.get("DT_FLAGS", 0) & _NOW
    return bool(now) or "DT_BIND_NOW" in tags


def _dynamic_symbols(elf: BoundedElf) -> tuple[frozenset[str], frozenset[str]]:
    """Names imported, and names defined and exported."""
    imports: set[str] = set()
    exports: set[str] = set()
    for symbol in symbols_of(elf, ".dynsym"):
        (exports if symbol.defined else imports).add(symbol.name)
    return frozenset(imports - {""}), frozenset(exports)


def _jump_slots(elf: BoundedElf) -> Iterator[str]:
    wanted = _JUMP_SLOT.get(elf["e_machine"])
    for section in elf.iter_sections():
        if isinstance(section, RelocationSection) and section.name in (".rela.plt", ".rel.plt"):
            table = elf.get_section(section["sh_link"])
            if not isinstance(table, SymbolTableSection):
                continue
            for relocation in section.iter_relocations():
                if relocation["r_info_type"] == wanted and relocation["r_info_sym"]:
                    yield table.get_symbol(relocation["r_info_sym"]).name


def _cet(elf: BoundedElf) -> bool:
    section = elf.get_section_by_name(".note.gnu.property")
    if not isinstance(section, NoteSection):
        return False
    for note in section.iter_notes():
        descriptions = note["n_desc"]
        for description in descriptions if isinstance(descriptions, list) else ():
            if description["pr_type"] == "GNU_PROPERTY_X86_FEATURE_1_AND":
                return int(description["pr_data"]) & _CET_BITS == _CET_BITS
    return False


def comments(elf: BoundedElf) -> tuple[str, ...]:
    """The versions in `.comment`: of compilers that made any part, of the linker."""
    section = elf.get_section_by_name(".comment")
    if section is None:
        return ()
    parts = data_of(section).split(b"\0")
    return tuple(sorted({part.decode(errors="replace") for part in parts if part}))


def units_of(source: Path | bytes) -> Iterator[Unit]:
    """The compile units of a program, a library or an object, or of the content of one.

    DamagedFile where its debug information cannot be read.
    """
    units = compile_units(find_meter(), source)
    if isinstance(units, str):
        raise DamagedFile(units)
    for unit in units:
        read = unit_of(unit.producer, unit.name, unit.folder)
        # Clang assembles, too, and has no flags to record there.
        assembled = unit.language == _ASSEMBLER
        yield replace(read, kind=UnitKind.ASSEMBLER, flags=None) if assembled else read


def recorded_units(elf: BoundedElf, source: Path | bytes, name: str = "") -> Iterator[Unit]:
    """Units by debug information, else by the command lines that `.GCC.command.line` keeps.

    Of those that say no source, `name` and a number is the name.
    """
    units = tuple(units_of(source))
    section = elf.get_section_by_name(".GCC.command.line")
    if units or section is None:
        yield from units
        return
    lines = [word.decode(errors="replace") for word in data_of(section).split(b"\0") if word]
    for number, line in enumerate(lines, 1):
        unit = _unit_of_line(line)
        if unit is not None:
            unnamed = name or f"command line {number}"
            yield unit if unit.name else replace(unit, name=unnamed)


def _unit_of_line(line: str) -> Unit | None:
    """GCC writes its producer, Clang the command."""
    if _GNU.match(line):
        return unit_of(line, "", "")
    words = tuple(word.replace("\\ ", " ") for word in _BLANK.split(line))
    if "clang" not in words[0]:
        return None
    named = next(filter(_SOURCE.fullmatch, words), "")
    return Unit(named, "", UnitKind.CLANG, "Clang", words[1:])


def unit_of(producer: str, name: str, folder: str) -> Unit:
    """A unit from its `DW_AT_producer`, for GCC (which records flags) and Clang (on request)."""
    return Unit(name, folder, *_made_by(producer))


@lru_cache(maxsize=1000)  # thousands of units have the same
def _made_by(producer: str) -> tuple[UnitKind, str, tuple[str, ...] | None]:
    clang = _CLANG.search(producer)
    if clang:
        _, slash, command = producer.partition(" /")
        words = tuple(word.replace("\\ ", " ") for word in _BLANK.split(command)[1:])
        flags = words if slash and words else None
        return UnitKind.CLANG, f"Clang {clang[1]}", flags
    rust = _RUSTC.search(producer)
    if rust is not None:
        return UnitKind.OTHER, f"rustc {rust[1]}", None
    gnu = _GNU.match(producer)
    if gnu is None:
        return UnitKind.OTHER, producer.split(" -", maxsplit=1)[0], None
    words = tuple(producer[gnu.end() :].split())
    if gnu[1] == "AS":
        return UnitKind.ASSEMBLER, f"GNU as {gnu[2]}", None
    if not gnu[1].startswith(_OF_C):
        return UnitKind.OTHER, f"GNU {gnu[1]} {gnu[2]}", words
    if gnu[1] == "GIMPLE":
        kind = UnitKind.LTRANS
    else:
        lto = any(word.startswith("-flto") for word in words)
        kind = UnitKind.EARLY if lto else UnitKind.WHOLE
    return kind, f"GCC {gnu[2]}", words


def with_debug_file(binary: Binary, file: Path) -> Binary:
    """With the units of the file that has its debug information."""
    try:
        return replace(binary, units=tuple(units_of(file)), debug_file=str(file))
    except DamagedFile as error:
        return replace(binary, debug_unread=f"{file}: {error}")


def symbols(elf: BoundedElf) -> tuple[frozenset[str], frozenset[str]]:
    """Global symbols that an object or program defines, and those it needs."""
    defines: set[str] = set()
    needs: set[str] = set()
    for symbol in symbols_of(elf, ".symtab"):
        if not symbol.local and symbol.name and not symbol.name.startswith("__gnu_lto_"):
            (defines if symbol.defined else needs).add(symbol.name)
    return frozenset(defines), frozenset(needs)


def exported(path: Path) -> frozenset[str]:
    """Symbols that a shared library offers; nothing if it is not one (a linker script, say)."""
    try:
        with elf_of(path) as elf:
            return _dynamic_symbols(elf)[1]
    except DamagedFile:
        return frozenset()
