"""Rounds that are added while a precision is short or time is left, with known truth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from ensign.stats.pair import PairRule, Rule, log_interval

PRECISION, STUDIES, MOST = 0.006, 1200, 400
Noise = Callable[[np.random.Generator, int], np.ndarray]

NOISES: dict[str, Noise] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t3": lambda rng, n: rng.standard_t(3, n) / math.sqrt(3),
    "shifted": lambda rng, n: rng.normal(size=n) + 3 * (rng.random(n) < 0.05) - 0.15,
    # It grows by 70 % after a dozen rounds: what the first block says is too little.
    "drift": lambda rng, n: rng.normal(size=n) * np.where(np.arange(n) < 12, 1, 1.7),
}


def width(d: np.ndarray, first: int) -> tuple[float, float, float]:
    interval = log_interval(d.tolist(), PairRule(level=0.95, rule=Rule.T, first=first))
    return interval.low, interval.high, (interval.high - interval.low) / 2


def in_blocks(rng: np.random.Generator, noise: Noise, sd: float) -> tuple[bool, bool, int]:
    """Whether the interval covers 0 and is as narrow as asked, after blocks sized by widths."""
    d = noise(rng, MOST) * sd
    supposed = sd * math.sqrt(rng.chisquare(20) / 20)
    n = first = min(max(5, math.ceil((2.2 * supposed / PRECISION) ** 2)), MOST)
    low, high, half = width(d[:n], first)
    while half > PRECISION and n < MOST:
        n = min(MOST, max(n + 1, math.ceil(n * (half / PRECISION) ** 2)))
        low, high, half = width(d[:n], first)
    return low <= 0 <= high, half <= PRECISION, n


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("sd", [0.008, 0.02])
def test_intervals_of_blocks_sized_by_their_widths_cover_the_truth(noise: str, sd: float) -> None:
    rng = np.random.default_rng(5)
    outcomes = [in_blocks(rng, NOISES[noise], sd) for _ in range(STUDIES)]
    covered, narrow = np.mean([each[:2] for each in outcomes], axis=0)
    assert narrow > 0.99  # not all, since 400 rounds are the most here
    # One minus this is the rate of false alarms.
    assert covered > (0.94 if noise in ("normal", "t3") else 0.92)


def by_the_clock(rng: np.random.Generator, slower: float) -> tuple[bool, int]:
    """Rounds until the time is over; busy rounds take longer and are noisier."""
    d: list[float] = []
    used, busy = 0.0, False
    while True:
        busy = busy != (rng.random() < 0.2)
        takes = (1 + slower * busy) * (1 + 0.05 * rng.normal())
        if used + (used / len(d) if d else 1) > 14 and len(d) >= 3:
            break
        used += takes
        d.append(rng.normal() * 0.01 * (1 + slower * busy))
    low, high, _ = width(np.array(d), 0)
    return low <= 0 <= high, len(d)


@pytest.mark.parametrize("slower", [0.0, 1.0])
def test_ending_by_the_clock_leaves_intervals_as_they_are(slower: float) -> None:
    rng = np.random.default_rng(7)
    outcomes = [by_the_clock(rng, slower) for _ in range(2000)]
    assert np.mean([covers for covers, _ in outcomes]) > 0.935
    assert len({rounds for _, rounds in outcomes}) > (1 if slower else 0)


def test_the_first_block_can_only_widen_an_interval() -> None:
    d = np.array([0.0, 0.02, -0.02, 0.001, -0.001, 0.0005, -0.0005, 0.0])
    assert width(d, 3)[2] > width(d, 0)[2]
    quiet = np.array([0.001, 0.0005, 0.0, 0.05, -0.05, 0.04, -0.04, 0.0])
    assert width(quiet, 3)[2] == width(quiet, 0)[2]
