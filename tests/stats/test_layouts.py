from __future__ import annotations

import math

import numpy as np
import pytest

from ensign.model.errors import InputError
from ensign.model.trials import Metric
from ensign.stats.layouts import blocked_split, by_relink, nested_split, relink_spread
from ensign.stats.rounds import RoundCosts
from ensign.stats.suite import SuiteRule, compare_suite

VARIANTS = ("baseline", "variant")


def costs_of(d: np.ndarray, rounds: int) -> RoundCosts:
    """Log costs of a variant over a baseline of 0, d[workload, round]."""
    y = np.stack([np.zeros_like(d), d])
    workloads = tuple(f"w{index}" for index in range(d.shape[0]))
    return RoundCosts(Metric.CPU, VARIANTS, workloads, tuple(range(rounds)), (), y)


def test_rounds_of_one_relink_are_one_column() -> None:
    d = np.array([[1.0, 2.0, 3.0, 5.0, 6.0]])
    columns = by_relink(costs_of(d, 5), 3)
    assert columns.rounds == (0, 1, 2)
    assert columns.log_ratios("variant", "baseline").tolist() == [[3.0, 4.0, 3.0]]


def test_without_a_round_there_is_no_column() -> None:
    assert by_relink(costs_of(np.empty((1, 0)), 0), 3).rounds == ()


def miss_shares(relinks: int, repeats: int, layout_sd: float, studies: int) -> tuple[float, float]:
    """How often the interval misses 0, counting relinks, and counting executions."""
    rng = np.random.default_rng(1)
    rounds, missed = relinks * repeats, [0, 0]
    for _ in range(studies):
        # A layout moves workloads together and each by itself; all executions of it share both.
        shared = rng.normal(0, layout_sd, (1, relinks)) + rng.normal(0, layout_sd, (4, relinks))
        d = np.tile(shared, repeats) + rng.normal(0, 0.004, (4, rounds))
        costs = costs_of(d, rounds)
        for which, columns in enumerate((by_relink(costs, relinks), costs)):
            found = compare_suite(columns, "variant", "baseline", SuiteRule()).comparison
            missed[which] += not found.low <= 1.0 <= found.high
    return missed[0] / studies, missed[1] / studies


@pytest.mark.parametrize("relinks", [4, 8])
def test_counting_relinks_covers_and_counting_executions_does_not(relinks: int) -> None:
    counted, executions = miss_shares(relinks, 5, layout_sd=0.01, studies=600)
    assert counted < 0.075
    assert executions > 0.3


def test_the_split_finds_both_parts() -> None:
    rng = np.random.default_rng(2)
    layout, execution = [], []
    for _ in range(400):
        groups = rng.normal(0, 0.02, (8, 1)) + rng.normal(0, 0.005, (8, 3))
        split = nested_split(groups.tolist())
        assert split is not None
        layout.append(split.layout_sd**2)
        execution.append(split.execution_sd**2)
    assert math.sqrt(np.mean(layout)) == pytest.approx(0.02, rel=0.06)
    assert math.sqrt(np.mean(execution)) == pytest.approx(0.005, rel=0.03)


def test_unequal_numbers_of_executions_leave_the_split_unbiased() -> None:
    rng = np.random.default_rng(3)
    sizes = (1, 2, 2, 3, 6)
    found = []
    for _ in range(800):
        groups = [rng.normal(rng.normal(0, 0.01), 0.01, size).tolist() for size in sizes]
        split = nested_split(groups)
        assert split is not None
        found.append((split.layout_sd**2, split.execution_sd**2))
    # Cut off at 0 the estimate is a little too large on average.
    assert 0.0095 < math.sqrt(np.mean([each[0] for each in found])) < 0.0125
    assert math.sqrt(np.mean([each[1] for each in found])) == pytest.approx(0.01, rel=0.05)


def test_what_an_execution_does_to_every_relink_is_not_taken_for_noise() -> None:
    rng = np.random.default_rng(4)
    blocked: list[float] = []
    nested: list[float] = []
    for _ in range(300):
        drift = rng.normal(0, 0.03, (1, 3))
        d = rng.normal(0, 0.01, (8, 1)) + rng.normal(0, 0.004, (8, 3)) + drift
        for split, kept in ((blocked_split(d), blocked), (nested_split(d.tolist()), nested)):
            assert split is not None
            kept.append(split.layout_sd**2)
    assert math.sqrt(np.mean(blocked)) == pytest.approx(0.01, rel=0.08)
    assert math.sqrt(np.mean(nested)) < 0.004


def test_the_upper_bound_of_the_layout_part_holds() -> None:
    rng = np.random.default_rng(5)
    above = 0
    for _ in range(1000):
        d = rng.normal(0, 0.01, (8, 1)) + rng.normal(0, 0.004, (8, 3))
        split = blocked_split(d, 0.95)
        assert split is not None
        assert split.layout_high >= split.layout_sd
        above += split.layout_high < 0.01
    assert 0.03 < above / 1000 < 0.07


@pytest.mark.parametrize("layout_sd", [0.0, 0.003, 0.012])
@pytest.mark.parametrize(("executions", "references"), [(1, 1), (3, 1), (3, 2)])
def test_the_true_ratio_of_one_more_relink_lies_in_the_spread(
    layout_sd: float, executions: int, references: int
) -> None:
    rng = np.random.default_rng(6)
    inside = 0
    for _ in range(2000):
        truth = rng.normal(0.02, layout_sd, 9)
        measured = truth[:8, None] + rng.normal(0, 0.006, (8, executions))
        natural = rng.normal(0, 0.006, (references, executions)).mean(axis=0)
        spread = relink_spread(measured - natural)
        inside += spread.low <= truth[8] <= spread.high
        assert spread.least >= spread.low
    assert inside / 2000 > 0.94


def test_too_little_for_a_split_or_a_spread() -> None:
    assert nested_split([[0.1], [0.2]]) is None
    assert nested_split([[0.1, 0.2]]) is None
    assert blocked_split(np.zeros((3, 1))) is None
    with pytest.raises(InputError):
        relink_spread(np.zeros((1, 3)))
