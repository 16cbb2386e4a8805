"""Whether the profile of units, and what was built of them, fits their sources. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ensign.model.finding_kinds.proof import (
    PROFILE_MISSING,
    PROFILE_NOT_USED,
    PROFILE_STALE,
    PROFILE_STILL_COLLECTED,
    SOURCE_CHANGED,
)
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, Compiled, own_units, shown

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
        """Whether it was written before that, even by a clock that goes a little otherwise."""
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
        names = shown([each.path for each in profiles])
        text = f"profiles lie beside it ({names}), but no compile unit was compiled with one"
        yield seen.finding(PROFILE_NOT_USED, text)


def _stale(
    seen: BuildEvidence,
    using: Sequence[Compiled],
    profiles: Sequence[Dated],
    sources: Sequence[Dated],
) -> Iterator[Finding]:
    written = {each.path: each.written_ns for each in sources}
    stale: dict[str, str] = {}
    for unit in using:
        fitting = [
            each
            for each in profiles
            if not each.path.endswith(".gcda") or _is_of_unit(unit, each.name)
        ]
        newest = max(fitting, key=lambda each: each.written_ns, default=None)
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
    counts = {each.name for each in profiles if each.path.endswith(_COUNTS)}
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
    later = [each.path for each in sources if built and built.is_older(each.written_ns)]
    if later:
        text = f"may not be of these sources: {shown(later)} was changed after it was built"
        yield seen.finding(SOURCE_CHANGED, f"{text}; build it again")
