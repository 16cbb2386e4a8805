"""Facts read from an artifact and from its parts. Pure data, kept with the build."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class UnitKind(StrEnum):
    """Author of a compile unit's debug information.

    With GCC's LTO there are `early` units (of the compiler, with the flags of the compilation) and
    `ltrans` units (of the link, with the flags it generated code by). `whole` is GCC without LTO.
    """

    EARLY = "early"
    LTRANS = "ltrans"
    WHOLE = "whole"
    CLANG = "clang"
    ASSEMBLER = "assembler"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Unit:
    """A compile unit (`DW_AT_producer`). `flags` is None where the compiler recorded none."""

    name: str
    folder: str
    kind: UnitKind
    compiler: str
    flags: tuple[str, ...] | None


def compiler_of_comment(text: str) -> str:
    """The compiler that a text of `.comment` names, as `Unit.compiler` does; empty for others."""
    clang = re.search(r"clang version (\d+(?:\.\d+)*)", text)
    gcc = re.match(r"GCC: \((?:[^()]|\([^()]*\))*\) (\d+(?:\.\d+)+)(?: |$)", text)
    if clang:
        return f"Clang {clang[1]}"
    return f"GCC {gcc[1]}" if gcc else ""


@dataclass(frozen=True, slots=True)
class Hardening:
    """Protections visible in the bytes.

    `checked` are imports such as `__printf_chk`, `unchecked` those that FORTIFY would have
    replaced. `cet` is the GNU property note of the whole program: one object without it, such as
    a C library's start file, takes it away.
    """

    pie: bool = False
    relro: bool = False
    bind_now: bool = False
    executable_stack: bool = False
    canary: bool = False
    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    cet: bool = False


@dataclass(frozen=True, slots=True)
class CodePlaces:
    """Positions of code: of `functions` in the symbol table so many are `aligned` to 64 bytes.

    `strictest` is the largest alignment, in bytes, that a section of compiled code has; 0 where
    that is not known. After BOLT those count that it moved, and their section says nothing.
    """

    functions: int = 0
    aligned: int = 0
    strictest: int = 0


@dataclass(frozen=True, slots=True)
class Binary:
    """An ELF program or shared library. `own_plt` are functions of its own called by the PLT.

    `exported_functions` are those that other files can call, or replace.

    `read` is False where there is no such file, as after a dry run. With `debug_elsewhere` it names
    another file for its debug information; `debug_file` is that file, if units were read from it.
    `debug_unread` says why the debug information in it is not read.
    """

    path: str
    shared_library: bool = False
    units: tuple[Unit, ...] = ()
    comments: tuple[str, ...] = ()
    hardening: Hardening = Hardening()
    own_plt: tuple[str, ...] = ()
    exported_functions: int = 0
    plt_imports: int = 0
    bolted: bool = False
    places: CodePlaces = CodePlaces()
    has_symbols: bool = False
    debug_elsewhere: bool = False
    debug_file: str = ""
    debug_unread: str = ""
    read: bool = False


@dataclass(frozen=True, slots=True)
class Objects:
    """Object files of a tree, and how many hold an intermediate language: GCC's, or bitcode.

    `fat` ones hold machine code beside it.
    """

    count: int = 0
    gcc_lto: int = 0
    bitcode: int = 0
    fat: int = 0

    @property
    def lto(self) -> int:
        """Those that take part in an LTO link."""
        return self.gcc_lto + self.bitcode


@dataclass(frozen=True, slots=True)
class UnindexedArchive:
    """An archive whose index lacks the symbols of LTO objects: a wrong archiver made it."""

    path: str
    lto_members: int


class Order(StrEnum):
    """Oddities of a link line, or of an archive that is on none."""

    BEFORE_OBJECTS = "archive-before-objects"
    AFTER_SHARED = "archive-after-shared"
    DUPLICATE = "duplicate-library"
    UNUSED = "archive-unused"
    UNLINKED = "archive-passed-over"


@dataclass(frozen=True, slots=True)
class OrderFact:
    """One oddity: the archive or library, the other file concerned, and the symbols.

    `winner` is the shared library that has these instead, where that is another one.
    """

    order: Order
    library: str
    other: str = ""
    symbols: tuple[str, ...] = ()
    winner: str = ""


@dataclass(frozen=True, slots=True)
class LinkFacts:
    """The link of the artifact. `unknown` says why its order could not be judged, or is empty.

    `by` names the evidence: a linker map, or the symbols of the artifact. `used` has the members
    that the link took of each archive, by its path; of others that is not known.
    """

    order: tuple[OrderFact, ...] = ()
    unknown: str = ""
    by: str = ""
    used: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Why(StrEnum):
    """Why an object is not known to come from a recorded call of the build.

    It lay in the tree `before`, comes from a folder `outside` that is not the machine's, or was
    made during the build by a program whose calls are `unrecorded`.
    """

    BEFORE = "before"
    OUTSIDE = "outside"
    UNRECORDED = "unrecorded"


@dataclass(frozen=True, slots=True)
class Stray:
    """An object that a link took, and that no recorded call made.

    `name` is relative to the tree, as `lib.a(member.o)` in an archive; `was` is its name before the
    build. `units` are what its debug information says, `comments` what its `.comment` says.
    """

    name: str
    why: Why
    was: str = ""
    units: tuple[Unit, ...] = ()
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileOrigins:
    """Origins of the parts of one file of the program, by the contents that links took.

    `path` is relative to the tree. `compiled` are the programs that compiled its `objects`, and the
    sources; `outputs` are the hashes of all that these calls wrote. `machine`
    are libraries of the system that were linked in. `unknown` says why no link could be followed,
    or is empty.
    """

    path: str
    objects: int = 0
    compiled: tuple[tuple[str, tuple[str, ...]], ...] = ()
    strays: tuple[Stray, ...] = ()
    machine: tuple[str, ...] = ()
    unknown: str = ""
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """All that was read of one artifact and of the tree it was built in.

    `build_path` is the folder that its build saw, empty where that is not known. `origins` are of
    the artifact and of all other files of the program that are in ELF. `own_rustflags` are those
    that the project's configuration of Cargo has, `own_levels` the places of sources that say
    themselves how they are optimized.
    """

    binary: Binary
    objects: Objects = Objects()
    unindexed: tuple[UnindexedArchive, ...] = ()
    link: LinkFacts = LinkFacts(unknown="no link was recorded")
    build_path: str = ""
    origins: tuple[FileOrigins, ...] = ()
    own_rustflags: tuple[str, ...] = ()
    own_levels: tuple[str, ...] = ()
