"""Flags of compile units against the flags that were asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from ensign.model.finding_kinds.proof import (
    FLAG_LEAKED_INTO_DEPENDENCY,
    FLAG_MISSING,
    FLAG_NOT_RECORDED,
    FLAG_OVERRIDDEN,
    FLAG_UNDONE,
    FLAGS_DIFFER,
    FLAGS_MAY_DIFFER,
    LTO_NOT_ASKED,
    NO_DEBUG_INFO,
    NO_DEBUG_INFO_THERE,
)
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, Compiled, Request, own_units, shown
from ensign.proof.facts import Binary, UnitKind
from ensign.proof.flags import effect, effects, level_of, lto_of

_RECORDING = "-grecord-command-line"
_DECLARED = 20
_REWRITE = 'build.rewrite.compile = ["{cflags}"]'
_BY_SYSTEM = 'with a build.system, flags_by = "recorder" does the same'
_LAST = f"give the variant's flags last, as {_REWRITE} does; {_BY_SYSTEM}"
_FIXED = ("position independence", "none")
_OFF = (
    "turn off the project's own position independence "
    "(such as CMAKE_POSITION_INDEPENDENT_CODE, b_staticpic or --with-pic)"
)
# Compilers that record flags record these as they were told.
_ALWAYS_RECORDED = frozenset(("O", "lto", "arch", "tune", "cpu"))
# Parts of libraries need it, whatever a program is told.
_POSITION = "position independence"
_MAY_DIFFER = frozenset((_POSITION,))


@dataclass(frozen=True, slots=True)
class _Miss:
    """A requested flag that a unit does not have; `instead` is what overrules it.

    `untold`: nobody gave it to the compiler, as far as its call or else the unit tells.
    """

    flag: str
    source: str
    instead: str
    overridden: bool
    untold: bool


def flag_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Missing, overridden and differing flags, debug information, leaks into dependencies."""
    if seen.request is not None:
        units = _without_own_flags(seen)
        yield from _leaks(seen, seen.request)
        missed = _missed(seen, seen.request, units)
        beside = [each for each in missed if _is_beside(seen, each)]
        yield from _beside_others(seen, beside)
        rest = [each for each in missed if each not in beside]
        found = tuple(_against(seen, seen.request, rest, len(units)))
        yield from found
        if not beside and not any(finding.is_a(FLAG_MISSING) for finding in found):
            yield from _debug(seen, units)
        yield from _unrequested_lto(seen, seen.request, units)
    elif seen.proof.binary.read and not seen.proof.binary.units:
        told = any(unit.words is not None for unit in own_units(seen))
        text = BY_CALLS if told else no_debug(seen.proof.binary)
        yield seen.finding(NO_DEBUG_INFO_THERE, text)


BY_CALLS = "it has no debug information; its flags are those of the calls that are known"


def no_debug(binary: Binary) -> str:
    """Why a file has no debug information, as far as that can be told, and what to do."""
    if binary.debug_elsewhere:
        return (
            "its debug information is in another file (.gnu_debuglink), so its flags are unknown: "
            "look at it as it was before it was split"
        )
    if not binary.has_symbols:
        return (
            "it is stripped: neither debug information nor symbols, so its flags are unknown "
            "(look at it as it was before strip, or -s at the link)"
        )
    return (
        "it has symbols but no debug information (built without -g, or strip -g), so its flags "
        f"are unknown (build with -g; Clang: also {_RECORDING})"
    )


def flags_had(seen: BuildEvidence) -> frozenset[str]:
    """The requested flags that some compile unit of a file has."""
    if seen.request is None:
        return frozenset()
    wanted, having = _wanted(seen, seen.request), set()
    for unit in _without_own_flags(seen):
        missed = {miss.flag for miss in _misses(unit, wanted)}
        judged = {flag for flag in wanted.values() if _can_judge(unit, flag)}
        having |= judged - missed
    return frozenset(having)


