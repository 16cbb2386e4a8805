"""What kind of program an ELF file is: processor, language, how it is loaded, who linked it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.sections import NoteSection, SymbolTableSection
from elftools.elf.segments import InterpSegment

from ensign.proof.bounded_elf import BoundedElf, DamagedFile, data_of, elf_of
from ensign.proof.loaded_bytes import code_sections

_MACHINES = {
    "EM_X86_64": "x86-64",
    "EM_386": "x86 (32 bits)",
    "EM_AARCH64": "AArch64",
    "EM_RISCV": "RISC-V",
    "EM_PPC64": "POWER",
    "EM_S390": "s390",
    "EM_MIPS": "MIPS",
    "EM_LOONGARCH": "LoongArch",
}
_FLAGS_1_PIE = 0x0800_0000
_LARGEST_COMMENT_BYTES = 1 << 20
_LINKERS = re.compile(r"Linker: LLD (\d[\d.]*)|(mold) (\d[\d.]*)")
_RUSTC = re.compile(r"rustc version (\d[\w.-]*)")
_GO_MAGIC, _GO_HEADER, _GO_INLINE, _GO_LONGEST = b"\xff Go buildinf:", 32, 2, 100
_COUNTERS = ("__llvm_prf_cnts", "__gcov_dump", "__gcov_exit")
_ALLOCATE = ("malloc", "calloc")


@dataclass(frozen=True, slots=True)
class Identity:
    """Facts of the file alone. `kind` is `program`, `library`, `object`, `core dump` or `file`.

    `pie` counts for programs; `interpreter` is empty where no loader is asked for. `linker` is
    empty where nothing names it, as GNU ld leaves no name. `malloc` says that the file defines it;
    `counters` that it counts for a profile. `search` is RUNPATH, else RPATH, and `rpath` says which
    one. `version` is the highest that it defines of itself, as `GLIBC_2.36`; `ifuncs` are functions
    of which one of several is chosen when it is loaded.
    """

    kind: str
    machine: str
    bits: int
    pie: bool = False
    interpreter: str = ""
    needed: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
    rpath: bool = False
    soname: str = ""
    dynamic: bool = False
    textrel: bool = False
    build_id: str = ""
    linker: str = ""
    go: str = ""
    rust: str = ""
    has_debug: bool = False
    has_symbols: bool = False
    malloc: bool = False
    counters: bool = False
    imports: frozenset[str] = frozenset()
    code_bytes: int = 0
    version: str = ""
    ifuncs: frozenset[str] = frozenset()
    executable_stack: bool = False


def read_identity(path: Path) -> Identity | None:
    """Read it; None where it is no ELF file, or a damaged one."""
    try:
        with elf_of(path) as elf:
            return _identity(elf)
    except DamagedFile:
        return None


def _identity(elf: BoundedElf) -> Identity:
    tags, texts = _dynamic(elf)
    interpreter = next(
        (str(s.get_interp_name()) for s in elf.iter_segments() if isinstance(s, InterpSegment)), ""
    )
    pie = elf["e_type"] == "ET_DYN" and (
        bool(interpreter) or bool(tags.get("DT_FLAGS_1", 0) & _FLAGS_1_PIE)
    )
    sections = {section.name for section in elf.iter_sections()}
    comment = _comment(elf)
    imports, defines = _symbols(elf, ".dynsym")
    local = _symbols(elf, ".symtab")[1]
    runpath = texts.get("DT_RUNPATH") or texts.get("DT_RPATH") or [""]
    machine = str(elf["e_machine"])
    return Identity(
        kind=_kind(elf, pie=pie and "DT_SONAME" not in texts),
        machine=_MACHINES.get(machine, machine.removeprefix("EM_")),
        bits=int(elf.elfclass),
        pie=pie,
        interpreter=interpreter,
        needed=tuple(texts.get("DT_NEEDED", ())),
        search=tuple(part for part in runpath[-1].split(":") if part),
        rpath="DT_RPATH" in texts and "DT_RUNPATH" not in texts,
        soname=(texts.get("DT_SONAME") or [""])[-1],
        dynamic=bool(tags),
        textrel="DT_TEXTREL" in tags,
        build_id=_build_id(elf),
        linker="gold" if ".note.gnu.gold-version" in sections else _linker(comment),
        go=_go_version(elf),
        rust=_rust(comment),
        has_debug=".debug_info" in sections or ".zdebug_info" in sections,
        has_symbols=".symtab" in sections,
        malloc=all(name in defines or (not tags and name in local) for name in _ALLOCATE),
        counters="__llvm_prf_cnts" in sections or any(n in defines | local for n in _COUNTERS),
        imports=imports,
        code_bytes=sum(int(each["sh_size"]) for each in code_sections(elf)),
        version=_version(elf),
        ifuncs=_ifuncs(elf),
        executable_stack=any(s["p_flags"] & 1 for s in elf.iter_segments("PT_GNU_STACK")),
    )


def _kind(elf: BoundedElf, *, pie: bool) -> str:
    kinds = {"ET_REL": "object", "ET_CORE": "core dump", "ET_EXEC": "program"}
    if elf["e_type"] == "ET_DYN":
        return "program" if pie else "library"
    return kinds.get(str(elf["e_type"]), "file")


def _dynamic(elf: BoundedElf) -> tuple[dict[str, int], dict[str, list[str]]]:
    tags: dict[str, int] = {}
    texts: dict[str, list[str]] = {}
    names = {"DT_NEEDED": "needed", "DT_RPATH": "rpath", "DT_RUNPATH": "runpath",
             "DT_SONAME": "soname"}  # fmt: skip
    for segment in elf.iter_segments("PT_DYNAMIC"):
        for tag in segment.iter_tags() if isinstance(segment, DynamicSegment) else ():
            name = str(tag.entry.d_tag)
            tags[name] = int(tag.entry.d_val)
            if name in names:
                texts.setdefault(name, []).append(str(getattr(tag, names[name])))
    return tags, texts


def _symbols(elf: BoundedElf, name: str) -> tuple[frozenset[str], frozenset[str]]:
    table = elf.get_section_by_name(name)
    needs: set[str] = set()
    defines: set[str] = set()
    if isinstance(table, SymbolTableSection):
        for each in table.iter_symbols():
            (needs if each["st_shndx"] == "SHN_UNDEF" else defines).add(each.name)
    return frozenset(needs - {""}), frozenset(defines)


def _ifuncs(elf: BoundedElf) -> frozenset[str]:
    """Functions of which the file has several, one to be chosen when it is loaded."""
    table = elf.get_section_by_name(".dynsym")
    if not isinstance(table, SymbolTableSection):
        return frozenset()
    chosen = (each for each in table.iter_symbols() if each["st_info"]["type"] == "STT_LOOS")
    return frozenset(each.name for each in chosen if each["st_shndx"] != "SHN_UNDEF")


def _comment(elf: BoundedElf) -> str:
    section = elf.get_section_by_name(".comment")
    return "" if section is None else data_of(section)[:_LARGEST_COMMENT_BYTES].decode("latin-1")


def _linker(comment: str) -> str:
    found = _LINKERS.search(comment)
    if found is None:
        return ""
    return f"lld {found[1]}" if found[1] else f"{found[2]} {found[3]}"


def _rust(comment: str) -> str:
    found = _RUSTC.search(comment)
    return found[1] if found else ""


def _build_id(elf: BoundedElf) -> str:
    section = elf.get_section_by_name(".note.gnu.build-id")
    if isinstance(section, NoteSection):
        for note in section.iter_notes():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                return str(note["n_desc"])
    return ""


def _go_version(elf: BoundedElf) -> str:
    """The version of Go that `.go.buildinfo` names; `?` where it is of another form."""
    section = elf.get_section_by_name(".go.buildinfo")
    if section is None:
        return ""
    data = data_of(section)
    if not data.startswith(_GO_MAGIC) or len(data) <= _GO_HEADER:
        return "?"
    size = data[_GO_HEADER]
    if not data[15] & _GO_INLINE or size > _GO_LONGEST:
        return "?"
    return data[_GO_HEADER + 1 :][:size].decode("ascii", "replace").removeprefix("go")


def _version(elf: BoundedElf) -> str:
    """The highest version that a library defines of itself, as `GLIBC_2.36`."""
    section = elf.get_section_by_name(".gnu.version_d")
    names = [] if section is None else list(_versions(section))
    return max(names, key=_by_number, default="")


def _versions(section: object) -> Iterator[str]:
    for _, names in section.iter_versions():  # type: ignore[attr-defined]  # pyelftools has no types
        for each in names:
            if re.fullmatch(r"\w+_\d+(\.\d+)+", each.name):
                yield each.name
            break


def _by_number(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", name.rpartition("_")[2]))
