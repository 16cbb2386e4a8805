"""Reading ELF artifacts: compile units, protections, calls through the PLT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import NoteSection, SymbolTableSection

from ensign.proof.bounded_elf import BoundedElf, DamagedFile, data_of, elf_of
from ensign.proof.facts import Binary, Hardening, Unit, UnitKind

_GNU = re.compile(r"GNU (\S+) (\d+(?:\.\d+)*)(?: \S*prerelease\S*)?\S*")
_CLANG = re.compile(r"clang version (\d+(?:\.\d+)*)")
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
_NOW, _FLAGS_1_NOW, _FLAGS_1_PIE = 0x8, 0x1, 0x0800_0000
_CET_BITS = 0x3
_EXECUTABLE = 0x1


def read_binary(path: Path) -> Binary | None:
    """Read a program or shared library; None for anything else."""
    try:
        with elf_of(path) as elf:
            if elf["e_type"] not in ("ET_EXEC", "ET_DYN"):
                return None
            return _binary(elf, path)
    except DamagedFile:
        return None


def _binary(elf: BoundedElf, path: Path) -> Binary:
    dynamic = _dynamic_tags(elf)
    flags_1 = dynamic.get("DT_FLAGS_1", 0)
    interpreter = any(elf.iter_segments("PT_INTERP"))
    pie = elf["e_type"] == "ET_DYN" and (bool(flags_1 & _FLAGS_1_PIE) or interpreter)
    imports, exports = _dynamic_symbols(elf)
    slots = tuple(_jump_slots(elf))
    names = {section.name for section in elf.iter_sections()}
    return Binary(
        path=str(path),
        shared_library=elf["e_type"] == "ET_DYN" and not pie,
        units=tuple(recorded_units(elf)),
        comments=comments(elf),
        hardening=Hardening(
            pie=pie,
            relro=any(elf.iter_segments("PT_GNU_RELRO")),
            bind_now=bool(
                flags_1 & _FLAGS_1_NOW or dynamic.get("DT_FLAGS", 0) & _NOW
            ) or "DT_BIND_NOW" in dynamic,
            executable_stack=any(
                segment["p_flags"] & _EXECUTABLE for segment in elf.iter_segments("PT_GNU_STACK")
            ),
            canary=any(name in imports or name in exports for name in _CANARIES),
            checked=tuple(sorted(name for name in imports if name.endswith("_chk"))),
            unchecked=tuple(sorted(imports & FORTIFIED)),
            cet=_cet(elf),
        ),
        own_plt=tuple(sorted(name for name in slots if name in exports)),
        plt_imports=sum(name not in exports for name in slots),
        bolted=".note.bolt_info" in names or ".bolt.org.text" in names,
        has_symbols=".symtab" in names,
        debug_elsewhere=".gnu_debuglink" in names,
        read=True,
    )  # fmt: skip


def _dynamic_tags(elf: BoundedElf) -> dict[str, int]:
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            return {str(tag.entry.d_tag): int(tag.entry.d_val) for tag in section.iter_tags()}
    return {}


def _dynamic_symbols(elf: BoundedElf) -> tuple[frozenset[str], frozenset[str]]:
    """Names imported, and names defined and exported."""
    table = elf.get_section_by_name(".dynsym")
    if not isinstance(table, SymbolTableSection):
        return frozenset(), frozenset()
    imports = {each.name for each in table.iter_symbols() if each["st_shndx"] == "SHN_UNDEF"}
    exports = {each.name for each in table.iter_symbols() if each["st_shndx"] != "SHN_UNDEF"}
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
        for each in descriptions if isinstance(descriptions, list) else ():
            if each["pr_type"] == "GNU_PROPERTY_X86_FEATURE_1_AND":
                return int(each["pr_data"]) & _CET_BITS == _CET_BITS
    return False


def comments(elf: BoundedElf) -> tuple[str, ...]:
    """The versions in `.comment`: of compilers that made any part, of the linker."""
    section = elf.get_section_by_name(".comment")
    if section is None:
        return ()
    parts = data_of(section).split(b"\0")
    return tuple(sorted({part.decode(errors="replace") for part in parts if part}))


def units_of(elf: BoundedElf) -> Iterator[Unit]:
    """The compile units in the debug information of a program, a library or an object."""
    if not elf.has_dwarf_info():
        return
    relocatable = elf["e_type"] == "ET_REL"
    for unit in elf.debug_information(relocate=relocatable).iter_CUs():
        top = unit.get_top_DIE()
        if top.tag != "DW_TAG_compile_unit":
            continue
        values = {
            name: top.attributes[key].value if key in top.attributes else b""
            for name, key in (
                ("producer", "DW_AT_producer"),
                ("name", "DW_AT_name"),
                ("folder", "DW_AT_comp_dir"),
            )
        }
        texts = {name: _text(value) for name, value in values.items()}
        read = unit_of(texts["producer"], texts["name"], texts["folder"])
        language = top.attributes.get("DW_AT_language")
        # Clang assembles, too, and has no flags to record there.
        assembled = language is not None and language.value == _ASSEMBLER
        yield replace(read, kind=UnitKind.ASSEMBLER, flags=None) if assembled else read


def recorded_units(elf: BoundedElf, name: str = "") -> Iterator[Unit]:
    """Units by debug information, else by the command lines that `.GCC.command.line` keeps.

    Of those that say no source, `name` and a number is the name.
    """
    units = tuple(units_of(elf))
    section = elf.get_section_by_name(".GCC.command.line")
    if units or section is None:
        yield from units
        return
    lines = [each.decode(errors="replace") for each in data_of(section).split(b"\0") if each]
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


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def unit_of(producer: str, name: str, folder: str) -> Unit:
    """A unit from its `DW_AT_producer`, for GCC (which records flags) and Clang (on request)."""
    clang = _CLANG.search(producer)
    if clang:
        _, slash, command = producer.partition(" /")
        words = tuple(word.replace("\\ ", " ") for word in _BLANK.split(command)[1:])
        flags = words if slash and words else None
        return Unit(name, folder, UnitKind.CLANG, f"Clang {clang[1]}", flags)
    gnu = _GNU.match(producer)
    if gnu is None:
        return Unit(name, folder, UnitKind.OTHER, producer.split(" -", maxsplit=1)[0], None)
    words = tuple(producer[gnu.end() :].split())
    if gnu[1] == "AS":
        return Unit(name, folder, UnitKind.ASSEMBLER, f"GNU as {gnu[2]}", None)
    if not gnu[1].startswith(_OF_C):
        return Unit(name, folder, UnitKind.OTHER, f"GNU {gnu[1]} {gnu[2]}", words)
    if gnu[1] == "GIMPLE":
        kind = UnitKind.LTRANS
    else:
        lto = any(word.startswith("-flto") for word in words)
        kind = UnitKind.EARLY if lto else UnitKind.WHOLE
    return Unit(name, folder, kind, f"GCC {gnu[2]}", words)


def symbols(elf: BoundedElf) -> tuple[frozenset[str], frozenset[str]]:
    """Global symbols that an object or program defines, and those it needs."""
    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection):
        return frozenset(), frozenset()
    defines: set[str] = set()
    needs: set[str] = set()
    for each in table.iter_symbols():
        local = each["st_info"]["bind"] == "STB_LOCAL"
        if local or not each.name or each.name.startswith("__gnu_lto_"):
            continue
        (needs if each["st_shndx"] == "SHN_UNDEF" else defines).add(each.name)
    return frozenset(defines), frozenset(needs)


def exported(path: Path) -> frozenset[str]:
    """What a shared library offers; nothing if it is not one (a linker script, for instance)."""
    try:
        with elf_of(path) as elf:
            return _dynamic_symbols(elf)[1]
    except DamagedFile:
        return frozenset()
