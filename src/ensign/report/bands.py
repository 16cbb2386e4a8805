"""Bands of change: how the workloads of a variant spread over worse, about equal and better.

The figure of the Redis compiler study (S1) with its edges. A workload falls into the band of its
estimated speedup (there: the minimum of three runs, which sinks as runs are added). Counts
describe; what is claimed of a workload is its interval.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from ensign.model.units import speedup
from ensign.report.words import plain_share

ABOUT_EQUAL = 0.01
_ENDS = (0.05, 0.10, 0.20)


@dataclass(frozen=True, slots=True)
class Band:
    """Speedups above `low` up to and including `high`, as shares; `rank` counts from the worst."""

    rank: int
    label: str
    short: str
    low: float
    high: float


def bands(about_equal: float = ABOUT_EQUAL) -> tuple[Band, ...]:
    """Worse, about equal (within ±`about_equal`), up to +5, +10, +20 %, more."""
    ends = [about_equal, *(end for end in _ENDS if end > about_equal)]
    edges = [-1.0, -about_equal, *ends, float("inf")]
    equal = f"within {plain_share(about_equal)}"
    better = [f"+{_bare(low)} to +{plain_share(high)}" for low, high in pairwise(ends)]
    worse = f"worse than −{plain_share(about_equal)}"
    labels = [worse, equal, *better, f"above +{plain_share(ends[-1])}"]
    shorts = ["worse", "equal", *(f"to +{plain_share(high)}" for high in ends[1:]), "more"]
    return tuple(
        Band(rank, label, short, low, high)
        for rank, (label, short, (low, high)) in enumerate(
            zip(labels, shorts, pairwise(edges), strict=True)
        )
    )


def band_counts(cost_ratios: Iterable[float], edges: tuple[Band, ...]) -> tuple[int, ...]:
    """How many of the cost ratios fall into each band, in the order of `edges`."""
    counts = [0] * len(edges)
    for ratio in cost_ratios:
        counts[_band_of(speedup(ratio), edges).rank] += 1
    return tuple(counts)


def _band_of(share: float, edges: tuple[Band, ...]) -> Band:
    # The worst band is open: exactly −1 % is still about equal.
    if share < edges[0].high:
        return edges[0]
    return next(band for band in edges[1:] if share <= band.high)


def _bare(share: float) -> str:
    return plain_share(share).removesuffix(" %")
