"""Executions that resemble their neighbours: they tell less than as many independent ones.

r is the lag-1 correlation of the log ratios d of a pair, in the order of their executions. Under
independence its mean is -1/n and its variance (n - 2)²/(n²(n - 1)) (Moran, Biometrika 35, 1948),
whatever the law of d, as a permutation leaves it. The variance of a mean of n values of a first-
order autoregression ρ is (1 + ρ)/(1 - ρ) times that of independent ones, so an interval is widened
by the root of that, with ρ estimated as r + 1/n where that is above 0. That is no test: there is no
threshold below which nothing is done. docs/statistics/correlation.md has the rates.
"""

from __future__ import annotations

import math
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
    """By how much an interval over the last axis is widened; 1 or more."""
    d = np.asarray(log_ratios, dtype=np.float64)
    if d.shape[-1] < FEWEST:
        return np.ones(d.shape[:-1])
    rho = np.clip(lag_one(d) + 1 / d.shape[-1], 0.0, _LARGEST)
    return np.asarray(np.sqrt((1 + rho) / (1 - rho)))


def z_of(r: ArrayLike, executions: int) -> Floats:
    """How many standard deviations r lies above what independent executions give."""
    sd = (executions - 2) / (executions * math.sqrt(executions - 1))
    return np.asarray((np.asarray(r, dtype=np.float64) + 1 / executions) / sd)


def are_correlated(log_ratios: Sequence[float]) -> bool:
    """The test behind the finding; False with fewer than 10 executions."""
    n = len(log_ratios)
    return n >= FEWEST_FOR_FINDING and float(z_of(lag_one(log_ratios), n)) > LARGEST_Z
