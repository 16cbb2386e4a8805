"""Claims about single workloads while rounds are looked at as they come."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from ensign.stats.holm import shown_after_holm
from ensign.stats.looks import anytime_p, critical_value, looks_up_to
from ensign.stats.suite import upper_bounds

Floats = NDArray[np.float64]
RACES, WORKLOADS, ROUNDS = 600, 8, 56
LOOKS = looks_up_to(ROUNDS)


def drawn(mean: float, seed: int, drift: float = 0.0) -> Floats:
    """d[race, workload, round]; with `drift` the machine slowly changes what a difference is."""
    rng = np.random.default_rng(seed)
    d = rng.normal(mean, 0.01, (RACES, WORKLOADS, ROUNDS))
    walk = np.cumsum(rng.normal(0, drift, (RACES, 1, ROUNDS)), axis=-1)
    return np.asarray(d + walk - walk.mean(axis=-1, keepdims=True))


@pytest.mark.parametrize("bound", [4.6, 9.0, 20.0, 1000.0])
@pytest.mark.parametrize("executions", [5, 10, 40, 1000])
def test_the_p_value_is_that_of_the_interval(executions: int, bound: float) -> None:
    c = critical_value(executions, bound)
    if math.isfinite(c):
        assert anytime_p(c, executions) == pytest.approx(1 / bound)
        assert anytime_p(-c, executions) == pytest.approx(1 / bound)
    assert anytime_p(0.0, executions) == 1.0
    assert anytime_p(math.inf, executions) < anytime_p(5.0, executions)


def shown_at_any_look(d: Floats, *, anytime: bool) -> float:
    """In which share of races some workload is called different at some look."""
    hits = 0
    for race in d:
        hits += any(any(shown_after_holm(race[:, :n], 0.95, anytime=anytime)) for n in LOOKS)
    return hits / len(d)


def test_looking_does_not_raise_the_rate_of_false_alarms() -> None:
    """One error probability for all workloads and all looks together: 5 %, 2 standard errors."""
    equal = drawn(0.0, seed=3)
    assert shown_at_any_look(equal, anytime=True) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / RACES)
    # The ordinary t test pays for every look: that it must not be used here.
    assert shown_at_any_look(equal, anytime=False) > 0.1


def test_a_machine_that_drifts_raises_no_false_alarms_either() -> None:
    drifting = drawn(0.0, seed=4, drift=0.0005)
    assert shown_at_any_look(drifting, anytime=True) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / RACES)


def test_differences_are_found() -> None:
    different = drawn(0.01, seed=5)
    found = [shown_after_holm(race, 0.95, anytime=True) for race in different[:200]]
    assert np.mean(found) > 0.95


def test_upper_bounds_hold_at_every_look() -> None:
    """A workload that is slower by the margin is called within it in at most 5 % of races."""
    m = math.log1p(0.01)
    d = drawn(m, seed=6)[:, 0, :]
    below = np.zeros(RACES, dtype=bool)
    for n in LOOKS:
        below |= upper_bounds(d[:, :n], 0.95, anytime=True) < m
    assert below.mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / RACES)
