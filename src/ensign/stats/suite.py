"""All workloads together: the geometric mean per round, and its interval over the rounds.

g[l] = mean over workloads of d[w, l]; G = mean over rounds; SE = sd(g)/√n with n - 1 degrees of
freedom. One round is one observation, so the interval holds whatever the correlation between
workloads, as when they share a relink; an interval built from per-workload errors does not
(method: 45 % coverage there). It is for a number of rounds fixed beforehand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ensign.model.results import SuiteComparison, WorkloadComparison
from ensign.model.trials import Better
from ensign.stats.correlation import widening_for
from ensign.stats.pair import PairNames, PairRule, Rule, compare, mean_and_half_width
from ensign.stats.trials import mean_cost_ns, user_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensign.model.comparisons import Comparison
    from ensign.model.trials import Trial
    from ensign.stats.rounds import RoundCosts

from ensign.stats.correlation import widening
from ensign.stats.looks import critical_value
from ensign.stats.student import one_sided_critical

if TYPE_CHECKING:
    from collections.abc import Sequence

from ensign.model.results import VariantBands

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ensign.stats.rounds import RoundCosts


ABOUT_EQUAL = 0.01
_ENDS = (0.05, 0.10, 0.20)


def band_edges(about_equal: float = ABOUT_EQUAL) -> tuple[float, ...]:
    """Speedups between the bands worse, within ±`about_equal`, up to +5, +10, +20 %, and more.

    An end that lies within `about_equal` is left out.
    """
    return (-about_equal, about_equal, *(end for end in _ENDS if end > about_equal))


def count_bands(speedups: Iterable[float], edges: tuple[float, ...]) -> tuple[int, ...]:
    """Number of speedups (0.05 for +5 %) in each band, the worst band first.

    A band includes its upper edge; the worst one does not: exactly −1 % is still about equal.
    """
    values = np.fromiter(speedups, dtype=np.float64)
    ranks = 1 + np.searchsorted(np.asarray(edges[1:]), values, side="left")
    ranks[values < edges[0]] = 0
    return tuple(int(count) for count in np.bincount(ranks, minlength=len(edges) + 1))


def variant_bands(
    costs: RoundCosts, variant: str, baseline: str, edges: tuple[float, ...]
) -> VariantBands:
    """Bands by the mean over the rounds, and by the minimum as in S1; none without rounds."""
    d = costs.log_ratios(variant, baseline)
    if d.shape[1] == 0:
        d = np.empty((0, 1))
    mean, smallest = np.expm1(-d.mean(axis=1)), np.expm1(-d.max(axis=1))
    return VariantBands(variant, count_bands(mean, edges), count_bands(smallest, edges))


@dataclass(frozen=True, slots=True)
class NoSlowerClaim:
    """`shown`, or the workloads for which it is not shown."""

    shown: bool
    not_shown: tuple[str, ...]


def upper_bounds(
    log_ratios: Floats, level: float, wider: float = 1.0, *, anytime: bool = False
) -> Floats:
    """One-sided upper bounds of the mean log ratio over the last axis; infinite for one round.

    `wider` is by how much correlation in time widens an interval. With `anytime` they hold whenever
    one looks (the upper end of the two-sided interval, and each row's own widening).
    """
    n = log_ratios.shape[-1]
    mean = np.asarray(log_ratios.mean(axis=-1)) if n else np.full(log_ratios.shape[:-1], math.inf)
    if n < 2:  # noqa: PLR2004 - one round has no spread
        return np.full_like(mean, math.inf)
    se = log_ratios.std(axis=-1, ddof=1) / math.sqrt(n)
    if anytime:
        return np.asarray(mean + critical_value(n, 1 / (1 - level)) * widening(log_ratios) * se)
    se = wider * se
    return np.asarray(mean + one_sided_critical(level, n - 1) * se)


def non_inferiority_claim(workloads: Sequence[str], bounds: Floats, margin: float) -> NoSlowerClaim:
    """True if every workload's upper bound (of log ratios) is below ln(1 + margin)."""
    m = math.log1p(margin)
    missing = tuple(
        workload for workload, bound in zip(workloads, bounds, strict=True) if not bound < m
    )
    return NoSlowerClaim(not missing, missing)


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SuiteRule:
    """Rule for a suite, fixed before the rounds.

    `level` holds for the whole list of `finalists` (k): each is judged at 1 - (1 - level)/k.
    `margin` is a share of the cost (0.01 for 1 %), None for no statement of size, `precision` the
    half-width that suffices. By rule `sequential` rounds are looked at as they come. The spread of
    the `first` rounds decided how many there are (`PairRule.first`); 0: it did not. `correlation`
    of neighboring rounds widens all intervals.
    """

    level: float = 0.95
    margin: float | None = None
    finalists: int = 1
    first: int = 0
    correlation: float = 0.0
    rule: Rule = Rule.T
    precision: float | None = None

    @property
    def level_each(self) -> float:
        """Level at which each finalist is judged (Bonferroni over the finalists)."""
        return 1 - (1 - self.level) / self.finalists

    @property
    def pair_rule(self) -> PairRule:
        """One t interval at the end, or looks as rounds come."""
        return PairRule(
            level=self.level_each,
            margin=self.margin,
            precision=self.precision,
            rule=self.rule,
            first=self.first,
            correlation=self.correlation,
        )

    @property
    def anytime(self) -> bool:
        """True if claims must hold whenever it is looked at."""
        return self.rule is Rule.SEQUENTIAL

    def wider(self, rounds: int) -> float:
        """Factor by which intervals of so many rounds are widened."""
        return float(widening_for(self.correlation, rounds))


def round_geomeans(log_ratios: Floats) -> Floats:
    """g[…, round]: the mean over workloads (the axis before the last) of d."""
    return np.asarray(log_ratios.mean(axis=-2))


def compare_suite(
    costs: RoundCosts, variant: str, baseline: str, rule: SuiteRule
) -> SuiteComparison:
    """Geometric mean of a variant over a baseline, and with a margin the no-slower claim.

    InputError without a whole round; with one alone the interval is 0 to infinite, and the claim
    is not shown.
    """
    g = round_geomeans(costs.log_ratios(variant, baseline))
    comparison = compare(PairNames(variant, baseline, costs.metric), g.tolist(), rule.pair_rule)
    if rule.margin is None:
        return SuiteComparison(comparison, len(costs.workloads))
    d = costs.log_ratios(variant, baseline)
    bounds = upper_bounds(d, rule.level_each, rule.wider(d.shape[-1]), anytime=rule.anytime)
    claim = non_inferiority_claim(costs.workloads, bounds, rule.margin)
    return SuiteComparison(comparison, len(costs.workloads), claim.shown, claim.not_shown)


def widest_half_width(costs: RoundCosts, rule: SuiteRule) -> float:
    """Half-width of the widest geometric mean of a variant (of the twin, without any).

    Of log ratios, as in `Precision`; infinite with one round alone.
    """
    d = [costs.log_ratios(variant, costs.variants[0]) for variant in costs.compared]
    return max(
        float(mean_and_half_width(round_geomeans(ratios), rule.pair_rule)[1]) for ratios in d
    )


def compare_workloads(
    costs: RoundCosts, variant: str, baseline: str, rule: SuiteRule
) -> tuple[tuple[str, Comparison], ...]:
    """Each workload's own interval over the rounds, without correction for their number."""
    names = PairNames(variant, baseline, costs.metric)
    d = costs.log_ratios(variant, baseline)
    return tuple(
        (workload, compare(names, d[w].tolist(), rule.pair_rule))
        for w, workload in enumerate(costs.workloads)
    )


def workload_comparison(
    trials: Sequence[Trial], workload: str, comparison: Comparison
) -> WorkloadComparison:
    """Join a workload's comparison with the costs that are shown beside it.

    `trials` are those of this workload; both costs (or scores) are geometric means over them.
    """
    pair = (comparison.baseline, comparison.variant)
    baseline, variant = (mean_cost_ns(trials, name, comparison.metric) for name in pair)
    first = trials[0].variant(comparison.baseline)
    compared = WorkloadComparison(
        workload, comparison, baseline, variant, user_share(trials, comparison.variant)
    )
    if not first.score:
        return compared
    lower = first.better is Better.LOWER
    scores = (baseline, variant) if lower else (1 / baseline, 1 / variant)
    unknown = math.nan
    return replace(
        compared,
        baseline_cost_ns=unknown,
        variant_cost_ns=unknown,
        scores=scores,
        unit=first.unit,
    )
