"""Two independent samples of unequal spread: Welch's interval for the difference of means.

Welch (Biometrika 34, 1947): (mean b - mean a) ± t · √(s_a²/n_a + s_b²/n_b), with the degrees of
freedom of Satterthwaite (Biometrics Bulletin 2, 1946). For the log ratios of two studies it gives
the ratio of ratios, whatever their numbers of rounds and their noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ensign.stats.student import two_sided_criticals, two_sided_p

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """Per row: mean of b minus mean of a, half-width of its interval, two-sided p of no change."""

    mean: Floats
    half_width: Floats
    p: Floats


def welch(a: Floats, b: Floats, level: float) -> Differences:
    """Differences over the last axis, whose lengths may differ; at least one value in each.

    With a single value on a side the interval is infinite and p is 1. Where neither side has any
    spread the interval is the point itself, and p is 0, or 1 where nothing changed.
    """
    mean = np.asarray(b.mean(axis=-1) - a.mean(axis=-1))
    n_a, n_b = a.shape[-1], b.shape[-1]
    if min(n_a, n_b) < 2:  # noqa: PLR2004 - one value has no spread
        return Differences(mean, np.full_like(mean, np.inf), np.ones_like(mean))
    v_a, v_b = a.var(axis=-1, ddof=1) / n_a, b.var(axis=-1, ddof=1) / n_b
    variance = np.asarray(v_a + v_b)
    parts = v_a**2 / (n_a - 1) + v_b**2 / (n_b - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.where(parts > 0, variance**2 / parts, np.inf)
        t = np.where(mean == 0, 0.0, mean / np.sqrt(variance))
    half = two_sided_criticals(level, degrees) * np.sqrt(variance)
    return Differences(mean, np.asarray(half), two_sided_p(t, degrees))
