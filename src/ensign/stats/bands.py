"""Bands of change: how many workloads of a variant are worse, about equal, or how much faster.

The figure of the Redis compiler study (S1), which takes the minimum of three runs per workload.
The minimum falls as runs are added, also where nothing differs; the mean does not. Both are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
    """How many speedups (0.05 for +5 %) lie in each band, the worst band first.

    A band includes its upper edge; the worst one does not: exactly −1 % is still about equal.
    """
    values = np.fromiter(speedups, dtype=np.float64)
    ranks = 1 + np.searchsorted(np.asarray(edges[1:]), values, side="left")
    ranks[values < edges[0]] = 0
    return tuple(int(count) for count in np.bincount(ranks, minlength=len(edges) + 1))


def variant_bands(
    costs: RoundCosts, variant: str, baseline: str, edges: tuple[float, ...]
) -> VariantBands:
    """By the mean over the rounds, and by the minimum as in S1; no workloads without rounds."""
    d = costs.log_ratios(variant, baseline)
    if d.shape[1] == 0:
        d = np.empty((0, 1))
    mean, smallest = np.expm1(-d.mean(axis=1)), np.expm1(-d.max(axis=1))
    return VariantBands(variant, count_bands(mean, edges), count_bands(smallest, edges))
