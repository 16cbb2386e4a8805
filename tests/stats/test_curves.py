"""Curves against simulated rounds with known truth, drift included."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import report_data as data
from ensign.model.curves import AskedCurve, Crossover, Extremes
from ensign.model.trials import Better, Metric
from ensign.stats.curves import crossover, curves_of, extreme_rows
from ensign.stats.pair import Rule
from ensign.stats.rounds import RoundCosts
from ensign.stats.suite import SuiteRule
from simulated_races import drifting

RULE = SuiteRule(level=0.95, margin=0.01)
VALUES = (1.0, 8.0, 64.0, 512.0, 4096.0)
RACES, ROUNDS = 600, 12
NOISE = np.array([[[0.001, -0.001, 0.0, 0.0]], [[0.0, 0.0, -0.001, 0.001]]])


def simulated(
    rng: np.random.Generator, truth: np.ndarray, noise: float = 0.004, rounds: int = ROUNDS
) -> np.ndarray:
    """y[variant, value, round]: what a round does to all variants is large, and drifts."""
    common = 0.05 * drifting(rng, (1, truth.shape[1], rounds))
    return truth[:, :, None] + common + noise * rng.standard_normal((*truth.shape, rounds))


def known(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows)


# From the fourth value on no two differ by more than 1 %; in the second case at the very limit.
TRUTHS: Mapping[str, tuple[np.ndarray, float | None]] = {
    "clear": (
        known((0, 0, 0, 0, 0), (0.3, 0.1, 0.05, 0.001, 0), (0.1, 0.05, 0.03, 0.002, 0.001)),
        512.0,
    ),
    "at the limit": (
        known(
            (0, 0, 0, 0, 0),
            (0.3, 0.1, math.log(1.0101), math.log(1.0099), math.log(1.0099)),
        ),
        512.0,
    ),
    "never": (known((0, 0, 0, 0, 0), (0.2, 0.2, 0.1, 0.05, math.log(1.0101))), None),
    "everywhere": (known((0, 0, 0, 0, 0), (0, 0, 0, 0, 0)), 1.0),
    "again": (known((0, 0, 0, 0, 0), (0.1, 0, 0, 0.1, 0)), 4096.0),
}


def holds(found: Crossover, truth: float | None) -> bool:
    beyond = math.inf
    low = beyond if found.low is None else found.low
    high = beyond if found.high is None else found.high
    return low <= (beyond if truth is None else truth) <= high


@pytest.mark.parametrize("name", TRUTHS)
def test_the_crossover_lies_in_its_interval(name: str) -> None:
    truth, true_value = TRUTHS[name]
    rng = np.random.default_rng(5)
    found = [crossover(simulated(rng, truth), VALUES, RULE) for _ in range(RACES)]
    covered = np.mean([one is not None and holds(one, true_value) for one in found])
    assert covered >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / RACES)


def test_what_is_clear_is_told_to_the_value() -> None:
    truth, _ = TRUTHS["clear"]
    rng = np.random.default_rng(6)
    exact = Crossover(512.0, 512.0, 512.0)
    found = [crossover(simulated(rng, truth, 0.002), VALUES, RULE) for _ in range(100)]
    assert sum(one == exact for one in found) >= 95


def test_noise_hides_it_and_no_margin_asks_nothing() -> None:
    truth, _ = TRUTHS["clear"]
    y = simulated(np.random.default_rng(7), truth, 0.2)
    noisy = crossover(y, VALUES, RULE)
    assert noisy is not None
    assert noisy.high is None
    assert crossover(y, VALUES, SuiteRule(margin=None)) is None
    alone = crossover(y[:, :, :1], VALUES, RULE)
    assert alone is not None
    assert (alone.low, alone.high) == (1.0, None)


@pytest.mark.parametrize("variants", [2, 5, 9])
def test_the_true_best_is_among_the_best(variants: int) -> None:
    """Equal variants are the worst case: whichever is called the best must not be left out."""
    rng = np.random.default_rng(8)
    level = 0.95 - 3 * math.sqrt(0.95 * 0.05 / RACES)
    for sign in (1, -1):
        kept = 0
        for _ in range(RACES):
            g = simulated(rng, np.zeros((variants, 1)))[:, 0, :]
            kept += 0 in extreme_rows(sign * g, RULE)
        assert kept / RACES >= level


def test_the_best_is_told_from_what_is_slower_by_much() -> None:
    rng = np.random.default_rng(9)
    truth = known((0.001,), (0.0,), (0.05,), (0.1,))
    alone = 0
    for _ in range(100):
        found = extreme_rows(simulated(rng, truth)[:, 0, :], RULE)
        assert found[0] in (0, 1)
        assert not {2, 3} & set(found)
        alone += len(found) == 1
    assert alone < 80, "variants that differ by a tenth of a percent are seldom told apart"
    assert extreme_rows(np.zeros((1, 4)), RULE) == (0,)


def test_scores_that_are_better_the_higher_and_claims() -> None:
    """A rate stands as 1 over its cost; rounds that are looked at as they come have curves only."""
    asked = AskedCurve("thr", "size", "B", (8.0, 1.0), ("thr-8", "thr-1"))
    tests = ("thr-8/rate", "thr-1/rate", "other")
    y = np.log(np.broadcast_to([[[0.5], [0.25], [9]], [[0.4], [0.2], [9]]], (2, 3, 4))) + NOISE
    costs = RoundCosts(Metric.CPU, ("a", "b"), tests, (0, 1, 2, 3), (), y)
    totals = replace(
        data.trial().variants[0], variant="a", score=4.0, unit="msg/s", better=Better.HIGHER
    )
    trial = replace(data.trial(), workload="thr-1/rate", variants=(totals,))
    (found,) = curves_of([asked], costs, [trial], {"a": "gcc", "b": "gcc"}, RULE)
    assert (found.name, found.values) == ("thr/rate", (1.0, 8.0))
    assert found.workloads == ("thr-1/rate", "thr-8/rate")
    assert [one.mean for one in found.curve_of("b").points] == pytest.approx([5.0, 2.5], rel=0.02)
    assert all(one.low < one.mean < one.high for one in found.curve_of("b").points)
    assert found.largest == pytest.approx((0.25, 0.25), rel=0.05)
    assert found.extremes == (Extremes("gcc", ("b",), ("a",)),)
    assert (found.crossover, found.better) == (Crossover(None, None, None), Better.HIGHER)
    looked_at = replace(RULE, rule=Rule.SEQUENTIAL)
    (found,) = curves_of([asked], costs, [trial], {}, looked_at)
    assert (found.extremes, found.crossover) == ((), None)


def test_one_value_is_no_curve() -> None:
    costs = RoundCosts(Metric.CPU, ("a", "b"), ("thr-1",), (0, 1), (), np.zeros((2, 1, 2)))
    asked = AskedCurve("thr", "size", "B", (1.0,), ("thr-1",))
    assert curves_of([asked], costs, [], {}, RULE) == ()
