"""Executions dealt to the workloads that are least sure: by what rule, and what it does to claims.

Known truth: every workload's true log ratio is 0 here, so an interval errs where it excludes 0.
"""

from __future__ import annotations

import numpy as np
import pytest

from ensign.stats.expected import Floats, dealt_executions
from ensign.stats.student import two_sided_critical

SPREADS = np.array([0.002, 0.004, 0.01, 0.02, 0.04, 0.04])
ROUNDS, FIRST, STUDIES = 10, 3, 3000


def ratios(spreads: Floats, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).normal(0, spreads[None, :, None], (2, len(spreads), 400))


def test_the_least_sure_get_more() -> None:
    counts = dealt_executions(ratios(SPREADS), [1.0] * 6, left_ns=6.0, most=8)
    assert sum(counts) == 12
    assert counts[:2] == (1, 1)
    assert counts[4] == counts[5] > counts[2]


def test_no_more_than_fit_or_may_be() -> None:
    d = ratios(SPREADS)
    assert dealt_executions(d, [1.0] * 6, left_ns=0.5, most=8) == (1,) * 6
    assert dealt_executions(d, [1.0] * 6, left_ns=1e9, most=3) == (3,) * 6
    long = [1.0] * 4 + [100.0, 100.0]
    assert dealt_executions(d, long, left_ns=4.0, most=8)[4:] == (1, 1), "they do not fit"


def test_who_is_faster_does_not_count() -> None:
    d = ratios(SPREADS)
    shifts = np.random.default_rng(2).normal(0, 0.3, (2, 6, 1))
    asked = ([1.0] * 6, 9.0, 8)
    assert dealt_executions(d, *asked) == dealt_executions(d + shifts, *asked)


@pytest.mark.parametrize("tails", [np.inf, 3.0], ids=["normal", "heavy"])
@pytest.mark.parametrize("drift", [0.0, 0.005], ids=["quiet", "drifting"])
def test_intervals_cover_as_without(tails: float, drift: float) -> None:
    """Of each workload and of the suite; what is dealt narrows the widest by a third."""
    rng = np.random.default_rng(3)
    held, of_suite, widths = [], [], []
    for _ in range(STUDIES):
        noise = _noise(rng, tails, (1, len(SPREADS), ROUNDS, 8)) * SPREADS[None, :, None, None]
        # What a round has in common for all executions of a workload in it.
        noise += rng.normal(0, drift, (1, len(SPREADS), ROUNDS, 1))
        d = noise[..., 0].copy()
        counts = dealt_executions(d[..., :FIRST], [1.0] * 6, left_ns=8.0, most=8)
        for w, count in enumerate(counts):
            d[:, w, FIRST:] = noise[:, w, FIRST:, :count].mean(axis=-1)
        lows, highs = _interval(d[0])
        held.append((lows < 0) & (highs > 0))
        widths.append(highs - lows)
        low, high = _interval(d[0].mean(axis=0)[None])
        of_suite.append(bool(low[0] < 0 < high[0]))
    coverage = np.mean(held, axis=0)
    assert coverage.min() > 0.93
    assert 0.94 < coverage.mean() < 0.975
    assert 0.935 < np.mean(of_suite) < 0.975
    plain = 2 * two_sided_critical(0.95, ROUNDS - 1) * np.hypot(SPREADS, drift) / ROUNDS**0.5
    assert (np.median(widths, axis=0) / plain)[4:].max() < 0.85


def _noise(rng: np.random.Generator, tails: float, shape: tuple[int, ...]) -> Floats:
    if tails == np.inf:
        return rng.normal(0, 1, shape)
    return np.asarray(rng.standard_t(tails, shape) / 3**0.5)


def _interval(d: Floats) -> tuple[Floats, Floats]:
    n = d.shape[-1]
    half = two_sided_critical(0.95, n - 1) * d.std(axis=-1, ddof=1) / n**0.5
    mean = d.mean(axis=-1)
    return mean - half, mean + half
