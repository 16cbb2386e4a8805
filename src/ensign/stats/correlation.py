"""Executions that resemble their neighbors: they tell less than as many independent ones.

r is the lag-1 correlation of the log ratios d of a pair, in the order of their executions. Under
independence its mean is -1/n and its variance (n - 2)²/(n²(n - 1)) (Moran, Biometrika 35, 1948),
whatever the law of d, as a permutation leaves it. The variance of a mean of n values of a first-
order autoregression ρ is v = (1 + ρ)/(1 - ρ) times that of independent ones, so an interval is
widened by the root of that, with ρ estimated as r + 1/n where that is above 0. That is no test:
there is no threshold below which nothing is done. The workloads of a study tell ρ together, which
is far surer. docs/background/statistics/correlation.md has the rates.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

FEWEST = 5
# Above this the finding: 1 in 110 independent races.
LARGEST_Z = 2.33
FEWEST_FOR_FINDING = 10
_LARGEST = 0.95
_NO_SPREAD = 1e-22

Floats = NDArray[np.float64]


def lag_one(log_ratios: ArrayLike) -> Floats:
    """R over the last axis; 0 where there is no spread, or fewer than 5 executions."""
    d = np.asarray(log_ratios, dtype=np.float64)
    if d.shape[-1] < FEWEST:
        return np.zeros(d.shape[:-1])
    e = d - d.mean(axis=-1, keepdims=True)
    squares = (e * e).sum(axis=-1)
    products = (e[..., 1:] * e[..., :-1]).sum(axis=-1)
    return np.asarray(
        np.divide(products, squares, out=np.zeros_like(squares), where=squares > _NO_SPREAD)
    )


def widening(log_ratios: ArrayLike) -> Floats:
    """Factor by which the interval of one race over the last axis is widened; 1 or more."""
    d = np.asarray(log_ratios, dtype=np.float64)
    if d.shape[-1] < FEWEST:
        return np.ones(d.shape[:-1])
    rho = np.clip(lag_one(d) + 1 / d.shape[-1], 0.0, _LARGEST)
    return np.asarray(np.sqrt((1 + rho) / (1 - rho)))


def widening_for(rho: ArrayLike, executions: int) -> Floats:
    """Factor that widens an interval for a known correlation; 1 where that is not above 0.

    s² is too small by (n - v)/(n - 1), too.
    """
    above = np.clip(np.asarray(rho, dtype=np.float64), 0.0, _LARGEST)
    if executions < FEWEST:
        return np.ones_like(above)
    # So many executions cannot tell that they are worth less than two.
    v = np.minimum((1 + above) / (1 - above), executions / 2)
    return np.asarray(np.sqrt(v * np.maximum((executions - 1) / (executions - v), 1.0)))


def shared_correlation(log_ratios: ArrayLike) -> float:
    """ρ of a study's d[variant, workload, round], taken to be alike for all; 0 or more.

    The mean of r, which is too small by (1 + 4ρ)/n (Marriott and Pope, Biometrika 41, 1954).
    """
    d = np.asarray(log_ratios, dtype=np.float64)
    n = d.shape[-1]
    if n < FEWEST or not d.size:
        return 0.0
    rho = (n * float(lag_one(d).mean()) + 1) / max(n - 4, n / 2)
    return float(min(max(rho, 0.0), _LARGEST))


def z_of(r: ArrayLike, executions: int) -> Floats:
    """Standard deviations by which r lies above what independent executions give."""
    sd = (executions - 2) / (executions * math.sqrt(executions - 1))
    return np.asarray((np.asarray(r, dtype=np.float64) + 1 / executions) / sd)


def are_correlated(log_ratios: Sequence[float], pairs: int = 1) -> bool:
    """The test behind the finding, of one of so many pairs; False with fewer than 10 executions."""
    n = len(log_ratios)
    if n < FEWEST_FOR_FINDING:
        return False
    # The same chance of a false alarm for all pairs together (Bonferroni).
    limit = NormalDist().inv_cdf(1 - NormalDist().cdf(-LARGEST_Z) / max(pairs, 1))
    return float(z_of(lag_one(log_ratios), n)) > limit
