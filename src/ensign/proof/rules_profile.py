"""Whether the profile that units were compiled with fits their sources. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ensign.model.finding_kinds.proof import (
    PROFILE_MISSING,
    PROFILE_NOT_USED,
    PROFILE_STALE,
    PROFILE_STILL_COLLECTED,
)
from ensign.model.findings import Finding
from ensign.proof.evidence import BuildEvidence, Compiled, own_units, shown
from ensign.proof.rules_units import effects_of

_USES = ("profile-use", "profile-instr-use", "auto-profile", "profile-sample-use")
_COUNTS = (".gcda", ".afdo")
CLOCKS_APART_NS = 10**9


@dataclass(frozen=True, slots=True)
class Dated:
    """A profile, or a source, and when it was written."""

    path: str
    written_ns: int


def uses_profile(units: Sequence[Compiled]) -> tuple[Compiled, ...]:
    """The units that were compiled with a profile."""
    return tuple(unit for unit in units if any(effects_of(unit).get(use) == "on" for use in _USES))


def profile_file_findings(
    seen: BuildEvidence, profiles: Sequence[Dated], sources: Sequence[Dated]
) -> Iterator[Finding]:
    """Profiles that are older than a source that they were used for, missing, or not used."""
    units = [unit for unit in own_units(seen) if unit.words is not None]
    using = uses_profile(units)
    if using:
        yield from _stale(seen, using, profiles, sources)
    if units and profiles and not using:
        if any("profile-generate" in effects_of(unit) for unit in units):
            text = (
                "it is an instrumented build (-fprofile-generate), neither for use nor to be "
                "measured"
            )
            yield seen.finding(PROFILE_STILL_COLLECTED, text)
        else:
            names = shown([each.path for each in profiles])
            text = f"profiles lie beside it ({names}), but no compile unit was compiled with one"
            yield seen.finding(PROFILE_NOT_USED, text)
    counted = {PurePosixPath(each.path).name for each in profiles if each.path.endswith(_COUNTS)}
    if using and counted:
        bare = [unit.source for unit in using if not _of_unit(unit, counted)]
        if bare and len(bare) < len(using):
            text = (
                f"{len(bare)} of {len(using)} compile units that were to use a profile have "
                f"none: {shown(bare)}"
            )
            yield seen.finding(PROFILE_MISSING, text)


def _of_unit(unit: Compiled, names: set[str]) -> bool:
    stem = PurePosixPath(unit.source).stem
    return any(
        name == f"{stem}.gcda"
        or name.endswith((f"-{stem}.gcda", f"#{stem}.gcda"))
        or name.startswith(f"{stem}.c")
        for name in names
    )


def _stale(
    seen: BuildEvidence,
    using: Sequence[Compiled],
    profiles: Sequence[Dated],
    sources: Sequence[Dated],
) -> Iterator[Finding]:
    written = {each.path: each.written_ns for each in sources}
    stale: dict[str, str] = {}
    for unit in using:
        when = written.get(unit.source)
        fitting = [each for each in profiles if _may_be_of(unit, each)]
        if when is not None and fitting:
            newest = max(fitting, key=lambda each: each.written_ns)
            if newest.written_ns < when - CLOCKS_APART_NS:
                stale[unit.source] = newest.path
    if stale:
        profile = PurePosixPath(next(iter(stale.values()))).name
        text = (
            f"the profile may not fit the source: {shown(list(stale))} was changed after the "
            f"profile was written ({profile}); collect it again"
        )
        yield seen.finding(PROFILE_STALE, text)


def _may_be_of(unit: Compiled, profile: Dated) -> bool:
    name = PurePosixPath(profile.path).name
    return not name.endswith(".gcda") or _of_unit(unit, {name})
