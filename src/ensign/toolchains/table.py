"""Names in each family of compilers: tools, LTO, the linker. Pure.

**One linker per compiler.** GCC links every variant with its default linker, Clang every variant
with LLD where LLD works, with or without LTO. So no comparison within a compiler mixes in a change
of linker. One linker for all is not to be had: LLD cannot read GCC's LTO objects, and the LTO that
Clang's users get is LLD's. Between compilers, the linker is part of what is compared.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

# Names of programs, as regular expressions.
COMPILERS = r"(gcc|clang)(-\d+)?"
PROFILERS = r"perf|valgrind|llvm-profdata(-\d+)?|llvm-bolt(-\d+)?"


def absent(package: str, known: Collection[str]) -> str:
    """Message about a package that the system has not; empty where it has, or if unknown.

    `known` are the names of all its packages, none where these are not known.
    """
    if not known or package in known:
        return ""
    others = versions(package, known)
    instead = f"; there are {', '.join(others)}" if others else ""
    return f"no package of this system is called {package}{instead}"


def advice(package: str, known: Collection[str]) -> str:
    """Remedy for a missing package, as the end of a message."""
    return absent(package, known) or f"run 'apt-get install {package}'"


def versions(package: str, known: Collection[str]) -> list[str]:
    """The package in all its versions, by number: `gcc-9`, `gcc-12`; those without are none."""
    stem, *ending = re.split(r"-\d+(?=-|$)", package, maxsplit=1)
    pattern = re.compile(rf"{re.escape(stem)}-(\d+){re.escape(ending[0] if ending else '')}")
    found = [(int(match[1]), name) for name in known if (match := pattern.fullmatch(name))]
    return [name for _, name in sorted(found)]


def newest(package: str, known: Collection[str]) -> str:
    """The package in its newest version that is known; itself where none is."""
    return [package, *versions(package, known)][-1]


class Family(StrEnum):
    """Maker of a compiler, by what it defines, or what `rustc -vV` says."""

    GCC = "gcc"
    CLANG = "clang"
    RUST = "rustc"


_TITLES = {Family.GCC: "GCC", Family.CLANG: "Clang", Family.RUST: "rustc"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A compiler's family and version, such as (12, 2, 0); `llvm` is the major one of rustc's.

    `x86_64`: a compiler of C says that it makes code for that.
    """

    family: Family
    version: tuple[int, int, int]
    llvm: int = 0
    x86_64: bool = False

    @property
    def title(self) -> str:
        """As debug information names it: `GCC 12.2.0`, `Clang 19.1.7`, `rustc 1.95.0`."""
        return f"{_TITLES[self.family]} {'.'.join(map(str, self.version))}"

    @property
    def llvm_major(self) -> int:
        """The major version of the LLVM that it is made of, which its profiles are for; else 0."""
        return self.version[0] if self.family is Family.CLANG else self.llvm


@dataclass(frozen=True, slots=True)
class Flags:
    """Words that a variant passes to the compiler, and to the compiler when it links."""

    compile: tuple[str, ...]
    link: tuple[str, ...]


_MACROS = {
    Family.CLANG: ("__clang_major__", "__clang_minor__", "__clang_patchlevel__"),
    Family.GCC: ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__"),
}
_DEFINITION = re.compile(r"#define (\w+) (\d+)")


def kind_of(macros: str) -> Kind | None:
    """Tell the kind of the compiler that printed these predefined macros; None if it is neither.

    Clang is asked about first, because it defines GCC's macros too.
    """
    defined = {name: int(value) for name, value in _DEFINITION.findall(macros)}
    for family, names in _MACROS.items():
        if names[0] in defined:
            major, minor, patch = (defined.get(name, 0) for name in names)
            return Kind(family, (major, minor, patch), x86_64="__x86_64__" in defined)
    return None


# The package of llvm-bolt; a later version is as good.
BOLT = "bolt-19"

_TOOLS = {
    Family.GCC: {"cxx": "g++", "ar": "gcc-ar", "ranlib": "gcc-ranlib", "nm": "gcc-nm", "ld": "ld"},
    Family.CLANG: {
        "cxx": "clang++",
        "ar": "llvm-ar",
        "ranlib": "llvm-ranlib",
        "nm": "llvm-nm",
        "ld": "ld.lld",
    },
}


def tool_names(kind: Kind, driver: str) -> dict[str, tuple[str, ...]]:
    """Names to look for, best first, of the tools that belong to a compiler called `driver`.

    Archives of LTO objects need these: plain `ar` leaves them without an index.
    """
    suffix = re.search(r"-\d+(\.\d+)*$", driver)
    endings = [suffix[0]] if suffix else []
    endings += [ending for ending in (f"-{kind.version[0]}", "") if ending not in endings]
    return {
        tool: tuple(f"{name}{ending}" for ending in endings)
        for tool, name in _TOOLS[kind.family].items()
    }


def passes(kind: Kind) -> tuple[str, ...]:
    """Programs that the driver runs, and that decide which code comes out."""
    if kind.family is Family.GCC:
        return ("cc1", "cc1plus", "lto1", "as", "collect2")
    return ()


def package_of(program: str) -> str:
    """Name the Debian package that has a compiler of that name, as far as names tell."""
    name = program.rsplit("/", 1)[-1]
    return re.sub(r"^(g|clang)\+\+", lambda match: {"g": "g++", "clang": "clang"}[match[1]], name)
