"""Relinks in a study: which round uses which, their own race, and what they show. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ensign.experiment.record import Record
from ensign.experiment.study.budget import SPREAD_EXECUTIONS
from ensign.experiment.study.round_plan import RoundPlan
from ensign.experiment.study.variants import VariantSet
from ensign.model.builds import BuildFacts
from ensign.model.finding_kinds.judgment import LAYOUTS_SPREAD, LAYOUTS_SPREAD_PERHAPS
from ensign.model.findings import Finding
from ensign.model.results import LayoutFacts, LayoutSplit, LayoutSpread, VariantLayouts
from ensign.model.study import Study
from ensign.model.study_axes import Axes
from ensign.model.trials import TWIN, Metric, Trial, failed_variants
from ensign.model.units import parse_share
from ensign.model.variants import AXES, DEFAULTS, Variant
from ensign.stats.layouts import (
    Split,
    blocked_split,
    by_relink,
    nested_split,
    relink_groups,
    relink_spread,
    relinks_differ,
    worst_layouts,
)
from ensign.stats.named_scores import judged_tests
from ensign.stats.pair import exp
from ensign.stats.rounds import RoundCosts, round_costs
from ensign.stats.suite import round_geomeans
from ensign.stats.variance_components import FreshLink, fresh_link, own_spread
from ensign.variants.expand import expand, same_choices

Floats = NDArray[np.float64]

_FEWEST = 2
_NATURAL = "natural"


def rotating(
    study: Study, variants: VariantSet, relinks: Mapping[str, Sequence[str]]
) -> VariantSet:
    """The variants whose rounds take turns with relinks, of every variant that has them.

    All take turns with equally many, so that executions of one relink can be told for every pair.
    Where the baseline has none nothing is relinked: variants are to be perturbed alike.
    """
    baseline, most = variants.artifacts[0][0], study.layouts.relinks
    able = {
        name: tuple(relinks.get(name, ()))
        for name, _ in variants.artifacts
        if len(relinks.get(name, ())) >= _FEWEST
    }
    if study.layouts.variants != "all" or baseline not in able:
        return variants
    own = able[baseline]
    # What gives only few different links is raced as it was linked.
    able = {name: paths for name, paths in able.items() if 2 * len(paths) >= min(most, len(own))}
    count = min(most, *(len(paths) for paths in able.values()))
    # The twin's are further relinks; where too few differ, the baseline's in another turn.
    twin = own[count : 2 * count]
    if len(twin) < count:
        twin = own[1:count] + own[:1]
    chosen = {name: paths[:count] for name, paths in able.items()}
    return replace(variants, relinks={**chosen, TWIN: twin}, rotation=count)


def spread_race(
    study: Study,
    natural: VariantSet,
    plan: RoundPlan,
    baseline: BuildFacts,
    relinks: Mapping[str, Sequence[str]],
) -> tuple[VariantSet, RoundPlan] | None:
    """The race of the baseline's relinks against its natural link, if the study asks for it."""
    paths = relinks.get(baseline.variant, ())
    if study.layouts.variants != "baseline" or len(paths) < _FEWEST:
        return None
    digest = hashlib.sha256(" ".join(baseline.layouts).encode()).hexdigest()[:8]
    key = f"{plan.key}-relinks-{digest}"
    spread = replace(plan, key=key, rounds=SPREAD_EXECUTIONS, closed=True)
    return beside_natural(natural, paths), spread


def beside_natural(natural: VariantSet, paths: Sequence[str]) -> VariantSet:
    """The baseline as it was linked, and its relinks as variants."""
    artifacts = [(_NATURAL, natural.artifacts[0][1])]
    artifacts += [(_relink(number), path) for number, path in enumerate(paths)]
    return replace(natural, artifacts=tuple(artifacts))


