"""Holm's step-down adjustment (Scandinavian Journal of Statistics 6, 1979).

It serves only to name workloads, or effects, that are slower or faster. An empty list is no
evidence that no workload is slower: that is `non_inferior`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ensign.model.results import SignificantWorkloads
from ensign.stats.correlation import widening
from ensign.stats.looks import anytime_p
from ensign.stats.student import two_sided_p
from ensign.stats.suite import SuiteRule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensign.stats.rounds import RoundCosts

Floats = NDArray[np.float64]

_FEWEST = 2


def holm_adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """P-values adjusted, in the given order; reject where one is at most alpha."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return tuple(float(value) for value in adjusted)


def shown_after_holm(
    log_ratios: Floats, level: float, wider: float = 1.0, *, anytime: bool = False
) -> tuple[bool, ...]:
    """Rows of d[row, round] that differ from 0: t tests over the rounds, with Holm's method.

    None with fewer than two rounds, which have no spread. `wider` is by how much correlation in
    time widens an interval. With `anytime` the tests are those of `looks`, which may end a race.
    """
    rows, n = len(log_ratios), log_ratios.shape[-1]
    if not rows or n < _FEWEST:
        return (False,) * rows
    wider_by = widening(log_ratios) if anytime else wider
    mean, se = log_ratios.mean(axis=1), wider_by * log_ratios.std(axis=1, ddof=1) / np.sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(mean == 0, 0.0, mean / se)
    p = [anytime_p(value, n) for value in t] if anytime else two_sided_p(t, n - 1).tolist()
    adjusted = holm_adjusted(p)
    return tuple(bool(p <= 1 - level) for p in adjusted)


def significant_workloads(
    costs: RoundCosts, variant: str, baseline: str, rule: SuiteRule | None = None
) -> SignificantWorkloads:
    """Workloads that differ by two-sided tests over the rounds, adjusted by Holm's method."""
    d, rule = costs.log_ratios(variant, baseline), rule or SuiteRule()
    significant = shown_after_holm(
        d, rule.level_each, rule.wider(d.shape[-1]), anytime=rule.anytime
    )
    mean = d.mean(axis=1) if any(significant) else np.zeros(len(significant))
    pairs = list(zip(costs.workloads, significant, mean, strict=True))
    return SignificantWorkloads(
        variant,
        slower=tuple(workload for workload, hit, m in pairs if hit and m > 0),
        faster=tuple(workload for workload, hit, m in pairs if hit and m < 0),
    )