@dataclass(frozen=True, slots=True)
class _Missed:
    """A requested flag that units lack, of so many that could be judged."""

    flag: str
    misses: tuple[_Miss, ...]
    judged: int

    @property
    def by_all(self) -> bool:
        return len(self.misses) == self.judged

    @property
    def overridden(self) -> bool:
        return any(miss.overridden for miss in self.misses)


def _missed(
    seen: BuildEvidence, request: Request, units: Sequence[Compiled]
) -> tuple[_Missed, ...]:
    wanted = _wanted(seen, request)
    found: dict[str, list[_Miss]] = {}
    for unit in units:
        for miss in _misses(unit, wanted):
            found.setdefault(miss.flag, []).append(miss)
    return tuple(
        _Missed(flag, tuple(misses), sum(_can_judge(unit, flag) for unit in units))
        for flag, misses in found.items()
    )


def _is_beside(seen: BuildEvidence, missed: _Missed) -> bool:
    """Whether all of a file lacks what another one has: the variant's name is not false then."""
    told = missed.overridden or _any_untold(missed.misses)
    return missed.by_all and told and missed.flag in seen.elsewhere


def _beside_others(seen: BuildEvidence, missed: Sequence[_Missed]) -> Iterator[Finding]:
    by_files: dict[tuple[str, ...], list[_Missed]] = {}
    for each in missed:
        by_files.setdefault(seen.elsewhere[each.flag], []).append(each)
    for files, those in by_files.items():
        named = ", ".join(_with_instead(each.misses) for each in those)
        sources = [miss.source for miss in those[0].misses]
        text = (
            f"no compile unit ({those[0].judged}) of {seen.name} has {named}, which {shown(files)} "
            f"{'have' if len(files) > 1 else 'has'}, as was asked for; hand it to "
            f"{seen.name}, too ({_REWRITE}), or {_declare(seen, sources)}"
        )
        yield FLAGS_MAY_DIFFER.found(text, seen.subject)


def _against(
    seen: BuildEvidence, request: Request, missed: Sequence[_Missed], count: int
) -> Iterator[Finding]:
    missing: list[_Missed] = []
    for each in missed:
        if each.overridden:
            yield _overridden(seen, each.misses, everywhere=each.by_all)
        elif each.by_all:
            missing.append(each)
        else:
            yield _in_some(seen, request, each.misses, each.judged)
    if missing:
        named = [_with_instead(each.misses) for each in missing]
        text = f"no compile unit ({count}) has {', '.join(named)}, which was asked for"
        untold = any(_any_untold(each.misses) for each in missing)
        if untold:
            text = f"{text}; a build that ignores its variables gets them by {_REWRITE}"
            text = f"{text}; {_BY_SYSTEM}"
        yield seen.finding(FLAG_MISSING if untold else FLAG_NOT_RECORDED, text)


def _overridden(seen: BuildEvidence, misses: Sequence[_Miss], *, everywhere: bool) -> Finding:
    those = [miss for miss in misses if miss.overridden]
    flag, instead = those[0].flag, those[0].instead
    sources = [miss.source for miss in those]
    text = f"{flag} is overridden later on the command line by {instead}: {shown(sources)}"
    false_name = everywhere or _any_untold(misses)
    if false_name:
        text = f"{text}; {_OFF if effect(flag) == _FIXED else _LAST}"
        if not everywhere:
            text = f"{text}, or {_declare(seen, sources)}"
    return seen.finding(FLAG_OVERRIDDEN if false_name else FLAG_UNDONE, text)