def over_natural(
    study: Study, trials: Sequence[Trial], relinks: int, metric: Metric
) -> tuple[tuple[str, ...], Floats] | None:
    """Log ratios d[relink, workload, round] of trials of relinks, and the workloads.

    Without relinks that failed. None without two, or without a whole round.
    """
    gone = failed_variants(trials)
    names = [name for name in map(_relink, range(relinks)) if name not in gone]
    tests = judged_tests([workload.name for workload in study.workloads], trials)
    costs = round_costs(tests.trials, (_NATURAL, TWIN, *names), tests.names, metric)
    if not costs.rounds or len(names) < _FEWEST:
        return None
    return tests.names, np.stack([costs.log_ratios(name, _NATURAL) for name in names])


def _relink(number: int) -> str:
    return f"relink-{number + 1}"


def layout_facts(
    study: Study, record: Record, costs: RoundCosts, relinked: Sequence[Trial]
) -> LayoutFacts | None:
    """Findings of relinks; None where there were none. `costs` are of executions."""
    baseline = next((facts for facts in record.builds if facts.variant == record.raced[0]), None)
    if baseline is None or len(baseline.layouts) < _FEWEST:
        return None
    if record.relinks:
        able = {build.variant for build in record.builds if len(build.layouts) >= record.relinks}
        unable = tuple(name for name in record.raced if name not in able)
        splits = _rotation_splits(costs, record.relinks, study.race.level)
        own = _own(costs, record, unable, study.race.level)
        units = by_relink(costs, record.relinks, twin_apart=record.twin_apart)
        worst = tuple(layout for layout in worst_layouts(units) if layout.variant not in unable)
        return LayoutFacts(
            record.relinks, baseline.layout_kind, unable, splits, worst=worst, variants=own
        )
    if not relinked:
        return None
    splits, spreads = _spread(study, baseline, relinked)
    return LayoutFacts(0, baseline.layout_kind, (), splits, spreads)


def _own(
    costs: RoundCosts, record: Record, unable: Sequence[str], level: float
) -> tuple[VariantLayouts, ...]:
    """The relinks of each variant that has them, the baseline first; none without a twin."""
    if TWIN not in costs.variants:
        return ()
    baseline, *others = (name for name in costs.variants if name != TWIN)
    names = (baseline, TWIN, *others)
    y = np.stack([round_geomeans(costs.y[costs.variants.index(name)]) for name in names])
    spread = own_spread(y, costs.rounds, record.relinks, level)
    if spread is None:
        return ()
    rows = []
    for place, name in enumerate(names):
        if name == TWIN or name in unable:
            continue
        # The twin's relinks are the baseline's, too, where it has its own.
        copies = (0, 1) if place == 0 and record.twin_apart else (place,)
        ratios = np.exp(spread.deviations[list(copies)]).ravel()
        row = VariantLayouts(name, len(costs.rounds) * len(copies), tuple(ratios.tolist()))
        if record.twin_apart:
            execution_sd = None if spread.executions is None else float(spread.executions[place])
            ends = (float(values[place]) for values in (spread.sd, spread.low, spread.high))
            sd, low, high = ends
            row = replace(row, sd=sd, low=low, high=high, execution_sd=execution_sd)
        fresh = None if place == 0 else _fresh(y, place, costs, record)
        if fresh is not None:
            low, high = exp(float(fresh.low)), exp(float(fresh.high))
            row = replace(row, fresh_low=low, fresh_high=high)
        rows.append(row)
    return tuple(rows)


def _fresh(y: Floats, place: int, costs: RoundCosts, record: Record) -> FreshLink | None:
    """Spread of the variant at that place, after baseline and twin."""
    if not record.twin_apart:
        return fresh_link(y[place] - y[0], None, costs.rounds, record.relinks)
    d = y[place] - y[:2].mean(axis=0)
    return fresh_link(d, y[1] - y[0], costs.rounds, record.relinks)


def _rotation_splits(costs: RoundCosts, relinks: int, level: float) -> tuple[LayoutSplit, ...]:
    """Spread of each variant against the baseline: layouts of both are in it."""
    splits = []
    for variant in costs.variants[1:]:
        g = round_geomeans(costs.log_ratios(variant, costs.variants[0]))
        split = nested_split(relink_groups(g, costs.rounds, relinks), level)
        if split is not None:
            splits.append(_as_row(variant, split))
    return tuple(splits)


