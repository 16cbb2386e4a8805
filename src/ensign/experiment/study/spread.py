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
from ensign.model.trials import TWIN
from ensign.model.units import parse_share
from ensign.model.variants import AXES, DEFAULTS, Variant
from ensign.stats.relinks_differ import relinks_differ
from ensign.stats.rounds import RoundCosts
from ensign.variants.expand import expand, same_choices

_ALIGNED, _MOST_ALIGNED = "alignment", "loops"
_MOST_NAMED = 3
# Compilers align little or nothing there.
_UNALIGNED_LEVELS = ("-O0", "-Os", "-Oz")


def layouts_spread(study: Study, costs: RoundCosts, relinks: int) -> tuple[Finding, ...]:
    """A finding where they do; `costs` are of rounds that took turns with so many relinks."""
    if not relinks or study.race.margin is None:
        return ()
    margin = parse_share(study.race.margin)
    found = relinks_differ(costs, relinks, margin, study.race.level)
    if not found:
        return ()
    each = ", ".join(f"{one.variant} by {100 * math.expm1(one.sd):.1f} %" for one in found)
    more = f"differ by more than the margin of {100 * margin:.4g} %: {each} (standard deviation)"
    means = {name: costs.with_twin(name).mean() for name in costs.variants if name != TWIN}
    by_mean = sorted(means, key=lambda name: float(means[name]))
    advice = way_out(study, [one.variant for one in found], by_mean)
    if found[0].told_apart:
        return (LAYOUTS_SPREAD.found(f"relinks {more}; {advice}"),)
    text = f"rounds, each with another relink, {more}, by where code lies or by noise; {advice}"
    return (LAYOUTS_SPREAD_PERHAPS.found(text),)


def way_out(study: Study, names: Sequence[str], by_mean: Sequence[str] = ()) -> str:
    """Which lines of the study build the baseline and these variants aligned, the first first.

    All speedups hang on the baseline. Where its relinks differ, and nothing is aligned yet, the
    others are worth it, too, in their order `by_mean`.
    """
    variants = expand(study)
    by_name = {each.name: each for each in variants}
    none_aligned = all(each.alignment == DEFAULTS[_ALIGNED] for each in variants)
    if variants[0].name in names and none_aligned:
        names = (*names, *by_mean)
    chosen = [variants[0], *(by_name[name] for name in dict.fromkeys(names) if name in by_name)]
    lacking = [
        each
        for each in dict.fromkeys(chosen)
        if each.alignment == DEFAULTS[_ALIGNED]
        and each.optimization not in _UNALIGNED_LEVELS
        and not any(same_choices(_aligned(each), other) for other in variants)
    ]
    if lacking:
        lines = "; ".join(_lines(study, variants[0], lacking))
        return f"aligned builds may be faster, and differ less: add {lines}"
    if none_aligned:
        return "more relinks ('count' of [layouts]) give narrower intervals"
    if study.race.prefer == "robust":
        return "aligned builds race, and the winner is the best at its worst layout"
    return 'aligned builds race; race.prefer = "robust" chooses by the worst layout'


def _aligned(variant: Variant) -> Variant:
    return replace(variant, alignment=_MOST_ALIGNED)


def _lines(study: Study, baseline: Variant, lacking: Sequence[Variant]) -> Iterator[str]:
    axes = study.axes
    if axes.combine != "one-at-a-time" and study.baseline.alignment is None:
        yield f"[baseline] alignment = {json.dumps(baseline.alignment)}"
    in_axes = axes.combine != "list" and _MOST_ALIGNED not in axes.alignment
    if in_axes:
        yield f"[axes] alignment = {json.dumps([*axes.alignment, _MOST_ALIGNED])}"
        if axes.combine == "product":
            return
    # One at a time the axis aligns the baseline alone.
    others = [each for each in lacking if not (in_axes and each is baseline)]
    for each in others[:_MOST_NAMED]:
        yield f"[[include]] {', '.join(_keys(axes, _aligned(each)))}"


def _keys(axes: Axes, variant: Variant) -> Iterator[str]:
    """What an [[include]] must say: it has the first value of each axis that it leaves out."""
    for axis in AXES:
        value = getattr(variant, axis)
        if value != getattr(axes, axis)[0]:
            number = axis == "codegen_units" and value.isdigit()
            yield f"{axis} = {value if number else json.dumps(value)}"
