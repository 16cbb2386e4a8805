"""The claim "no workload is slower than the margin".

Berger (Technometrics 24, 1982), intersection-union: the claim is the intersection of one claim
per workload, and it is shown when every one of them is shown by its own one-sided test at level
alpha. No correction is needed: to be wrong, the claim must be wrong for some workload, whose own
test passes wrongly with probability at most alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ensign.stats.correlation import widening
from ensign.stats.looks import critical_value
from ensign.stats.student import one_sided_critical

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats = NDArray[np.float64]


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
    """Whether every workload's upper bound (of log ratios) is below ln(1 + margin)."""
    m = math.log1p(margin)
    missing = tuple(
        workload for workload, bound in zip(workloads, bounds, strict=True) if not bound < m
    )
    return NoSlowerClaim(not missing, missing)
