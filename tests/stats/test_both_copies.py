"""Two copies of the baseline: narrower intervals, and no more false alarms, on skewed noise too."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ensign.stats.correlation import widening
from ensign.stats.looks import critical_value, looks_up_to, mixture_bound

Floats = NDArray[np.float64]
RACES, EXECUTIONS = 3000, 40
Law = Callable[[np.random.Generator], Floats]


def against_both(law: Law, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    return law(rng) - (law(rng) + law(rng)) / 2


@pytest.mark.parametrize(
    "law",
    [
        lambda rng: rng.normal(0, 1, (RACES, EXECUTIONS)),
        lambda rng: rng.exponential(1, (RACES, EXECUTIONS)),
        lambda rng: rng.lognormal(0, 0.5, (RACES, EXECUTIONS)),
    ],
    ids=["normal", "exponential", "lognormal"],
)
def test_identical_programs_differ_in_at_most_5_percent_of_races(law: Law) -> None:
    d, bound = against_both(law, 11), mixture_bound(0.95)
    found = np.zeros(RACES, dtype=bool)
    for n in looks_up_to(EXECUTIONS):
        seen = d[:, :n]
        half = critical_value(n, bound) * seen.std(axis=1, ddof=1) * widening(seen) / math.sqrt(n)
        found |= np.abs(seen.mean(axis=1)) > half
    assert found.mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / RACES)


def test_the_second_copy_takes_a_quarter_off_the_variance() -> None:
    d = against_both(lambda rng: rng.normal(0, 1, (RACES, EXECUTIONS)), 12)
    assert d.var() == pytest.approx(1.5, rel=0.05)
