"""Exact signed-rank test, the companion of the t mixture that needs no normality.

Wilcoxon (Biometrics Bulletin 1, 1945): rank the |d_i|, W is the sum of the ranks of the positive
ones. Equal |d_i| get their mean rank; zeros are ranked and then left out (Pratt, JASA 54, 1959).
Given the ranks, each sign is + or - with probability 1/2 under any law that is symmetric around
0, so the distribution of W is a convolution, computed here without approximation. Rejecting at
p <= 0.0155 at the looks 8, 11, 16, 22, 32, 40 gives 5.0 % false alarms over all six
(bench/statistics_constants.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

SIGNED_RANK_LOOKS = (8, 11, 16, 22, 32, 40)
LARGEST_P = 0.0155
SIGNED_RANK_LEVEL = 0.95
_LARGEST_EXACT = 300

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def doubled_ranks(magnitudes: ArrayLike) -> Integers:
    """Twice the mid-rank of each magnitude: whole numbers, also where magnitudes are equal."""
    _, group, sizes = np.unique(
        np.asarray(magnitudes, dtype=np.float64), return_inverse=True, return_counts=True
    )
    last_rank = np.cumsum(sizes)
    return np.asarray((2 * last_rank - sizes + 1)[group], dtype=np.int64)


def null_distribution(ranks: Sequence[int] | Integers) -> Floats:
    """P(sum of the chosen ranks = k) for k = 0 … their total, each chosen with probability 1/2."""
    distribution = np.ones(1)
    for rank in ranks:
        longer = np.zeros(distribution.size + int(rank))
        longer[: distribution.size] = distribution
        longer[int(rank) :] += distribution
        distribution = longer / 2
    return distribution


def signed_rank_p(log_ratios: Sequence[float]) -> float:
    """Two-sided p for "symmetric around 0"; 1 without a value other than 0.

    Exact up to 300 values, beyond that by the normal approximation of the same statistic.
    """
    d = np.asarray(log_ratios, dtype=np.float64)
    ranks = doubled_ranks(np.abs(d))[d != 0] if d.size else np.zeros(0, dtype=np.int64)
    positive = d[d != 0] > 0
    total = int(ranks.sum())
    if total == 0:
        return 1.0
    statistic = int(ranks[positive].sum())
    upper = max(statistic, total - statistic)
    if ranks.size > _LARGEST_EXACT:
        deviation = (upper - total / 2) / math.sqrt(
            float((ranks.astype(np.float64) ** 2).sum()) / 4
        )
        return min(1.0, math.erfc(deviation / math.sqrt(2)))
    return min(1.0, 2 * float(null_distribution(ranks)[upper:].sum()))


def signed_rank_excludes_zero(log_ratios: Sequence[float]) -> bool | None:
    """Whether p is at most 0.0155; None with fewer than 8 executions, which cannot say."""
    if len(log_ratios) < SIGNED_RANK_LOOKS[0]:
        return None
    return signed_rank_p(log_ratios) <= LARGEST_P
