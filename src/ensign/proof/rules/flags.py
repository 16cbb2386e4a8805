"""Flags of compile units against the flags that were asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
from ensign.proof.comparison import Difference, differences, grouped
from ensign.proof.evidence import BuildEvidence, Compiled, Request, own_units, shown
from ensign.proof.facts import Binary, UnitKind
from ensign.proof.flags import effect, effects, lto_of

BY_CALLS = "it has no debug information; its flags are those of the calls that are known"

_RECORDING = "-grecord-command-line"
_DECLARED = 20
_REWRITE = 'build.rewrite.compile = ["{cflags}"]'
_BY_SYSTEM = 'with a build.system, flags_by = "recorder" does the same'
_LAST = f"give the variant's flags last, as {_REWRITE} does; {_BY_SYSTEM}"
_OFF = (
    "turn off the project's own position independence "
    "(such as CMAKE_POSITION_INDEPENDENT_CODE, b_staticpic or --with-pic)"
)
# Compilers that record flags record these as they were told.
_ALWAYS_RECORDED = frozenset(("O", "lto", "arch", "tune", "cpu"))
# Parts of libraries need it, whatever a program is told.
_POSITION = "position independence"

_Wanted = Mapping[str, str]  # subject to flag


@dataclass(frozen=True, slots=True)
class _Miss:
    """A compile unit without a requested flag; `instead` is the word that counts.

    `overridden`: it has the flag, too, before that word. `untold`: nobody gave it the flag, as far
    as its call or else the unit tells; then the variant's name is false.
    """

    source: str
    instead: str
    overridden: bool
    untold: bool


@dataclass(frozen=True, slots=True)
class _Lack:
    """A requested flag that units lack, of so many that could be judged."""

    flag: str
    misses: tuple[_Miss, ...]
    judged: int

    @property
    def by_all(self) -> bool:
        return len(self.misses) == self.judged

    @property
    def overridden(self) -> tuple[_Miss, ...]:
        return tuple(miss for miss in self.misses if miss.overridden)

    @property
    def untold(self) -> bool:
        return any(miss.untold for miss in self.misses)

    def __str__(self) -> str:
        instead = sorted({miss.instead for miss in self.misses} - {""})
        return self.flag + (f" (there is {', '.join(instead)})" if instead else "")


def flag_findings(seen: BuildEvidence) -> Iterator[Finding]:
    """Missing, overridden and differing flags, debug information, leaks into dependencies."""
    request = seen.request
    if request is None:
        if seen.proof.binary.read and not seen.proof.binary.units:
            told = any(unit.words is not None for unit in own_units(seen))
            yield seen.finding(
                NO_DEBUG_INFO_THERE, BY_CALLS if told else no_debug(seen.proof.binary)
            )
        return
    units = _units(seen)
    lacks = _lacks(seen, units)
    beside = [lack for lack in lacks if _is_beside(seen, lack)]
    against = tuple(_against(seen, request, [e for e in lacks if e not in beside], len(units)))
    yield from _units_against(seen, request)
    yield from _leaks(seen, request)
    yield from _beside_others(seen, beside)
    yield from against
    if not beside and not any(finding.is_a(FLAG_MISSING) for finding in against):
        yield from _debug(seen, request, units)
    if request.variant.lto == "off" and not lto_of(request.flags.compile):
        lto = [unit.source for unit in units if lto_of(unit.words)]
        if lto:
            text = f"LTO was not asked for, but {len(lto)} compile units have it: {shown(lto)}"
            yield seen.finding(LTO_NOT_ASKED, text)


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
    wanted = _wanted(seen)
    return frozenset(
        flag
        for unit, missed in [(unit, _misses(unit, wanted)) for unit in _units(seen)]
        for flag in wanted.values()
        if flag not in missed and _can_judge(unit, flag)
    )


def _units(seen: BuildEvidence) -> list[Compiled]:
    return [unit for unit in own_units(seen) if not seen.has_own_flags(unit.source)]


def _wanted(seen: BuildEvidence) -> _Wanted:
    """The requested flag that counts; libraries are independent of position anyway."""
    flags: dict[str, str] = {}
    for flag in () if seen.request is None else seen.request.flags.compile:
        pair = effect(flag)
        if pair is not None and pair[0] != "g":
            flags[pair[0]] = flag
    if seen.proof.binary.shared_library:
        flags.pop(_POSITION, None)
    return flags


def _lacks(seen: BuildEvidence, units: Sequence[Compiled]) -> list[_Lack]:
    wanted = _wanted(seen)
    missed = grouped(pair for unit in units for pair in _misses(unit, wanted).items())
    return [
        _Lack(flag, tuple(misses), sum(_can_judge(unit, flag) for unit in units))
        for flag, misses in missed.items()
    ]


def _misses(unit: Compiled, wanted: _Wanted) -> dict[str, _Miss]:
    """Flags that a unit lacks."""
    words = (*(unit.words or ()), *unit.asked)
    misses: dict[str, _Miss] = {}
    for difference in differences(effects(wanted.values()), unit.choices, wanted):
        flag, there = wanted[difference.subject], (difference.subject, difference.there)
        if _can_judge(unit, flag) and not _is_as_good(difference):
            instead = next((word for word in reversed(words) if effect(word) == there), "")
            overridden = difference.there is not None and flag in words
            misses[flag] = _Miss(unit.source, instead, overridden, _is_untold(unit, difference))
    return misses


def _is_untold(unit: Compiled, lack: Difference) -> bool:
    if lack.subject == _POSITION:
        return False
    if unit.call is None:
        return lack.subject in _ALWAYS_RECORDED or lack.subject.startswith("D:")
    told = effects(unit.asked).get(lack.subject)
    return told != lack.asked and not _is_as_good(replace(lack, there=told))


def _is_as_good(difference: Difference) -> bool:
    """True if a compiler just records it differently from what it was told."""
    if difference.asked == "off" or (
        difference.subject == "D:_FORTIFY_SOURCE" and difference.asked == "undefined"
    ):
        return difference.there in (None, "off", "undefined")
    if difference.asked == "native":
        return difference.there is not None
    if difference.subject == _POSITION and difference.asked in ("PIE", "pie"):
        return difference.there in ("PIC", "pic", "PIE", "pie")
    return difference.subject == "O" and {difference.asked, difference.there} == {"-O0", None}


def _can_judge(unit: Compiled, flag: str) -> bool:
    """True if it can be seen: definitions in calls, and in what Clang recorded."""
    if flag.startswith(("-D", "-U")) and unit.call is None:
        recorded = unit.unit is not None and unit.unit.kind is UnitKind.CLANG
        return recorded and unit.words is not None
    return unit.words is not None


def _is_beside(seen: BuildEvidence, lack: _Lack) -> bool:
    """True if all of a file lacks what another one has: the variant's name is not false then."""
    told = lack.overridden or lack.untold
    return lack.by_all and bool(told) and lack.flag in seen.elsewhere