def _in_some(
    seen: BuildEvidence, request: Request, misses: Sequence[_Miss], judged: int
) -> Finding:
    sources = [miss.source for miss in misses]
    text = (
        f"{_with_instead(misses)} was asked for, but {len(misses)} of {judged} compile units "
        f"lack it: {shown(sources)}"
    )
    kind = FLAGS_DIFFER if _any_untold(misses) else FLAGS_MAY_DIFFER
    if request.staged and not seen.calls:
        text = f"{text}; no calls are recorded that tell whether these are of a dependency"
        kind = FLAGS_MAY_DIFFER
    elif kind is FLAGS_DIFFER:
        text = f"{text}; hand {misses[0].flag} to them, or {_declare(seen, sources)}"
    return seen.finding(kind, text)


def _with_instead(misses: Sequence[_Miss]) -> str:
    instead = sorted({miss.instead for miss in misses} - {""})
    return misses[0].flag + (f" (there is {', '.join(instead)})" if instead else "")


def _declare(seen: BuildEvidence, sources: Sequence[str]) -> str:
    names = [f'"{name}"' for name in dict.fromkeys(_relative(seen, each) for each in sources)]
    listed = ", ".join([*names[:_DECLARED], *(["…"] if len(names) > _DECLARED else [])])
    return f"declare what is to have its own flags: build.own_flags = [{listed}]"


def _relative(seen: BuildEvidence, source: str) -> str:
    return source.removeprefix(f"{seen.proof.build_path}/")


def _any_untold(misses: Sequence[_Miss]) -> bool:
    """Units that were not told make the variant's name false; others may just not say it."""
    return any(miss.untold for miss in misses)


def with_own_flags(seen: BuildEvidence, units: Sequence[Compiled]) -> tuple[Compiled, ...]:
    """The units that the study declares in `build.own_flags`."""
    globs = () if seen.request is None else seen.request.own_flags
    return tuple(
        unit for unit in units if any(fnmatch(_relative(seen, unit.source), glob) for glob in globs)
    )


def _without_own_flags(seen: BuildEvidence) -> list[Compiled]:
    every = own_units(seen)
    own = with_own_flags(seen, every)
    return [unit for unit in every if unit not in own]


def _wanted(seen: BuildEvidence, request: Request) -> dict[str, str]:
    """Subject to the requested flag that counts; libraries are independent of position anyway."""
    flags: dict[str, str] = {}
    for flag in request.flags.compile:
        pair = effect(flag)
        if pair is not None and pair[0] != "g":
            flags[pair[0]] = flag
    if seen.proof.binary.shared_library:
        flags.pop(_POSITION, None)
    return flags


def _misses(unit: Compiled, wanted: dict[str, str]) -> Iterator[_Miss]:
    has = effects(unit.words or ())
    has |= {key: value for key, value in effects(unit.asked).items() if key.startswith("D:")}
    for subject, flag in wanted.items():
        pair = effect(flag)
        value = has.get(subject)
        if pair is None or value == pair[1] or not _can_judge(unit, flag):
            continue
        if _as_good(subject, pair[1], value):
            continue
        both = (*(unit.words or ()), *unit.asked)
        overridden = value is not None and flag in both
        instead = _instead(both, subject, value)
        yield _Miss(flag, unit.source, instead, overridden, _untold(unit, subject, pair[1]))


def _untold(unit: Compiled, subject: str, wanted: str) -> bool:
    if subject in _MAY_DIFFER:
        return False
    if unit.call is None:
        return subject in _ALWAYS_RECORDED or subject.startswith("D:")
    told = effects(unit.asked).get(subject)
    return told != wanted and not _as_good(subject, wanted, told)


def _as_good(subject: str, wanted: str, value: str | None) -> bool:
    """Spellings that a compiler records differently from what it was told."""
    if wanted == "off" or (subject == "D:_FORTIFY_SOURCE" and wanted == "undefined"):
        return value in (None, "off", "undefined")
    if wanted == "native":
        return value is not None
    if subject == _POSITION and wanted in ("PIE", "pie"):
        return value in ("PIC", "pic", "PIE", "pie")
    return subject == "O" and {wanted, value} == {"-O0", None}


