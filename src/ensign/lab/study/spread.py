"""Relinks that differ by more than the margin: what is said of them, and the way out. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ensign.model.finding_kinds.judgment import LAYOUTS_SPREAD, LAYOUTS_SPREAD_PERHAPS
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.study_axes import Axes
from ensign.model.units import parse_share
from ensign.model.variants import AXES, Variant
from ensign.stats.relinks_differ import relinks_differ
from ensign.stats.rounds import RoundCosts
from ensign.variants.expand import expand, same_choices

_ALIGNED = "loops"
_MOST_NAMED = 3
# Compilers align little or nothing there.
_UNALIGNED_LEVELS = ("-O0", "-Os", "-Oz")


def layouts_spread(study: Study, costs: RoundCosts, relinks: int) -> tuple[Finding, ...]:
    """A finding where they do; `costs` are of rounds that took turns with so many relinks."""
    margin = study.race.margin
    if not relinks or margin is None:
        return ()
    differing = relinks_differ(costs, relinks, parse_share(margin), study.race.level)
    if not differing:
        return ()
    first = differing[0]
    size = f"standard deviation {100 * math.expm1(first.sd):.1f} %, the margin is {margin}"
    also = ", ".join(each.variant for each in differing[1:])
    size += f"; also of {also}" if also else ""
    pair = f"{first.variant} against {costs.variants[0]}"
    if first.told_apart:
        said, kind = f"relinks differ in the speedup of {pair} ({size})", LAYOUTS_SPREAD
    else:
        said = (
            f"rounds, each with another relink, differ in the speedup of {pair} ({size}): by "
            "where code lies, or by noise"
        )
        kind = LAYOUTS_SPREAD_PERHAPS
    return (kind.found(f"{said}; {way_out(study, [each.variant for each in differing])}"),)


def way_out(study: Study, names: Sequence[str]) -> str:
    """Which lines of the study build these variants, and the baseline, aligned."""
    variants = expand(study)
    baseline = variants[0]
    chosen = [baseline, *(each for each in variants[1:] if each.name in names)]
    able = [each for each in chosen if each.optimization not in _UNALIGNED_LEVELS]
    lacking = [
        each
        for each in able
        if each.alignment == "default"
        and not any(same_choices(replace(each, alignment=_ALIGNED), other) for other in variants)
    ]
    if not lacking:
        return (
            'race.prefer = "robust" chooses by the worst layout'
            if any(each.alignment != "default" for each in variants)
            else "more relinks ('count' of [layouts]) narrow the intervals"
        )
    lines = "; ".join(_lines(study.axes, baseline, lacking))
    return f"aligned builds may be faster, and differ less: {lines}"


def _lines(axes: Axes, baseline: Variant, lacking: Sequence[Variant]) -> Iterator[str]:
    in_axes = axes.combine != "list" and _ALIGNED not in axes.alignment
    if in_axes:
        values = [*axes.alignment, _ALIGNED]
        yield f"in [axes] alignment = {json.dumps(values)}"
    if in_axes and axes.combine == "product":
        return
    # One at a time the axis aligns the baseline alone.
    others = [each for each in lacking if not (in_axes and same_choices(each, baseline))]
    for each in others[:_MOST_NAMED]:
        yield f"[[include]] with {', '.join(_keys(axes, each))}"


def _keys(axes: Axes, variant: Variant) -> Iterator[str]:
    """What an [[include]] must say: it has the first value of each axis that it leaves out."""
    aligned = replace(variant, alignment=_ALIGNED)
    for axis in AXES:
        value = getattr(aligned, axis)
        if value != getattr(axes, axis)[0]:
            number = axis == "codegen_units" and value.isdigit()
            yield f"{axis} = {value if number else json.dumps(value)}"
