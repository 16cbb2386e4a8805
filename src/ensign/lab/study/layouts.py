"""Relinks in a study: which sweep uses which, their own race, and what they show. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ensign.lab.study.arms import Field
from ensign.lab.study.fitting import BAND_EXECUTIONS
from ensign.lab.study.record import StudyRecord
from ensign.lab.study.sweeps import SweepPlan
from ensign.model.results import BuildFacts, LayoutBand, LayoutFacts, LayoutSplit
from ensign.model.study import Study
from ensign.model.trials import TWIN, Trial, failed_arms
from ensign.stats.layouts import Split, blocked_split, nested_split, relink_band
from ensign.stats.pair import exp
from ensign.stats.suite import sweep_geomeans
from ensign.stats.sweeps import SweepCosts, sweep_costs

_FEWEST = 2
_NATURAL = "natural"


def rotating(study: Study, field: Field, relinks: Mapping[str, Sequence[str]]) -> Field:
    """The field whose sweeps take turns with relinks, of every arm that has them.

    All take turns with equally many, so that executions of one relink can be told for every pair.
    Where the baseline has none nothing is relinked: arms are to be perturbed alike.
    """
    baseline = field.artefacts[0][0]
    able = {
        name: tuple(relinks.get(name, ()))
        for name, _ in field.artefacts
        if len(relinks.get(name, ())) >= _FEWEST
    }
    layouts = study.layouts
    if layouts is None or layouts.variants != "all" or baseline not in able:
        return field
    count = min(layouts.count, *(len(paths) for paths in able.values()))
    own = able[baseline]
    # The twin's are further relinks; where too few differ, the baseline's in another turn.
    twin = own[count : 2 * count]
    if len(twin) < count:
        twin = own[1:count] + own[:1]
    chosen = {name: paths[:count] for name, paths in able.items()}
    return replace(field, relinks={**chosen, TWIN: twin}, rotation=count)


def band_race(
    study: Study,
    natural: Field,
    plan: SweepPlan,
    baseline: BuildFacts,
    relinks: Mapping[str, Sequence[str]],
) -> tuple[Field, SweepPlan] | None:
    """The race of the baseline's relinks against its natural link, if the study asks for it."""
    paths = relinks.get(baseline.variant, ())
    layouts = study.layouts
    if layouts is None or layouts.variants != "baseline" or len(paths) < _FEWEST:
        return None
    arms = [(_NATURAL, natural.artefacts[0][1])]
    arms += [(_relink(number), path) for number, path in enumerate(paths)]
    digest = hashlib.sha256(" ".join(baseline.layouts).encode()).hexdigest()[:8]
    key = f"{plan.key}-relinks-{digest}"
    return replace(natural, artefacts=tuple(arms)), replace(plan, key=key, sweeps=BAND_EXECUTIONS)


def _relink(number: int) -> str:
    return f"relink-{number + 1}"


def layout_facts(
    study: Study, record: StudyRecord, costs: SweepCosts, relinked: Sequence[Trial]
) -> LayoutFacts | None:
    """What relinks show; None where there were none. `costs` are of executions, not of relinks."""
    baseline = next((each for each in record.builds if each.variant == record.raced[0]), None)
    if baseline is None or len(baseline.layouts) < _FEWEST:
        return None
    if record.relinks:
        able = {each.variant for each in record.builds if len(each.layouts) >= _FEWEST}
        unable = tuple(name for name in record.raced if name not in able)
        splits = _rotation_splits(costs, record.relinks, study.race.level)
        return LayoutFacts(record.relinks, baseline.layout_kind, unable, splits)
    if not relinked:
        return None
    splits, bands = _band(study, baseline, relinked)
    return LayoutFacts(0, baseline.layout_kind, (), splits, bands)


def _rotation_splits(costs: SweepCosts, relinks: int, level: float) -> tuple[LayoutSplit, ...]:
    """Of each arm against the baseline: layouts of both are in it."""
    found = []
    for arm in costs.arms[1:]:
        g = sweep_geomeans(costs.log_ratios(arm, costs.arms[0]))
        groups: dict[int, list[float]] = {}
        for sweep, value in zip(costs.sweeps, g.tolist(), strict=True):
            groups.setdefault(sweep % relinks, []).append(value)
        split = nested_split(tuple(groups.values()), level)
        if split is not None:
            found.append(_as_row(arm, split))
    return tuple(found)


def _band(
    study: Study, baseline: BuildFacts, relinked: Sequence[Trial]
) -> tuple[tuple[LayoutSplit, ...], tuple[LayoutBand, ...]]:
    gone = failed_arms(relinked)
    names = [_relink(number) for number in range(len(baseline.layouts))]
    names = [name for name in names if name not in gone]
    workloads = tuple(workload.name for workload in study.workloads)
    arms = (_NATURAL, TWIN, *names)
    costs = sweep_costs(relinked, arms, workloads, study.race.cost)
    if not costs.sweeps or len(names) < _FEWEST:
        return (), ()
    d = np.stack([costs.log_ratios(name, _NATURAL) for name in names])
    suite = sweep_geomeans(d)
    split = blocked_split(suite, study.race.level)
    bands = [("", suite)]
    if len(workloads) > 1:
        bands += [(name, d[:, w]) for w, name in enumerate(workloads)]
    rows = []
    for name, values in bands:
        band = relink_band(values, study.race.level)
        ends = map(exp, (band.least, band.greatest, band.low, band.high))
        rows.append(LayoutBand(name, band.relinks, *ends))
    return () if split is None else (_as_row(baseline.variant, split),), tuple(rows)


def _as_row(arm: str, split: Split) -> LayoutSplit:
    return LayoutSplit(
        variant=arm,
        relinks=split.relinks,
        executions=split.executions,
        layout_sd=split.layout_sd,
        layout_high=split.layout_high,
        execution_sd=split.execution_sd,
    )
