"""Compile units compared with each other, where nobody said what was asked for. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ensign.model.finding_kinds.proof import (
    FLAG_UNDONE,
    FLAGS_MAY_DIFFER,
    FLAGS_VARY,
    OWN_OPTIMIZATION,
    UNOPTIMIZED,
)
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, Compiled, own_units, shown, some
from ensign.proof.flags import effect, effects, level_of

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
_DEFAULTS = {"O": "-O0", "arch": "x86-64", "lto": "off"}
_NOTHING = (None, "off", "undefined", "0", "generic")
_CPP = (".cc", ".cpp", ".cxx", ".c++", ".C", ".CPP")


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
    yield from _differing(seen, units)
    yield from _fortified(seen, units)


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
    found: dict[tuple[str, str], list[str]] = {}
    for unit in units:
        words = unit.asked or unit.words or ()
        for pair in dict.fromkeys(_undoing(words)):
            found.setdefault(pair, []).append(unit.source)
    for (before, after), sources in found.items():
        text = (
            f"{before} is undone by {after} later on the same command line in {len(sources)} of "
            f"{len(units)} compile units: {shown(sources)}"
        )
        yield seen.finding(FLAG_UNDONE, text)


def _undoing(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of a flag and the one that counts instead, where that gives less."""
    told: dict[str, list[str]] = defaultdict(list)
    for word in words:
        pair = effect(word)
        if pair is not None and (not pair[0].startswith("D:") or pair[0] in _DEFINITIONS):
            told[pair[0]].append(word)
    for subject, flags in told.items():
        last = flags[-1]
        for flag in flags[:-1]:
            if subject not in _IGNORED and _gives_less(subject, flag, last):
                yield flag, last


def _gives_less(subject: str, before: str, after: str) -> bool:
    was, now = effect(before), effect(after)
    if was is None or now is None or was[1] == now[1]:
        return False
    if subject == "O":
        return _LEVELS.get(now[1], 1) < _LEVELS.get(was[1], 1)
    if subject in ("arch", "cpu"):
        return True
    return was[1] not in _NOTHING and now[1] in _NOTHING


def _differing(seen: BuildEvidence, units: Sequence[Compiled]) -> Iterator[Finding]:
    groups: dict[tuple[str, bool], list[Compiled]] = defaultdict(list)
    for unit in units:
        family = "" if unit.unit is None else unit.unit.compiler.partition(" ")[0]
        groups[family, unit.source.endswith(_CPP)].append(unit)
    told: set[str] = set()
    for group in groups.values():
        having = [(unit, effects_of(unit)) for unit in group]
        subjects = {key for _, has in having for key in has if _counts(key, having)}
        for subject in sorted(subjects, key=lambda key: (key not in _WEIGHTY, key)):
            if subject not in told and not (subject in _mflags(subjects) and "arch" in subjects):
                yield from _difference(seen, subject, having)
                told.add(subject)


def effects_of(unit: Compiled) -> dict[str, str]:
    """What a unit's flags come to, with the definitions on its recorded command line."""
    has = effects(unit.words or ())
    asked = effects(unit.asked)
    return has | {key: value for key, value in asked.items() if key in _DEFINITIONS}


def _counts(subject: str, having: Sequence[tuple[Compiled, dict[str, str]]]) -> bool:
    if subject in _IGNORED or (subject.startswith("D:") and subject not in _DEFINITIONS):
        return False
    return len({_value(has, subject) for _, has in having}) > 1


def _value(has: dict[str, str], subject: str) -> str:
    value = has.get(subject, _DEFAULTS.get(subject))
    return "" if value in _NOTHING else str(value)


def _mflags(subjects: set[str]) -> set[str]:
    """Instruction sets, which `-march` brings along in what GCC records."""
    plain = {"O", "lto", "arch", "cpu", *_DEFINITIONS}
    return {each for each in subjects - plain - _WEIGHTY if each.startswith(_SETS)}


_SETS = ("avx", "sse", "no-", "mmx", "fma", "bmi", "adx", "aes", "sha", "xsave", "popcnt", "abm",
         "clflush", "clwb", "clzero", "cx16", "f16c", "fsgsbase", "fxsr", "gfni", "lzcnt", "movbe",
         "mwait", "pclmul", "pku", "prfchw", "rdpid", "rdrnd", "rdseed", "sahf", "serialize",
         "vaes", "vpclmul", "wbnoinvd", "3dnow", "amx", "ssse", "cldemote", "kl", "lwp", "hle",
         "enqcmd", "hreset", "movdir", "pconfig", "prefetchwt", "ptwrite", "rtm", "sgx", "shstk",
         "tbm", "tsxldtrk", "uintr", "waitpkg", "widekl", "xop")  # fmt: skip


def _difference(
    seen: BuildEvidence, subject: str, having: Sequence[tuple[Compiled, dict[str, str]]]
) -> Iterator[Finding]:
    by_value: dict[str, list[str]] = defaultdict(list)
    flags: dict[str, str] = {}
    for unit, has in having:
        value = _value(has, subject)
        by_value[value].append(unit.source)
        flags[value] = _flag(unit, subject) or flags.get(value, "")
    most = max(by_value, key=lambda value: len(by_value[value]))
    others = {value: names for value, names in by_value.items() if value != most}
    usual = _said(subject, most, flags[most])
    parts = [
        f"{_said(subject, value, flags[value])} in {len(names)} ({shown(names)})"
        for value, names in others.items()
    ]
    text = (
        f"the compile units differ: {usual} in {len(by_value[most])} of {len(having)}, "
        f"{', '.join(parts)}"
    )
    yield seen.finding(FLAGS_MAY_DIFFER if subject in _WEIGHTY else FLAGS_VARY, text)


def _said(subject: str, value: str, flag: str) -> str:
    if value:
        return flag or f"-f{subject}={value}"
    named = {"O": "no optimization (-O0)", "lto": "no -flto", "arch": "no -march"}
    plain = subject.removeprefix("D:")
    missing = f"no -D{plain}" if subject.startswith("D:") else f"no -f{subject}"
    return named.get(subject, missing)


def _flag(unit: Compiled, subject: str) -> str:
    """The word that counts for a subject."""
    found = ""
    for word in (*(unit.words or ()), *unit.asked):
        pair = effect(word)
        if pair is not None and pair[0] == subject:
            found = word
    return found


# These are always replaced by FORTIFY, whatever the compiler knows of sizes.
_ALWAYS_CHECKED = frozenset(("printf", "fprintf", "vprintf", "vfprintf", "sprintf", "vsprintf"))


def _fortified(seen: BuildEvidence, units: Sequence[Compiled]) -> Iterator[Finding]:
    """Where no command line says it: functions called in their checked and their plain form."""
    if any("D:_FORTIFY_SOURCE" in effects_of(unit) for unit in units):
        return
    found = seen.proof.binary.hardening
    if not seen.proof.binary.read:
        return
    plain = sorted(
        name for name in _ALWAYS_CHECKED & set(found.unchecked) if f"__{name}_chk" in found.checked
    )
    if plain:
        checked = ", ".join(f"__{name}_chk" for name in plain)
        text = f"FORTIFY is in some compile units only: {checked} and {', '.join(plain)} are called"
        yield seen.finding(FLAGS_MAY_DIFFER, text)