def _can_judge(unit: Compiled, flag: str) -> bool:
    """A definition is to be seen in calls, and in what Clang recorded."""
    if flag.startswith(("-D", "-U")):
        recorded = unit.unit is not None and unit.unit.kind is UnitKind.CLANG
        return unit.call is not None or (recorded and unit.words is not None)
    return unit.words is not None


def _instead(words: Iterable[str], subject: str, value: str | None) -> str:
    found = ""
    for word in words:
        if effect(word) == (subject, value):
            found = word
    return found


def _debug(seen: BuildEvidence, units: Sequence[Compiled]) -> Iterator[Finding]:
    """Without debug information the artifact proves nothing; ensign always asks for it."""
    request = seen.request
    if request is not None and request.variant.strip == "yes":
        return
    bare = [
        unit.source
        for unit in units
        if unit.unit is None and effects(unit.asked).get("g", "off") == "off"
    ]
    if bare:
        text = f"{len(bare)} of {len(units)} compile units have no debug information: "
        yield seen.finding(NO_DEBUG_INFO, text + shown(bare))
    elif not seen.proof.binary.units:
        text = no_debug(seen.proof.binary)
        yield seen.finding(NO_DEBUG_INFO, text)
    unrecorded = [unit.source for unit in units if unit.words is None]
    known = bool(seen.calls) or len(unrecorded) == len(units)
    if unrecorded and known and request is not None and _RECORDING in request.flags.compile:
        text = (
            f"{len(unrecorded)} of {len(units)} compile units record no flags although "
            f"{_RECORDING} was asked for, so no flag reached them: {shown(unrecorded)}"
        )
        kind = FLAG_MISSING if len(unrecorded) == len(units) else FLAGS_DIFFER
        if kind is FLAG_MISSING and seen.elsewhere:
            kind = FLAGS_MAY_DIFFER
        yield seen.finding(kind, f"{text}; or {_declare(seen, unrecorded)}")


def _unrequested_lto(
    seen: BuildEvidence, request: Request, units: Sequence[Compiled]
) -> Iterator[Finding]:
    if request.variant.lto != "off" or lto_of(request.flags.compile):
        return
    lto = [unit.source for unit in units if lto_of(unit.words)]
    if lto:
        text = f"LTO was not asked for, but {len(lto)} compile units have it: {shown(lto)}"
        yield seen.finding(LTO_NOT_ASKED, text)


def _leaks(seen: BuildEvidence, request: Request) -> Iterator[Finding]:
    """Dependencies that were built once more in the program's stage, with the variant's flags."""
    if request.variant.dependencies != "plain":
        return
    before = {
        output.path: call
        for call in seen.dependency_calls
        for output in call.outputs
        if output.path.endswith((".o", ".lo"))
    }
    wanted = _wanted(seen, request)
    leaked: dict[str, list[str]] = {}
    for call in seen.calls:
        for output in call.outputs:
            old = before.get(output.path)
            if old is None:
                continue
            had, has = effects(old.ran[1:]), effects(call.ran[1:])
            for subject, flag in wanted.items():
                pair = effect(flag)
                if pair and has.get(subject) == pair[1] != had.get(subject):
                    leaked.setdefault(output.path, []).append(flag)
    if leaked:
        flags = list(dict.fromkeys(flag for each in leaked.values() for flag in each))
        text = (
            f"{' '.join(flags)} leaked into a bundled dependency, whose {len(leaked)} objects "
            f"were built again by the program's build: {shown(list(leaked))}"
        )
        yield seen.finding(FLAG_LEAKED_INTO_DEPENDENCY, text)


def ltrans_levels(seen: BuildEvidence) -> list[str]:
    """The optimization levels at which GCC generated code at the link."""
    levels = {
        level_of(unit.flags) for unit in seen.proof.binary.units if unit.kind is UnitKind.LTRANS
    }
    return sorted(levels)
