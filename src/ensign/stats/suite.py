"""All workloads together: the geometric mean per sweep, and its interval over the sweeps.

g[l] = mean over workloads of d[w, l]; G = mean over sweeps; SE = sd(g)/√n with n - 1 degrees of
freedom. One sweep is one observation, so the interval holds whatever the correlation between
workloads, as when they share a relink; an interval built from per-workload errors does not
(method: 45 % coverage there). It is for a number of sweeps fixed beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ensign.model.results import SuiteComparison, WorkloadComparison
from ensign.stats.correlation import widening_for
from ensign.stats.no_slower import no_slower_claim
from ensign.stats.pair import PairNames, PairRule, Rule, compare, mean_and_half_width
from ensign.stats.trials import mean_cost_ns, user_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensign.model.comparisons import Comparison
    from ensign.model.trials import Trial
    from ensign.stats.sweeps import SweepCosts

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SuiteRule:
    """How a suite is judged, fixed before the sweeps.

    `level` holds for the whole list of `finalists` (k): each is judged at 1 - (1 - level)/k.
    `margin` is a share of the cost (0.01 for 1 %), None for no statement of size. The spread of the
    `first` sweeps decided how many there are (`PairRule.first`); 0: it did not. `correlation` of
    neighbouring sweeps widens all intervals.
    """

    level: float = 0.95
    margin: float | None = None
    finalists: int = 1
    first: int = 0
    correlation: float = 0.0

    @property
    def level_each(self) -> float:
        """Level at which each finalist is judged (Bonferroni over the finalists)."""
        return 1 - (1 - self.level) / self.finalists

    @property
    def pair_rule(self) -> PairRule:
        """One t interval at the end: no looks within the fixed sweeps."""
        return PairRule(
            level=self.level_each,
            margin=self.margin,
            rule=Rule.T,
            first=self.first,
            correlation=self.correlation,
        )

    def wider(self, sweeps: int) -> float:
        """By how much intervals of so many sweeps are widened."""
        return float(widening_for(self.correlation, sweeps))


def sweep_geomeans(log_ratios: Floats) -> Floats:
    """g[…, sweep]: the mean over workloads (the axis before the last) of d."""
    return np.asarray(log_ratios.mean(axis=-2))


def compare_suite(costs: SweepCosts, arm: str, baseline: str, rule: SuiteRule) -> SuiteComparison:
    """Geometric mean of an arm over a baseline, and with a margin the no-slower claim.

    InputError without a whole sweep; with one alone the interval is 0 to infinite, and the claim
    is not shown.
    """
    g = sweep_geomeans(costs.log_ratios(arm, baseline))
    comparison = compare(PairNames(arm, baseline, costs.metric), g.tolist(), rule.pair_rule)
    if rule.margin is None:
        return SuiteComparison(comparison, len(costs.workloads))
    wider = rule.wider(len(costs.sweeps))
    claim = no_slower_claim(costs, arm, baseline, rule.margin, rule.level_each, wider)
    return SuiteComparison(comparison, len(costs.workloads), claim.shown, claim.not_shown)


def widest_half_width(costs: SweepCosts, rule: SuiteRule) -> float:
    """Half-width of the widest geometric mean of a variant (of the twin, without any).

    Of log ratios, as in `Precision`; infinite with one sweep alone.
    """
    d = [costs.log_ratios(arm, costs.arms[0]) for arm in costs.compared]
    return max(float(mean_and_half_width(sweep_geomeans(each), rule.pair_rule)[1]) for each in d)


def compare_workloads(
    costs: SweepCosts, arm: str, baseline: str, rule: SuiteRule
) -> tuple[tuple[str, Comparison], ...]:
    """Each workload's own interval over the sweeps, without correction for their number."""
    names = PairNames(arm, baseline, costs.metric)
    d = costs.log_ratios(arm, baseline)
    return tuple(
        (workload, compare(names, d[w].tolist(), rule.pair_rule))
        for w, workload in enumerate(costs.workloads)
    )


def workload_comparison(
    trials: Sequence[Trial], workload: str, comparison: Comparison
) -> WorkloadComparison:
    """Join a workload's comparison with the costs that are shown beside it.

    `trials` are those of this workload; both costs are geometric means over them.
    """
    return WorkloadComparison(
        workload=workload,
        comparison=comparison,
        baseline_cost_ns=mean_cost_ns(trials, comparison.baseline, comparison.metric),
        arm_cost_ns=mean_cost_ns(trials, comparison.arm, comparison.metric),
        user_share=user_share(trials, comparison.arm),
    )