def _beside_others(seen: BuildEvidence, lacks: Sequence[_Lack]) -> Iterator[Finding]:
    for files, those in grouped((seen.elsewhere[lack.flag], lack) for lack in lacks).items():
        text = (
            f"no compile unit ({those[0].judged}) of {seen.name} has {', '.join(map(str, those))}, "
            f"which {shown(files)} {'have' if len(files) > 1 else 'has'}, as was asked for; hand "
            f"it to {seen.name}, too ({_REWRITE}), or {_declare(seen, those[0].misses)}"
        )
        yield FLAGS_MAY_DIFFER.found(text, seen.subject)


def _against(
    seen: BuildEvidence, request: Request, lacks: Sequence[_Lack], count: int
) -> Iterator[Finding]:
    missing = [lack for lack in lacks if lack.by_all and not lack.overridden]
    for each in lacks:
        if each.overridden:
            yield _overridden(seen, each)
        elif not each.by_all:
            yield _in_some(seen, request, each)
    if missing:
        named = ", ".join(map(str, missing))
        text = f"no compile unit ({count}) has {named}, which was asked for"
        untold = any(lack.untold for lack in missing)
        if untold:
            text = f"{text}; a build that ignores its variables gets them by {_REWRITE}"
            text = f"{text}; {_BY_SYSTEM}"
        yield seen.finding(FLAG_MISSING if untold else FLAG_NOT_RECORDED, text)


def _units_against(seen: BuildEvidence, request: Request) -> Iterator[Finding]:
    """The same of sources that were to have other flags; there must be some."""
    others = seen.of_units()
    if others is None or others.request is None:
        return
    units = _units(others)
    if not units:
        text = f"no compile unit is of the sources '{request.units}'"
        yield seen.finding(FLAG_MISSING, text)
    yield from _against(others, others.request, _lacks(others, units), len(units))
    yield from _not_theirs(seen, _wanted(others))
    yield from _not_theirs(others, _wanted(seen))


