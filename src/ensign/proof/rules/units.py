"""Compile units and objects compared with each other, where nobody said what to build. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ensign.model.finding_kinds.proof import (
    FLAG_UNDONE,
    FLAGS_MAY_DIFFER,
    FLAGS_VARY,
    MIXED_COMPILERS,
    OWN_OPTIMIZATION,
    UNOPTIMIZED,
)
from ensign.model.findings import Finding
from ensign.proof.comparison import Choices, grouped
from ensign.proof.evidence import BuildEvidence, Compiled, own_units, shown, some
from ensign.proof.flags import effect, level_of
from ensign.proof.objects import ObjectFacts

_LEVELS = {"-O0": 0, "-Og": 1, "-O1": 1, "-Oz": 2, "-Os": 2, "-O2": 3, "-O3": 4, "-Ofast": 5}
# What differs for good reasons between files of one program, or says nothing of speed and safety.
_IGNORED = frozenset(
    ("g", "position independence", "tune", "asynchronous-unwind-tables", "unwind-tables",
     "record-gcc-switches", "record-command-line", "verbose-asm", "working-directory", "ident")
)  # fmt: skip
_DEFINITIONS = ("D:_FORTIFY_SOURCE", "D:NDEBUG")
_WEIGHTY = frozenset(
    ("O", "lto", "arch", "cpu", "fast-math", "finite-math-only", "unsafe-math-optimizations",
     "associative-math", "reciprocal-math", "profile-use", "profile-instr-use", "auto-profile",
     "profile-generate", "stack-protector", "cf-protection", "strict-aliasing", "exceptions",
     "D:_FORTIFY_SOURCE", "sanitize")
)  # fmt: skip
# Instruction sets, which `-march` brings along in what GCC records.
_SETS = ("avx", "sse", "no-", "mmx", "fma", "bmi", "adx", "aes", "sha", "xsave", "popcnt", "abm",
         "clflush", "clwb", "clzero", "cx16", "f16c", "fsgsbase", "fxsr", "gfni", "lzcnt", "movbe",
         "mwait", "pclmul", "pku", "prfchw", "rdpid", "rdrnd", "rdseed", "sahf", "serialize",
         "vaes", "vpclmul", "wbnoinvd", "3dnow", "amx", "ssse", "cldemote", "kl", "lwp", "hle",
         "enqcmd", "hreset", "movdir", "pconfig", "prefetchwt", "ptwrite", "rtm", "sgx", "shstk",
         "tbm", "tsxldtrk", "uintr", "waitpkg", "widekl", "xop")  # fmt: skip
_DEFAULTS = {"O": "-O0", "arch": "x86-64", "lto": "off"}
_NOTHING = (None, "off", "undefined", "0", "generic")
_CPP = (".cc", ".cpp", ".cxx", ".c++", ".C", ".CPP")
# FORTIFY replaces these always, whatever the compiler knows of sizes.
_ALWAYS_CHECKED = frozenset(("printf", "fprintf", "vprintf", "vfprintf", "sprintf", "vsprintf"))

_Group = Sequence[tuple[Compiled, Choices]]


def unit_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Units that are not optimized, flags that undo each other, and units that differ."""
    if seen.proof.own_levels:
        text = f"sources say themselves how they are optimized: {some(seen.proof.own_levels)}"
        yield seen.finding(OWN_OPTIMIZATION, text)
    if seen.request is not None:
        return
    units = [unit for unit in own_units(seen) if unit.words is not None]
    yield from _unoptimized(seen, units)
    yield from _undone(seen, units)
    group = [(unit, unit.choices) for unit in units]
    yield from _differing(seen, group)
    if not any("D:_FORTIFY_SOURCE" in has for _, has in group):
        yield from _fortified(seen)


def _unoptimized(seen: BuildEvidence, units: Sequence[Compiled]) -> Iterator[Finding]:
    levels = {level_of(unit.words) for unit in units}
    if levels and levels <= {"", "-O0"}:
        which = "" if "-O0" in levels else ", as is usual without -O"
        text = (
            f"it is not optimized: all {len(units)} compile units whose flags are known were "
            f"compiled at -O0{which}; its speed says nothing of the program as it is meant "
            "to be used"
        )
        yield seen.finding(UNOPTIMIZED, text)


def _undone(seen: BuildEvidence, units: Sequence[Compiled]) -> Iterator[Finding]:
    groups = grouped(
        (pair, unit.source)
        for unit in units
        for pair in dict.fromkeys(_undoing(unit.asked or unit.words or ()))
    )
    for (before, after), sources in groups.items():
        text = (
            f"{before} is undone by {after} later on the same command line in {len(sources)} of "
            f"{len(units)} compile units: {shown(sources)}"
        )
        yield seen.finding(FLAG_UNDONE, text)


