"""Curves over a parameter: who is best of each compiler, and from where on all are equal.

All intervals are Student's over the rounds, of log ratios of pairs in the same round.

Best: a variant is left out where another is shown to be faster, one-sided at 1 - alpha/(k - 1) for
k variants; so the true best is among those left with the level (Gupta, 1965, for selecting a subset
that contains the best; Bonferroni's inequality in place of equal variances). Worst alike.

Crossover: the least value from which on no two variants differ by more than the margin. With half
of alpha for each end. Upper end: equality at a value is that of every pair (two one-sided tests;
an intersection-union test needs no correction, Berger 1982), asked from the greatest value down and
ended at the first that is not shown (a fixed sequence needs none either). Lower end: the value
after the last one at which some pair is shown to differ by more, corrected for all pairs and
values (Bonferroni).
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensign.model.curves import Crossover, Curve, CurvePoint, CurveSet, Extremes
from ensign.model.trials import TWIN, Better
from ensign.stats.named_scores import workload_of
from ensign.stats.pair import PairRule, Rule, exp, mean_and_half_width

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ensign.model.curves import AskedCurve
    from ensign.model.trials import Trial
    from ensign.stats.rounds import RoundCosts
    from ensign.stats.suite import SuiteRule

Floats = NDArray[np.float64]


def curves_of(
    asked: Sequence[AskedCurve],
    costs: RoundCosts,
    trials: Sequence[Trial],
    compilers: Mapping[str, str],
    rule: SuiteRule,
) -> tuple[CurveSet, ...]:
    """Every curve of which at least two values were measured; `compilers` are by variant.

    Of rounds that were looked at as they came only the curves: their intervals are for one pair.
    """
    sets = []
    for one in asked:
        by_name = dict(zip(one.workloads, one.values, strict=True))
        endings: dict[str, list[tuple[float, str]]] = {}
        for test in costs.workloads:
            name = workload_of(test)
            if name in by_name:
                endings.setdefault(test[len(name) :], []).append((by_name[name], test))
        for ending, those in endings.items():
            if len(those) > 1:
                values, tests = zip(*sorted(those), strict=True)
                name = f"{one.curve}{ending}"
                curve = replace(one, curve=name, values=values, workloads=tests)
                sets.append(_curve_set(curve, costs, trials, compilers, rule))
    return tuple(sets)


def _curve_set(
    asked: AskedCurve,
    costs: RoundCosts,
    trials: Sequence[Trial],
    compilers: Mapping[str, str],
    rule: SuiteRule,
) -> CurveSet:
    variants = [variant for variant in costs.variants if variant != TWIN]
    rows = [costs.workloads.index(workload) for workload in asked.workloads]
    y = np.stack([costs.with_twin(variant)[rows] for variant in variants])
    first = next(trial for trial in trials if trial.workload == asked.workloads[0])
    totals = first.variant(variants[0])
    better = totals.better if totals.score else None
    points = _points(y, rule.pair_rule, better)
    means = y.mean(axis=-1)
    claims = not rule.anytime and len(variants) > 1
    names = {variant: compilers.get(variant, "") for variant in variants}
    return CurveSet(
        asked.curve,
        asked.parameter,
        asked.unit,
        asked.values,
        asked.workloads,
        rule.level,
        tuple(
            Curve(variant, names[variant], row)
            for variant, row in zip(variants, points, strict=True)
        ),
        tuple(float(value) for value in np.expm1(means.max(axis=0) - means.min(axis=0))),
        extremes=_extremes(y, variants, names, rule) if claims else (),
        crossover=crossover(y, asked.values, rule) if claims else None,
        score_unit=totals.unit if totals.score else "",
        better=better,
    )


def _points(y: Floats, rule: PairRule, better: Better | None) -> tuple[tuple[CurvePoint, ...], ...]:
    """One row for each variant; what is better the higher it is stands as 1 over its cost."""
    base = y[0].mean(axis=-1)
    sign = -1 if better is Better.HIGHER else 1
    rows = []
    for own in y:
        mean, half = mean_and_half_width(own - y[0], rule)
        ends = (base + mean, base + mean - sign * half, base + mean + sign * half)
        rows.append(
            tuple(
                CurvePoint(*map(exp, sign * np.array(point))) for point in zip(*ends, strict=True)
            )
        )
    return tuple(rows)


def _extremes(
    y: Floats, variants: Sequence[str], compilers: Mapping[str, str], rule: SuiteRule
) -> tuple[Extremes, ...]:
    g = y.mean(axis=1)
    extremes = []
    for compiler in dict.fromkeys(compilers[variant] for variant in variants):
        own = [index for index, variant in enumerate(variants) if compilers[variant] == compiler]
        best, worst = (extreme_rows(sign * g[own], rule) for sign in (1, -1))
        extremes.append(
            Extremes(
                compiler,
                tuple(variants[own[index]] for index in best),
                tuple(variants[own[index]] for index in worst),
            )
        )
    return tuple(extremes)


def extreme_rows(g: Floats, rule: SuiteRule) -> tuple[int, ...]:
    """Rows of g[variant, round] that may have the least mean, that of the least mean first."""
    order = np.argsort(g.mean(axis=-1), kind="stable")
    if len(order) == 1:
        return (0,)
    strict = _at(rule, 2 * (1 - rule.level) / (len(order) - 1))
    left = []
    for index in order:
        mean, half = mean_and_half_width(g[index] - g, strict)
        beaten = mean - half > 0
        beaten[index] = False
        if not beaten.any():
            left.append(int(index))
    return tuple(left)


def crossover(y: Floats, values: Sequence[float], rule: SuiteRule) -> Crossover | None:
    """From y[variant, value, round], log costs; None without a margin."""
    if rule.margin is None:
        return None
    margin, alpha = math.log1p(rule.margin), 1 - rule.level
    pairs = [*combinations(range(len(y)), 2)]
    d = np.stack([y[i] - y[j] for i, j in pairs])
    mean, half = mean_and_half_width(d, _at(rule, alpha))
    equal = np.all(np.abs(mean) + half <= margin, axis=0)
    _, wide = mean_and_half_width(d, _at(rule, alpha / mean.size))
    differs = np.any(np.abs(mean) - wide > margin, axis=0)
    alike = np.all(np.abs(mean) <= margin, axis=0)
    ends = (_from_where(holds, values) for holds in (alike, ~differs, equal))
    return Crossover(*ends)


def _from_where(holds: ArrayLike, values: Sequence[float]) -> float | None:
    """The least value from which on it holds at all of them."""
    fails = np.flatnonzero(~np.asarray(holds))
    start = int(fails[-1]) + 1 if len(fails) else 0
    return values[start] if start < len(values) else None


def _at(rule: SuiteRule, two_sided_alpha: float) -> PairRule:
    return replace(rule.pair_rule, level=1 - two_sided_alpha, rule=Rule.T)
