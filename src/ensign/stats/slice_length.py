"""Does the length of a slice move a ratio? The same pair raced at one length and at another.

A slice starts with colder caches. A refill common to both variants cancels; a difference in refill
biases the ratio by that difference over the slice's length, of either sign, so that a ratio that
stays when slices get four times as long is hardly biased. The change is the difference of two
independent means, with the interval of Welch (Biometrika 34, 1947).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ensign.model.finding_kinds.judgment import SLICE_LENGTH, SLICE_LENGTH_MATTERS
from ensign.model.findings import Finding
from ensign.stats.pair import LogInterval
from ensign.stats.student import two_sided_critical

_FEWEST = 2


def change_of_log_ratio(
    usual: Sequence[float], longer: Sequence[float], level: float
) -> LogInterval:
    """Mean log ratio at the longer slices minus that at the usual ones, with its interval.

    Each value is one execution. Infinite with fewer than two of either; a point without spread.
    """
    a, b = np.asarray(usual, dtype=np.float64), np.asarray(longer, dtype=np.float64)
    if min(a.size, b.size) < _FEWEST:
        mean = float(b.mean() - a.mean()) if min(a.size, b.size) else 0.0
        return LogInterval(mean, -math.inf, math.inf)
    mean = float(b.mean() - a.mean())
    of_a, of_b = float(a.var(ddof=1)) / a.size, float(b.var(ddof=1)) / b.size
    if of_a + of_b == 0:
        return LogInterval(mean, mean, mean)
    degrees = (of_a + of_b) ** 2 / (of_a**2 / (a.size - 1) + of_b**2 / (b.size - 1))
    half = two_sided_critical(level, degrees) * math.sqrt(of_a + of_b)
    return LogInterval(mean, mean - half, mean + half)


def slice_length_finding(
    workload: str, lengths_ms: tuple[float, float], changes: Mapping[str, LogInterval]
) -> Finding:
    """The changes that are sure, and how far all may go; a warning where any is sure."""
    moved = [variant for variant, change in changes.items() if change.low > 0 or change.high < 0]
    usual, longer = (f"{length:g} ms" for length in lengths_ms)
    low = min(change.low for change in changes.values())
    high = max(change.high for change in changes.values())
    text = (
        f"at slices of {longer} instead of {usual}, cost ratios on {workload} change: "
        f"all {len(changes)} intervals lie within {_percent(low)} to {_percent(high)}"
    )
    if moved:
        rows = ", ".join(
            f"{variant} ({_percent(changes[variant].low)} to {_percent(changes[variant].high)})"
            for variant in moved
        )
        text += (
            f"; slices of {usual} bias {rows}, or chance does: each interval misses once in twenty"
        )
    return (SLICE_LENGTH_MATTERS if moved else SLICE_LENGTH).found(text)


def _percent(log_change: float) -> str:
    if math.isinf(log_change):
        return "unknown"
    return f"{math.expm1(log_change) * 100:+.2f} %".replace("-", "−")