def _undoing(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of a flag and the one that counts instead, where that gives less."""
    told = grouped((pair[0], (word, pair[1])) for word in words if (pair := effect(word)))
    for subject, flags in told.items():
        last, now = flags[-1]
        for flag, was in flags[:-1]:
            if _is_compared(subject) and _gives_less(subject, was, now):
                yield flag, last


def _gives_less(subject: str, was: str, now: str) -> bool:
    if subject == "O":
        return _LEVELS.get(now, 1) < _LEVELS.get(was, 1)
    if subject in ("arch", "cpu"):
        return was != now
    return was not in _NOTHING and now in _NOTHING


def _is_compared(subject: str) -> bool:
    return subject not in _IGNORED and (not subject.startswith("D:") or subject in _DEFINITIONS)


def _differing(seen: BuildEvidence, units: _Group) -> Iterator[Finding]:
    """Each subject once; compilers and languages have defaults of their own, so are apart."""
    told: set[str] = set()
    for group in grouped((_kin(unit), (unit, has)) for unit, has in units).values():
        subjects = {
            key
            for key in {key for _, has in group for key in has if _is_compared(key)}
            if len({_value(has, key) for _, has in group}) > 1
        }
        sets = {key for key in subjects if key.startswith(_SETS)} if "arch" in subjects else set()
        for subject in sorted(subjects - sets - told, key=lambda key: (key not in _WEIGHTY, key)):
            yield _difference(seen, subject, group)
        told |= subjects - sets


def _kin(unit: Compiled) -> tuple[str, bool]:
    family = "" if unit.unit is None else unit.unit.compiler.partition(" ")[0]
    return family, unit.source.endswith(_CPP)


def _value(has: Choices, subject: str) -> str:
    value = has.get(subject, _DEFAULTS.get(subject))
    return "" if value in _NOTHING else str(value)


def _difference(seen: BuildEvidence, subject: str, group: _Group) -> Finding:
    by_value = grouped((_value(has, subject), unit) for unit, has in group)
    most = max(by_value, key=lambda value: len(by_value[value]))
    named = {value: _named(subject, value, units) for value, units in by_value.items()}
    others = [
        f"{named[value]} in {len(units)} ({shown([unit.source for unit in units])})"
        for value, units in by_value.items()
        if value != most
    ]
    text = (
        f"the compile units differ: {named[most]} in {len(by_value[most])} of {len(group)}, "
        f"{', '.join(others)}"
    )
    return seen.finding(FLAGS_MAY_DIFFER if subject in _WEIGHTY else FLAGS_VARY, text)


def _named(subject: str, value: str, units: Sequence[Compiled]) -> str:
    """Word of the last of these units that has one; else what it comes to."""
    if value:
        words = [word for unit in units for word in (*(unit.words or ()), *unit.asked)]
        flags = (word for word in reversed(words) if (effect(word) or ("",))[0] == subject)
        return next(flags, f"-f{subject}={value}")
    if subject.startswith("D:"):
        return f"no -D{subject.removeprefix('D:')}"
    named = {"O": "no optimization (-O0)", "lto": "no -flto", "arch": "no -march"}
    return named.get(subject, f"no -f{subject}")


def _fortified(seen: BuildEvidence) -> Iterator[Finding]:
    """Findings on fortification where no command line says it: functions called both ways."""
    hardening = seen.proof.binary.hardening
    both = (name for name in hardening.unchecked if f"__{name}_chk" in hardening.checked)
    plain = sorted(_ALWAYS_CHECKED.intersection(both))
    if plain and seen.proof.binary.read:
        checked = ", ".join(f"__{name}_chk" for name in plain)
        text = f"FORTIFY is in some compile units only: {checked} and {', '.join(plain)} are called"
        yield seen.finding(FLAGS_MAY_DIFFER, text)


def object_findings(seen: BuildEvidence, objects: Sequence[ObjectFacts]) -> Iterator[Finding]:
    """Compilers, LTO and FORTIFY that only some objects have, where no flags tell it already."""
    units = own_units(seen)
    compiled = [
        object_facts for object_facts in objects if object_facts.compilers or object_facts.language
    ]
    if all(unit.words is None for unit in units):
        made = grouped(
            (compiler, object_facts.name)
            for object_facts in compiled
            for compiler in object_facts.compilers
        )
        yield from mixed_compilers(seen, made, "objects")
        without = [object_facts.name for object_facts in compiled if not object_facts.language]
        if 0 < len(without) < len(compiled):
            text = (
                f"the objects differ: {len(compiled) - len(without)} of {len(compiled)} are for "
                f"LTO, not {shown(without)}"
            )
            yield seen.finding(FLAGS_MAY_DIFFER, text)
    checked = [
        object_facts.name for object_facts in compiled if object_facts.checked - {"__stack_chk"}
    ]
    plain = [
        object_facts.name
        for object_facts in compiled
        if object_facts.unchecked & _ALWAYS_CHECKED and not object_facts.checked
    ]
    if checked and plain and not any(unit.asked for unit in units):
        text = f"FORTIFY is in {shown(checked)}, not in {shown(plain)}"
        yield seen.finding(FLAGS_MAY_DIFFER, text)


def mixed_compilers(
    seen: BuildEvidence, made: Mapping[str, Sequence[str]], parts: str
) -> Iterator[Finding]:
    """A finding where more than one compiler made the parts, whose names these are by compiler."""
    asked = seen.request is not None and seen.request.unit_flags is not None
    if len(made) > 1 and not asked:
        named = (f"{name} ({len(those)} {parts}: {shown(those)})" for name, those in made.items())
        text = f"built with more than one compiler: {'; '.join(sorted(named))}"
        yield seen.finding(MIXED_COMPILERS, text)