def _not_theirs(seen: BuildEvidence, of_others: _Wanted) -> Iterator[Finding]:
    """Units with a flag that only other sources were to have."""
    own = _wanted(seen)
    alien = {subject: flag for subject, flag in of_others.items() if subject not in own}
    had = grouped(
        (flag, unit)
        for unit in _units(seen)
        for subject, flag in alien.items()
        if effect(flag) == (subject, unit.choices.get(subject))
    )
    for flag, units in had.items():
        text = f"{shown([unit.source for unit in units])}: compiled with {flag}, meant for others"
        if any(unit.call is not None and len(unit.call.line.sources) > 1 for unit in units):
            text = f"{text}; sources of one call cannot have flags of their own"
        yield seen.finding(FLAGS_DIFFER, text)


def _overridden(seen: BuildEvidence, lack: _Lack) -> Finding:
    those = lack.overridden
    sources = shown([miss.source for miss in those])
    text = f"{lack.flag} is overridden later on the command line by {those[0].instead}: {sources}"
    if not lack.by_all and not lack.untold:
        return seen.finding(FLAG_UNDONE, text)
    text = f"{text}; {_OFF if effect(lack.flag) == (_POSITION, 'none') else _LAST}"
    if not lack.by_all:
        text = f"{text}, or {_declare(seen, those)}"
    return seen.finding(FLAG_OVERRIDDEN, text)


def _in_some(seen: BuildEvidence, request: Request, lack: _Lack) -> Finding:
    text = (
        f"{lack} was asked for, but {len(lack.misses)} of {lack.judged} compile units "
        f"lack it: {shown([miss.source for miss in lack.misses])}"
    )
    if request.staged and not seen.calls:
        text = f"{text}; no calls are recorded that tell whether these are of a dependency"
    elif lack.untold:
        text = f"{text}; hand {lack.flag} to them, or {_declare(seen, lack.misses)}"
        return seen.finding(FLAGS_DIFFER, text)
    return seen.finding(FLAGS_MAY_DIFFER, text)


def _declare(seen: BuildEvidence, those: Sequence[_Miss | Compiled]) -> str:
    names = [f'"{name}"' for name in dict.fromkeys(seen.relative(unit.source) for unit in those)]
    listed = ", ".join([*names[:_DECLARED], *(["…"] if len(names) > _DECLARED else [])])
    return f"declare what is to have its own flags: build.own_flags = [{listed}]"


def _debug(seen: BuildEvidence, request: Request, units: Sequence[Compiled]) -> Iterator[Finding]:
    """Without debug information the artifact proves nothing; ensign always asks for it."""
    if request.variant.strip == "yes":
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
        yield seen.finding(NO_DEBUG_INFO, no_debug(seen.proof.binary))
    silent = [unit for unit in units if unit.words is None]
    all_silent = len(silent) == len(units)
    if silent and (seen.calls or all_silent) and _RECORDING in request.flags.compile:
        text = (
            f"{len(silent)} of {len(units)} compile units record no flags although {_RECORDING} "
            f"was asked for, so no flag reached them: {shown([unit.source for unit in silent])}"
        )
        kind = FLAGS_DIFFER
        if all_silent:
            kind = FLAGS_MAY_DIFFER if seen.elsewhere else FLAG_MISSING
        yield seen.finding(kind, f"{text}; or {_declare(seen, silent)}")


def _leaks(seen: BuildEvidence, request: Request) -> Iterator[Finding]:
    """Dependencies that were built once more in the program's stage, with the variant's flags."""
    if request.variant.dependencies != "plain":
        return
    wanted = _wanted(seen)
    asked = effects(wanted.values())
    before = {
        output.path: call
        for call in seen.dependency_calls
        for output in call.outputs
        if output.path.endswith((".o", ".lo"))
    }
    leaked = grouped(
        (output.path, wanted[difference.subject])
        for call in seen.calls
        for output in call.outputs
        if output.path in before
        for difference in differences(
            effects(before[output.path].ran[1:]), effects(call.ran[1:]), wanted
        )
        if difference.there == asked[difference.subject]
    )
    if leaked:
        flags = dict.fromkeys(flag for of_unit in leaked.values() for flag in of_unit)
        text = (
            f"{' '.join(flags)} leaked into a bundled dependency, whose {len(leaked)} objects "
            f"were built again by the program's build: {shown(list(leaked))}"
        )
        yield seen.finding(FLAG_LEAKED_INTO_DEPENDENCY, text)
