"""Facts of a single program, line by line. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ensign.model.checkup import Fact
from ensign.model.units import pluralize
from ensign.proof.evidence import BuildEvidence, own_units
from ensign.proof.facts import Binary, Unit, UnitKind, compiler_of_comment
from ensign.proof.flags import effects, level_of, lto_of
from ensign.proof.identity import GoBuild, Identity
from ensign.proof.instructions import Instructions
from ensign.proof.loader import ALLOCATORS, Library
from ensign.proof.rust_calls import Crate, linked_crates
from ensign.tools.doctor.protections import hardening_of

GO_TARGETS = ("GOAMD64", "GOARM64", "GOARM", "GO386", "GOPPC64", "GORISCV64", "GOMIPS", "GOMIPS64")
PLT_MACHINES = ("x86-64", "x86 (32 bits)", "AArch64")
_NO_DEBUG = "unknown: no debug information says them (-g would)"
_SOME = 4
_GO_FLAGS = ("-gcflags", "-ldflags", "-tags", "-race", "-msan", "-asan", "-cover")
_STANDARD = "the standard library came compiled"
_ACROSS = ("fat", "thin")
_FEEDBACK = ("profile-use", "profile-instr-use", "profile-sample-use", "auto-profile")


@dataclass(frozen=True, slots=True)
class AskedSet:
    """Instructions by Linux' name, the flag that allows them, and where the code asks for them.

    `where` is a flag of some units, or a guard and its source.
    """

    name: str
    flag: str
    where: str


@dataclass(frozen=True, slots=True)
class ProgramLook:
    """All that was read of one program. `libraries` is None where they cannot be told, for `why`.

    `mapped` says that they are those of a running process, not those that would be loaded.
    `foreign`: it is for another processor than this machine's. `unoptimized`: its code, or a part
    of it, looks so. `asked` are instructions that its flags or sources ask for.
    """

    seen: BuildEvidence
    identity: Identity
    instructions: Instructions | None
    libraries: tuple[Library, ...] | None = ()
    why: str = ""
    mapped: bool = False
    foreign: bool = False
    unoptimized: bool = False
    asked: tuple[AskedSet, ...] = ()

    @property
    def binary(self) -> Binary:
        """Its units and protections."""
        return self.seen.proof.binary

    @property
    def compiled(self) -> tuple[Unit, ...]:
        """Units of a compiler, without those that LTO generates and assembler."""
        left_out = (UnitKind.LTRANS, UnitKind.ASSEMBLER)
        return tuple(unit for unit in self.binary.units if unit.kind not in left_out)

    @property
    def by_rust(self) -> bool:
        """True if rustc made it, or most of it."""
        return bool(self.identity.rust) or any(
            unit.compiler.startswith("rustc") for unit in self.compiled
        )

    @property
    def crates(self) -> tuple[Crate, ...]:
        """Crates that recorded calls of rustc compiled and linked; none without a record."""
        return linked_crates(self.seen)

    @property
    def recorded(self) -> tuple[tuple[str, ...], ...]:
        """The flags of each unit that tells them, else of the known calls that made it."""
        told = tuple(unit.flags for unit in self.compiled if unit.flags is not None)
        if told or self.seen.link is None or self.crates:
            return told
        return tuple(
            own_unit.words for own_unit in own_units(self.seen) if own_unit.words is not None
        )


def facts_of(look: ProgramLook) -> tuple[Fact, ...]:
    """In the order in which they are shown."""
    return (
        Fact("program", _program(look.identity)),
        _made_by(look),
        _levels(look),
        Fact("LTO", _lto(look)),
        Fact("profile", _profile(look)),
        Fact("BOLT", "applied" if look.binary.bolted else "no trace of it"),
        Fact("debug info", _debug(look)),
        Fact("target", _target(look)),
        Fact("hardening", hardening_of(look)),
        *_plt(look),
        *_libraries(look),
        Fact("allocator", allocator_of(look)[1]),
        *_linker(look),
        Fact("code", f"{look.identity.code_bytes:,} bytes"),
    )


def _program(identity: Identity) -> str:
    parts = [f"{identity.machine} {identity.kind}"]
    if identity.kind == "program":
        parts.append("position independent" if identity.pie else "at fixed addresses (no PIE)")
    if identity.kind == "library" and identity.soname:
        parts.append(identity.soname)
    if identity.static:
        parts.append("statically linked")
    parts.append("" if identity.has_symbols or identity.has_debug else "stripped")
    return ", ".join(part for part in parts if part)


def _made_by(look: ProgramLook) -> Fact:
    identity, units = look.identity, look.compiled
    if identity.go is not None:
        return _made_by_go(identity.go)
    counts = Counter(unit.compiler for unit in units)
    named = sorted({*filter(None, map(compiler_of_comment, look.binary.comments))})
    named += [f"rustc {identity.rust}"] if identity.rust else []
    if counts:
        listed = ", ".join(
            f"{name or 'unnamed'} ({pluralize(number, 'unit')})"
            for name, number in counts.most_common()
        )
        more = tuple(f"{unit.compiler}: {unit.name}" for unit in units)
        return Fact("compiler", listed, more)
    if named:
        text = (
            f"{', '.join(named)} made parts of it; which ones is unknown without debug information"
        )
        return Fact("compiler", text)
    return Fact("compiler", "unknown: nothing in it names one")


def _made_by_go(build: GoBuild) -> Fact:
    """With what Go writes down of the build, as `go version -m` shows it."""
    name = f"Go {build.version}" if build.version else "Go, of some version"
    of = f" made {build.path}" if build.path else ""
    many = f", of {build.dependencies} other modules" if build.dependencies else ""
    more = tuple(f"{key}={value}" for key, value in build.settings.items())
    return Fact("compiler", f"{name}{of}{many}", more)


def _levels(look: ProgramLook) -> Fact:
    if look.identity.go is not None:
        words = [f"{key}={look.identity.go.settings[key]}" for key in _GO_FLAGS
                 if key in look.identity.go.settings]  # fmt: skip
        none = "none is written down: Go optimizes by default"
        return Fact("flags", ", ".join(words) or none)
    if look.crates:
        return levels_of(look.crates)
    if look.by_rust and not look.recorded:
        return Fact("flags", "unknown: rustc writes none into what it makes")
    if not look.recorded:
        if look.compiled and all(unit.kind is UnitKind.OTHER for unit in look.compiled):
            return Fact("flags", "not judged: only those of C and C++ are")
        silent = bool(look.compiled)
        unknown = "unknown: its units record none (Clang: -grecord-command-line would)"
        return Fact("flags", unknown if silent else _NO_DEBUG)
    levels = Counter(level_of(words) or "no -O (-O0)" for words in look.recorded)
    silent_units = max(0, len(look.compiled) - len(look.recorded))
    text = ", ".join(
        f"{name} ({pluralize(number, 'unit')})" for name, number in levels.most_common()
    )
    text += f"; unknown of {silent_units} units" if silent_units else ""
    more = tuple(
        f"{unit.name}: {' '.join(unit.flags)}" for unit in look.compiled if unit.flags is not None
    )
    return Fact("flags", text, more)


def _lto(look: ProgramLook) -> str:
    if look.identity.go is not None:
        return "Go has none"
    if look.crates:
        return lto_of_crates(look.crates)
    generated = sum(unit.kind is UnitKind.LTRANS for unit in look.binary.units)
    if generated:
        return f"done: {_were(generated)} generated at the link"
    asked = sum(lto_of(words) for words in look.recorded)
    if asked and look.seen.link is None:
        return f"{_were(asked)} compiled for it; whether the link did it is unknown"
    if asked:
        return f"{_were(asked)} compiled for it"
    return "none of its units was compiled for it" if look.recorded else "unknown: no flags"


def _were(number: int) -> str:
    return f"{pluralize(number, 'unit')} {'was' if number == 1 else 'were'}"


def uses_feedback(words: Sequence[str]) -> bool:
    """True if a unit was compiled with a profile."""
    effect = effects(words)
    return any(effect.get(name, "off") != "off" for name in _FEEDBACK)


def _profile(look: ProgramLook) -> str:
    if look.identity.counters:
        return "an instrumented build: it counts for a profile"
    if look.identity.go is not None and look.identity.go.version:
        profile = look.identity.go.settings.get("-pgo", "")
        return f"used: {Path(profile).name}" if profile not in ("", "off") else "none was used"
    if look.crates:
        using = uses_profile(look.crates)
        return f"used in {using} of {len(look.crates)} crates" if using else "none was used"
    using = sum(map(uses_feedback, look.recorded))
    if using:
        return f"used in {using} of {max(len(look.compiled), len(look.recorded))} units"
    return "none was used" if look.recorded else "unknown: no flags"


def _debug(look: ProgramLook) -> str:
    if look.binary.debug_unread:
        return f"there, but it cannot be read: {look.binary.debug_unread}"
    if look.binary.debug_file:
        return f"in {look.binary.debug_file}, of {len(look.binary.units)} units"
    if look.identity.has_debug:
        return f"there, of {len(look.binary.units)} units"
    return "in another file, which is not here" if look.binary.debug_elsewhere else "none"


def targets_of(look: ProgramLook) -> Counter[str]:
    """Targets of `-march`, by units; `the compiler's default` where it says nothing."""
    named = (
        next((w.partition("=")[2] for w in reversed(words) if w.startswith("-march=")), "")
        for words in look.recorded
    )
    told = targets_of_crates(look.crates) if look.crates else named
    return Counter(name or "the compiler's default" for name in told)


def _target(look: ProgramLook) -> str:
    if look.identity.go is not None:
        named = (key for key in look.identity.go.settings if key in GO_TARGETS)
        levels = ", ".join(f"{key}={look.identity.go.settings[key]}" for key in named)
        return levels or "unknown: it is not written down"
    targets = targets_of(look)
    part = "crate" if look.crates else "unit"
    text = ", ".join(f"{name} ({pluralize(n, part)})" for name, n in targets.most_common())
    wide = look.instructions is not None and look.instructions.wide
    seen = "; has code for registers of 256 bits or more, which it may choose when it runs"
    return (text or "unknown: no flags") + (seen if wide else "")


def _plt(look: ProgramLook) -> Iterator[Fact]:
    binary = look.binary
    if look.identity.machine in PLT_MACHINES and (
        binary.shared_library or binary.plt_imports or binary.own_plt
    ):
        text = f"{binary.plt_imports} functions of others"
        text += f", {len(binary.own_plt)} of its own" if binary.own_plt else ", none of its own"
        yield Fact("PLT calls", text, binary.own_plt)


def _libraries(look: ProgramLook) -> Iterator[Fact]:
    if look.libraries is None:
        yield Fact("libraries", look.why)
        return
    if not look.libraries:
        yield Fact("libraries", "none")
        return
    shown = [_library(library) for library in look.libraries]
    more = tuple(f"{library.name} => {library.path or 'not found'}" for library in look.libraries)
    text = ", ".join(shown[:_SOME]) + (
        f" and {len(shown) - _SOME} more" if len(shown) > _SOME else ""
    )
    missing = [library.name for library in look.libraries if library.path is None]
    if missing and not look.mapped:
        here = " here (it is for another processor)" if look.foreign else ""
        text += f"; NOT FOUND{here}: {', '.join(missing)}"
    yield Fact("mapped" if look.mapped else "libraries", text, more)


def _library(library: Library) -> str:
    if not library.version:
        return library.name
    of_symbols = " " in library.version
    return f"{library.name} ({'up to ' if of_symbols else ''}{library.version})"


def allocator_of(look: ProgramLook) -> tuple[str, str]:
    """A word for it (`own`, `libc`, the name of one, empty where unknown), and a sentence."""
    identity = look.identity
    if identity.go is not None:
        return "go", "Go's own, for what is written in Go"
    if identity.malloc:
        return "own", f"malloc is defined in the {identity.kind} itself"
    if identity.static or look.libraries is None:
        return "", "unknown: no symbol says where malloc is"
    if identity.kind != "program":
        return "", "that of the program that loads it"
    return _loaded_allocator(look, look.libraries)


def _loaded_allocator(look: ProgramLook, libraries: Sequence[Library]) -> tuple[str, str]:
    for each in libraries:
        if each.identity is not None and each.identity.malloc:
            known = next((name for name in ALLOCATORS if name in each.name), "libc")
            return known, f"malloc of {each.name}"
    missing = [library.name for library in libraries if library.identity is None]
    if missing and not look.mapped:
        return "", f"unknown: {', '.join(missing[:_SOME])} could not be looked at"
    return "", "no library that it loads defines malloc"


def _linker(look: ProgramLook) -> Iterator[Fact]:
    if look.identity.linker:
        yield Fact("linker", look.identity.linker)
    elif look.identity.go is None:
        yield Fact("linker", "not named in it (GNU ld leaves no name)")


def levels_of(crates: Sequence[Crate]) -> Fact:
    """Their levels; all options of each as details."""
    levels = Counter(f"opt-level {crate.value('opt-level')}" for crate in crates)
    text = ", ".join(
        f"{level} ({pluralize(number, 'crate')})" for level, number in levels.most_common()
    )
    more = tuple(
        f"{crate.name}: {' '.join(f'{name}={value}' for name, value in crate.options.items())}"
        for crate in crates
    )
    return Fact("flags", f"{text}; {_STANDARD}", more)


def optimizes_across(crates: Sequence[Crate]) -> bool:
    """True if rustc optimized across crates when it linked."""
    return any(crate.links and crate.value("lto") in _ACROSS for crate in crates)


def lto_of_crates(crates: Sequence[Crate]) -> str:
    """Options of rustc at the link."""
    linked = [crate for crate in crates if crate.links]
    if optimizes_across(linked):
        kinds = sorted({crate.value("lto") for crate in linked if crate.value("lto") in _ACROSS})
        return f"done by rustc across {pluralize(len(crates), 'crate')} ({', '.join(kinds)})"
    if any("linker-plugin-lto" in crate.options for crate in linked):
        return "left to the linker (linker-plugin-lto)"
    return "none across crates"


def uses_profile(crates: Sequence[Crate]) -> int:
    """Number of units compiled with a profile."""
    return sum("profile-use" in crate.options for crate in crates)


def targets_of_crates(crates: Sequence[Crate]) -> Iterator[str]:
    """The processor that each was compiled for; empty for the compiler's default."""
    return (crate.value("target-cpu") for crate in crates)