def _spread(
    study: Study, baseline: BuildFacts, relinked: Sequence[Trial]
) -> tuple[tuple[LayoutSplit, ...], tuple[LayoutSpread, ...]]:
    found = over_natural(study, relinked, len(baseline.layouts), study.race.cost)
    if found is None:
        return (), ()
    workloads, d = found
    suite = round_geomeans(d)
    split = blocked_split(suite, study.race.level)
    spreads = [("", suite)]
    if len(workloads) > 1:
        spreads += [(name, d[:, w]) for w, name in enumerate(workloads)]
    rows = []
    for name, values in spreads:
        spread = relink_spread(values, study.race.level)
        ends = map(exp, (spread.least, spread.greatest, spread.low, spread.high))
        rows.append(LayoutSpread(name, spread.relinks, *ends))
    return () if split is None else (_as_row(baseline.variant, split),), tuple(rows)


def _as_row(variant: str, split: Split) -> LayoutSplit:
    return LayoutSplit(
        variant=variant,
        relinks=split.relinks,
        executions=split.executions,
        layout_sd=split.layout_sd,
        layout_high=split.layout_high,
        execution_sd=split.execution_sd,
    )


_ALIGNED, _MOST_ALIGNED = "alignment", "loops"
_MOST_NAMED = 3
# Compilers align little or nothing there.
_UNALIGNED_LEVELS = ("-O0", "-Os", "-Oz")


def layouts_spread(study: Study, costs: RoundCosts, relinks: int) -> tuple[Finding, ...]:
    """A finding where they do; `costs` are of rounds that took turns with so many relinks."""
    if not relinks or study.race.margin is None:
        return ()
    margin = parse_share(study.race.margin)
    differs = relinks_differ(costs, relinks, margin, study.race.level)
    if not differs:
        return ()
    spreads = ", ".join(f"{one.variant} by {100 * math.expm1(one.sd):.1f} %" for one in differs)
    more = f"differ by more than the margin of {100 * margin:.4g} %: {spreads} (standard deviation)"
    means = {name: costs.with_twin(name).mean() for name in costs.variants if name != TWIN}
    by_mean = sorted(means, key=lambda name: float(means[name]))
    advice = way_out(study, [one.variant for one in differs], by_mean)
    if differs[0].told_apart:
        return (LAYOUTS_SPREAD.found(f"relinks {more}; {advice}"),)
    text = f"rounds, each with another relink, {more}, by where code lies or by noise; {advice}"
    return (LAYOUTS_SPREAD_PERHAPS.found(text),)


def way_out(study: Study, names: Sequence[str], by_mean: Sequence[str] = ()) -> str:
    """Lines of the study that build the baseline and these variants aligned, the first first.

    All speedups hang on the baseline. Where its relinks differ, and nothing is aligned yet, the
    others are worth it, too, in their order `by_mean`.
    """
    variants = expand(study)
    by_name = {variant.name: variant for variant in variants}
    none_aligned = all(variant.alignment == DEFAULTS[_ALIGNED] for variant in variants)
    if variants[0].name in names and none_aligned:
        names = (*names, *by_mean)
    chosen = [variants[0], *(by_name[name] for name in dict.fromkeys(names) if name in by_name)]
    lacking = [
        variant
        for variant in dict.fromkeys(chosen)
        if variant.alignment == DEFAULTS[_ALIGNED]
        and variant.optimization not in _UNALIGNED_LEVELS
        and not any(same_choices(_aligned(variant), other) for other in variants)
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
    others = [variant for variant in lacking if not (in_axes and variant is baseline)]
    for other in others[:_MOST_NAMED]:
        yield f"[[include]] {', '.join(_keys(axes, _aligned(other)))}"


def _keys(axes: Axes, variant: Variant) -> Iterator[str]:
    """Values that an [[include]] must have: the first of each axis that it leaves out."""
    for axis in AXES:
        value = getattr(variant, axis)
        if value != getattr(axes, axis)[0]:
            number = axis == "codegen_units" and value.isdigit()
            yield f"{axis} = {value if number else json.dumps(value)}"
