"""Kind of an ELF file's program: processor, language, how it is loaded, who linked it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.sections import NoteSection
from elftools.elf.segments import InterpSegment

from ensign.proof.bounded_elf import BoundedElf, DamagedFile, data_of, elf_of
from ensign.proof.loaded_bytes import code_sections
from ensign.proof.symbol_tables import defined_among, symbols_of

_MAGIC, _HEADER_BYTES, _FLAGS_AT, _INLINE = b"\xff Go buildinf:", 32, 15, 2
_SENTINEL_BYTES = 16
_GOES_ON = 0x80
_SETTING, _DEPENDENCY = "build\t", "dep\t"


@dataclass(frozen=True, slots=True)
class GoBuild:
    """`version` is empty where it is written down in another way, as before Go 1.18.

    `settings` are those of the build, as `GOAMD64` and `-pgo`.
    """

    version: str = ""
    path: str = ""
    dependencies: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)


def read_go_build(elf: BoundedElf) -> GoBuild | None:
    """Read it; None for programs of others."""
    section = elf.get_section_by_name(".go.buildinfo")
    if section is None:
        return None
    data = data_of(section)
    if not data.startswith(_MAGIC) or len(data) <= _HEADER_BYTES:
        return GoBuild()
    if not data[_FLAGS_AT] & _INLINE:
        return GoBuild()
    try:
        prefix, at = _prefixed(data, _HEADER_BYTES)
        module, _ = _prefixed(data, at)
    except IndexError:
        return GoBuild()
    version = prefix.decode(errors="replace")
    lines = module[_SENTINEL_BYTES:-_SENTINEL_BYTES].decode(errors="replace").splitlines()
    named = (line.removeprefix(_SETTING).partition("=") for line in lines if _is_setting(line))
    return GoBuild(
        version=version.removeprefix("go"),
        path=next((line[5:] for line in lines if line.startswith("path\t")), ""),
        dependencies=sum(line.startswith(_DEPENDENCY) for line in lines),
        settings={key: value for key, _, value in named},
    )


def _prefixed(data: bytes, at: int) -> tuple[bytes, int]:
    """Bytes behind their length (seven bits of it a byte), and where they end. IndexError."""
    length = shift = 0
    while data[at] & _GOES_ON:
        length, shift, at = length | (data[at] & ~_GOES_ON) << shift, shift + 7, at + 1
    end = at + 1 + (length | data[at] << shift)
    if end > len(data):
        raise IndexError
    return data[at + 1 : end], end


def _is_setting(line: str) -> bool:
    return line.startswith(_SETTING)


_FLAGS_1_PIE = 0x0800_0000
_TEXTS = {
    "DT_NEEDED": "needed",
    "DT_RPATH": "rpath",
    "DT_RUNPATH": "runpath",
    "DT_SONAME": "soname",
}


@dataclass(frozen=True, slots=True)
class DynamicTags:
    """Numbers and texts by the names of their tags; the loader asked for, empty where none is."""

    numbers: dict[str, int]
    texts: dict[str, list[str]]
    interpreter: str

    @property
    def pie(self) -> bool:
        """True if it is a program that may lie anywhere, if its type is that of a library.

        A C library asks for a loader, too, and has a name by which others load it.
        """
        flagged = bool(self.numbers.get("DT_FLAGS_1", 0) & _FLAGS_1_PIE)
        return flagged or (bool(self.interpreter) and "DT_SONAME" not in self.texts)

    @property
    def static(self) -> bool:
        """True if nothing else is loaded with it; of a program."""
        return not self.interpreter and "DT_NEEDED" not in self.texts


def dynamic_tags(elf: BoundedElf) -> DynamicTags:
    """Read them."""
    numbers: dict[str, int] = {}
    texts: dict[str, list[str]] = {}
    for segment in elf.iter_segments("PT_DYNAMIC"):
        for tag in segment.iter_tags() if isinstance(segment, DynamicSegment) else ():
            name = str(tag.entry.d_tag)
            numbers[name] = int(tag.entry.d_val)
            if name in _TEXTS:
                texts.setdefault(name, []).append(str(getattr(tag, _TEXTS[name])))
    interpreter = next(
        (str(s.get_interp_name()) for s in elf.iter_segments() if isinstance(s, InterpSegment)), ""
    )
    return DynamicTags(numbers, texts, interpreter)


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
_LARGEST_COMMENT_BYTES = 1 << 20
_LINKERS = re.compile(r"Linker: LLD (\d[\d.]*)|(mold) (\d[\d.]*)")
_RUSTC = re.compile(r"rustc version (\d[\w.-]*)")
_COUNTERS = ("__llvm_prf_cnts", "__gcov_dump", "__gcov_exit")
_ALLOCATE = ("malloc", "calloc")
_TEXTREL = 0x4


@dataclass(frozen=True, slots=True)
class Identity:
    """Facts of the file alone. `kind` is `program`, `library`, `object`, `core dump` or `file`.

    `pie` counts for programs; `interpreter` is empty where no loader is asked for. `linker` is
    empty where nothing names it, as GNU ld leaves no name. `static`: it is a program with which
    nothing else is loaded. `malloc` says that the file defines it;
    `counters` that it counts for a profile. `search` is RUNPATH, else RPATH, and `rpath` says which
    one. `version` is the highest that it defines of itself, as `GLIBC_2.36`; `ifuncs` are functions
    of which one of several is chosen when it is loaded. `executable_stack` is None where nothing is
    said of it, and the kernel decides.
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
    static: bool = False
    textrel: bool = False
    build_id: str = ""
    linker: str = ""
    go: GoBuild | None = None
    rust: str = ""
    has_debug: bool = False
    has_symbols: bool = False
    malloc: bool = False
    counters: bool = False
    imports: frozenset[str] = frozenset()
    exports: frozenset[str] = frozenset()
    code_bytes: int = 0
    version: str = ""
    ifuncs: frozenset[str] = frozenset()
    executable_stack: bool | None = None


