"""From the builds of a study to the design that its effects are read from. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ensign.model.builds import BuildFacts
from ensign.model.findings import Finding
from ensign.model.variants import AXES, DEFAULTS
from ensign.stats.factorial import Design, Levels
from ensign.stats.winner import barred

_HARDENING = "hardening"


def design_of(
    builds: Sequence[BuildFacts], raced: Sequence[str], findings: Iterable[Finding]
) -> Design:
    """The builds that effects are read from, the first of `raced` being the baseline.

    A build of the same bytes as another counts with the other's variant. One that fails its check,
    or that an error speaks against, is left out: what it does is not what was asked for.
    """
    unfit = barred(findings, builds)
    found: dict[str, tuple[Mapping[str, str], str]] = {}
    for build in builds:
        of_it = {build.variant, build.raced_as}
        if build.raced_as in raced and not of_it & unfit:
            found[build.variant] = ({**DEFAULTS, **dict(build.choices)}, build.raced_as)
    if not raced or raced[0] not in found:
        return Design((), (), ())
    values = {axis: {levels[axis] for levels, _ in found.values()} for axis in AXES}
    axes = tuple(axis for axis in AXES if len(values[axis]) > 1)
    references = dict(found[raced[0]][0])
    # A single option of hardening is added to the compiler's own defaults, whatever the baseline.
    if DEFAULTS[_HARDENING] in values[_HARDENING]:
        references[_HARDENING] = DEFAULTS[_HARDENING]
    return Design(
        axes,
        _at(references, axes),
        tuple((_at(levels, axes), variant) for levels, variant in found.values()),
    )


def _at(levels: Mapping[str, str], axes: Sequence[str]) -> Levels:
    return tuple(levels[axis] for axis in axes)
