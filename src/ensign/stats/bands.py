"""Bands of change: how many workloads of a variant are worse, about equal, or how much faster.

The figure of the Redis compiler study (S1), which takes the minimum of three runs per workload.
The minimum falls as runs are added, also where nothing differs; the mean does not. Both are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from ensign.stats.sweeps import SweepCosts

ABOUT_EQUAL = 0.01


class Band(StrEnum):
    """Where a workload's speedup lies; each band includes its upper end."""

    WORSE = "worse"
    ABOUT_EQUAL = "about equal"
    UP_TO_5 = "up to +5 %"
    UP_TO_10 = "up to +10 %"
    UP_TO_20 = "up to +20 %"
    MORE = "more than +20 %"


@dataclass(frozen=True, slots=True)
class BandCounts:
    """Number of workloads in each band, every band in order; `by` is the speedup that was used."""

    arm: str
    by: Literal["minimum", "mean"]
    counts: tuple[tuple[Band, int], ...]


def band_of(speedup: float, about_equal: float = ABOUT_EQUAL) -> Band:
    """Band of a speedup (0.05 for +5 %); `about_equal` is the half-width of that band."""
    if speedup < -about_equal:
        return Band.WORSE
    ends = (about_equal, 0.05, 0.10, 0.20)
    for end, band in zip(ends, list(Band)[1:-1], strict=True):
        if speedup <= end:
            return band
    return Band.MORE


def band_counts(
    costs: SweepCosts, arm: str, baseline: str, about_equal: float = ABOUT_EQUAL
) -> tuple[BandCounts, BandCounts]:
    """By the minimum over the sweeps, as in S1, and by the mean; no workloads without sweeps."""
    d = costs.log_ratios(arm, baseline)
    if d.shape[1] == 0:
        d = np.empty((0, 1))
    smallest = np.expm1(-d.max(axis=1))
    mean = np.expm1(-d.mean(axis=1))
    return (
        BandCounts(arm, "minimum", _count(smallest.tolist(), about_equal)),
        BandCounts(arm, "mean", _count(mean.tolist(), about_equal)),
    )


def _count(speedups: list[float], about_equal: float) -> tuple[tuple[Band, int], ...]:
    bands = [band_of(speedup, about_equal) for speedup in speedups]
    return tuple((band, bands.count(band)) for band in Band)