def read_identity(path: Path) -> Identity | None:
    """Read it; None where it is no ELF file, or a damaged one."""
    try:
        with elf_of(path) as elf:
            return _identity(elf)
    except DamagedFile:
        return None


def _identity(elf: BoundedElf) -> Identity:
    tags = dynamic_tags(elf)
    pie = elf["e_type"] == "ET_DYN" and tags.pie
    kind = _kind(elf, pie=pie)
    static = kind == "program" and tags.static
    sections = {section.name for section in elf.iter_sections()}
    comment = _comment(elf)
    table = tuple(symbols_of(elf, ".dynsym"))
    defines = frozenset(symbol.name for symbol in table if symbol.defined)
    local = defined_among(elf, ".symtab", (*_ALLOCATE, *_COUNTERS))
    searched = tags.texts.get("DT_RUNPATH") or tags.texts.get("DT_RPATH") or [""]
    machine = str(elf["e_machine"])
    return Identity(
        kind=kind,
        machine=_MACHINES.get(machine, machine.removeprefix("EM_")),
        bits=int(elf.elfclass),
        pie=pie,
        interpreter=tags.interpreter,
        needed=tuple(tags.texts.get("DT_NEEDED", ())),
        search=tuple(part for part in searched[-1].split(":") if part),
        rpath="DT_RPATH" in tags.texts and "DT_RUNPATH" not in tags.texts,
        soname=(tags.texts.get("DT_SONAME") or [""])[-1],
        static=static,
        textrel=_textrel(tags),
        build_id=build_id_of(elf),
        linker="gold" if ".note.gnu.gold-version" in sections else _linker(comment),
        go=read_go_build(elf),
        rust=_rust(comment),
        has_debug=".debug_info" in sections or ".zdebug_info" in sections,
        has_symbols=".symtab" in sections,
        malloc=all(name in defines or (static and name in local) for name in _ALLOCATE),
        counters="__llvm_prf_cnts" in sections or any(n in defines | local for n in _COUNTERS),
        imports=frozenset(symbol.name for symbol in table if not symbol.defined and symbol.name),
        exports=defines,
        code_bytes=sum(int(code_section["sh_size"]) for code_section in code_sections(elf)),
        version=_version(elf),
        ifuncs=frozenset(symbol.name for symbol in table if symbol.defined and symbol.chosen),
        executable_stack=next(
            (bool(s["p_flags"] & 1) for s in elf.iter_segments("PT_GNU_STACK")), None
        ),
    )


def _kind(elf: BoundedElf, *, pie: bool) -> str:
    kinds = {"ET_REL": "object", "ET_CORE": "core dump", "ET_EXEC": "program"}
    if elf["e_type"] == "ET_DYN":
        return "program" if pie else "library"
    return kinds.get(str(elf["e_type"]), "file")


def _textrel(tags: DynamicTags) -> bool:
    return "DT_TEXTREL" in tags.numbers or bool(tags.numbers.get("DT_FLAGS", 0) & _TEXTREL)


def _comment(elf: BoundedElf) -> str:
    section = elf.get_section_by_name(".comment")
    return "" if section is None else data_of(section)[:_LARGEST_COMMENT_BYTES].decode("latin-1")


def _linker(comment: str) -> str:
    match = _LINKERS.search(comment)
    if match is None:
        return ""
    return f"lld {match[1]}" if match[1] else f"{match[2]} {match[3]}"


def _rust(comment: str) -> str:
    match = _RUSTC.search(comment)
    return match[1] if match else ""


def build_id_of(elf: BoundedElf) -> str:
    """The build id, in hexadecimal digits; empty where it has none."""
    section = elf.get_section_by_name(".note.gnu.build-id")
    if isinstance(section, NoteSection):
        for note in section.iter_notes():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                return str(note["n_desc"])
    return ""


def _version(elf: BoundedElf) -> str:
    """The highest version that a library defines of itself, as `GLIBC_2.36`.

    It may define some of others, as a C library of 32 bits does with `GCC_3.0`.
    """
    section = elf.get_section_by_name(".gnu.version_d")
    names = [] if section is None else list(_versions(section))
    families = Counter(name.rpartition("_")[0] for name in names)
    own = max(families, key=lambda each: families[each], default="")
    matching = (name for name in names if name.rpartition("_")[0] == own)
    return max(matching, key=_by_number, default="")


def _versions(section: object) -> Iterator[str]:
    for _, names in section.iter_versions():  # type: ignore[attr-defined]  # pyelftools has no types
        for name in names:
            if re.fullmatch(r"\w+_\d+(\.\d+)+", name.name):
                yield name.name
            break


def _by_number(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", name.rpartition("_")[2]))
