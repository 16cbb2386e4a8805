"""Rule: the profile of units, and what was built of them, fits their sources. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ensign.model.finding_kinds.proof import (
    NOT_JUDGED,
    PROFILE_MISSING,
    PROFILE_NOT_USED,
    PROFILE_STALE,
    PROFILE_STILL_COLLECTED,
    SOURCE_CHANGED,
)
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, Compiled, own_units, shown, units_of_build
from ensign.proof.facts import UnitKind
from ensign.proof.flags import lto_of
from ensign.proof.rust_calls import linked_crates

_USES = ("profile-use", "profile-instr-use", "auto-profile", "profile-sample-use")
_COUNTS = (".gcda", ".afdo")
_CLOCKS_APART_NS = 10**9


@dataclass(frozen=True, slots=True)
class Dated:
    """A profile, a source or what was built, and when it was written."""

    path: str
    written_ns: int

    @property
    def name(self) -> str:
        """Without its folder."""
        return PurePosixPath(self.path).name

    def is_older(self, written_ns: int) -> bool:
        """True if it was written before that, even by a clock that goes a little otherwise."""
        return self.written_ns < written_ns - _CLOCKS_APART_NS


def uses_profile(units: Sequence[Compiled]) -> tuple[Compiled, ...]:
    """The units that were compiled with a profile."""
    return tuple(unit for unit in units if any(unit.choices.get(use) == "on" for use in _USES))


def profile_file_findings(
    seen: BuildEvidence, profiles: Sequence[Dated], sources: Sequence[Dated]
) -> Iterator[Finding]:
    """Profiles that are older than a source that they were used for, missing, or not used."""
    units = [unit for unit in own_units(seen) if unit.words is not None]
    using = uses_profile(units)
    if using:
        yield from _stale(seen, using, profiles, sources)
        yield from _missing(seen, using, profiles)
    elif units and profiles and any("profile-generate" in unit.choices for unit in units):
        text = (
            "it is an instrumented build (-fprofile-generate), neither for use nor to be measured"
        )
        yield seen.finding(PROFILE_STILL_COLLECTED, text)
    elif units and profiles:
        names = shown([profile.path for profile in profiles])
        text = f"profiles lie beside it ({names}), but no compile unit was compiled with one"
        yield seen.finding(PROFILE_NOT_USED, text)


def _stale(
    seen: BuildEvidence,
    using: Sequence[Compiled],
    profiles: Sequence[Dated],
    sources: Sequence[Dated],
) -> Iterator[Finding]:
    written = {source.path: source.written_ns for source in sources}
    stale: dict[str, str] = {}
    for unit in using:
        fitting = [
            profile
            for profile in profiles
            if not profile.path.endswith(".gcda") or _is_of_unit(unit, profile.name)
        ]
        newest = max(fitting, key=lambda dated: dated.written_ns, default=None)
        if newest is not None and newest.is_older(written.get(unit.source, 0)):
            stale[unit.source] = newest.name
    if stale:
        text = (
            f"the profile may not fit the source: {shown(list(stale))} was changed after the "
            f"profile was written ({next(iter(stale.values()))}); collect it again"
        )
        yield seen.finding(PROFILE_STALE, text)


def _missing(
    seen: BuildEvidence, using: Sequence[Compiled], profiles: Sequence[Dated]
) -> Iterator[Finding]:
    counts = {profile.name for profile in profiles if profile.path.endswith(_COUNTS)}
    bare = [unit.source for unit in using if not any(_is_of_unit(unit, name) for name in counts)]
    if counts and 0 < len(bare) < len(using):
        text = (
            f"{len(bare)} of {len(using)} compile units that were to use a profile have "
            f"none: {shown(bare)}"
        )
        yield seen.finding(PROFILE_MISSING, text)


def _is_of_unit(unit: Compiled, name: str) -> bool:
    stem = PurePosixPath(unit.source).stem
    endings = (f"-{stem}.gcda", f"#{stem}.gcda")
    return name == f"{stem}.gcda" or name.endswith(endings) or name.startswith(f"{stem}.c")


def changed_source_findings(
    seen: BuildEvidence, built: Dated | None, sources: Sequence[Dated]
) -> Iterator[Finding]:
    """`source-changed`, where a source was written after the file that it is in."""
    later = [source.path for source in sources if built and built.is_older(source.written_ns)]
    if later:
        text = f"may not be of these sources: {shown(later)} was changed after it was built"
        yield seen.finding(SOURCE_CHANGED, f"{text}; build it again")


_SHOW = "a compile_commands.json, or -g (Clang: with -grecord-command-line), shows them"


def open_questions(
    seen: BuildEvidence, profiles: Sequence[Dated], sources: Sequence[Dated]
) -> Iterator[Finding]:
    """A note for each of flags, definitions, LTO, profile and link order that cannot be seen."""
    for text in _questions(seen, profiles, sources):
        yield seen.finding(NOT_JUDGED, f"not judged: {text}")


def _questions(
    seen: BuildEvidence, profiles: Sequence[Dated], sources: Sequence[Dated]
) -> Iterator[str]:
    if not linked_crates(seen):
        units = own_units(seen)
        told = [unit for unit in units if unit.words is not None]
        yield from _flags(seen, units)
        yield from _definitions(told)
        yield from _lto(seen, told)
        yield from _profile(told, profiles, sources)
    if seen.proof.link.unknown and not seen.proof.link.by:
        yield f"the order of the link: {seen.proof.link.unknown}"


def _flags(seen: BuildEvidence, units: Sequence[Compiled]) -> Iterator[str]:
    silent = [unit.source for unit in units if unit.words is None]
    others = {unit.compiler for unit in seen.proof.binary.units if unit.kind is UnitKind.OTHER}
    if not units and others:
        yield (
            f"the flags of its units: {', '.join(sorted(others))} made them, and only those of C "
            "and C++ are judged"
        )
    elif not units:
        yield f"the flags and the compiler of each unit: nothing here says them; {_SHOW}"
    elif silent:
        yield (
            f"the flags of {len(silent)} of {len(units)} compile units ({shown(silent)}): nothing "
            f"here says them; {_SHOW}"
        )


def _definitions(told: Sequence[Compiled]) -> Iterator[str]:
    """Only calls, and what Clang recorded, have them."""
    kinds = [None if unit.unit is None else unit.unit.kind for unit in told if unit.call is None]
    if any(kind is not UnitKind.CLANG for kind in kinds):
        yield (
            "definitions (_FORTIFY_SOURCE, NDEBUG): GCC records none; a compile_commands.json "
            "shows them"
        )


def _lto(seen: BuildEvidence, told: Sequence[Compiled]) -> Iterator[str]:
    if seen.link is not None:
        return
    if any(unit.kind is UnitKind.LTRANS for unit in units_of_build(seen)):
        yield "whether the link was told -flto: it did LTO, but no command that linked is known"
    elif any(lto_of(unit.words) for unit in told) or seen.proof.objects.lto:
        yield "whether LTO was done at the link: no command that linked is known"
    elif not told:
        yield "LTO: neither flags nor a command that linked are known"


def _profile(
    told: Sequence[Compiled], profiles: Sequence[Dated], sources: Sequence[Dated]
) -> Iterator[str]:
    using = uses_profile(told)
    if not told:
        yield "whether a profile was used, and whether it fits: no flags are known"
    elif using and not profiles:
        yield "whether the profile fits the sources: no profile file lies here"
    elif using:
        there = {source.path for source in sources}
        gone = [unit.source for unit in using if unit.source not in there]
        if gone:
            yield f"whether the profile fits {shown(gone)}: the source is not here"
