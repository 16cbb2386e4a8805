"""Known truths: the load generator's bottleneck, waiting, and noise that only one cost has."""

from __future__ import annotations

import numpy as np
import pytest

from ensign.model.comparisons import TimeShares
from ensign.model.trials import Metric
from ensign.stats.both_metrics import beside
from ensign.stats.pair import PairNames, PairRule, compare

RULE = PairRule(margin=0.01)


def disagrees(
    cpu: np.ndarray,
    wall: np.ndarray,
    rule: PairRule = RULE,
    shares: tuple[TimeShares | None, TimeShares | None] = (None, None),
) -> bool:
    names = {metric: PairNames("new", "old", metric) for metric in Metric}
    chosen = compare(names[Metric.CPU], cpu.tolist(), rule)
    other = compare(names[Metric.WALL], wall.tolist(), rule)
    return beside(chosen, other, (cpu - wall).tolist(), rule, shares).disagrees


@pytest.mark.parametrize("truth", [(-0.055, 0.0), (0.02, -0.02), (-0.10, -0.03)])
def test_different_truths_disagree(truth: tuple[float, float]) -> None:
    rng = np.random.default_rng(1)
    cpu, wall = (one + 0.004 * rng.standard_normal(28) for one in truth)
    assert disagrees(cpu, wall)


def test_one_truth_with_a_noisier_wall_time_seldom_disagrees() -> None:
    """By CPU it is shown, by wall time it is not: that alone is no disagreement."""
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(400):
        cpu = -0.004 + 0.004 * rng.standard_normal(28)
        found += disagrees(cpu, cpu + 0.02 * rng.standard_normal(28))
    assert found < 0.05 * 400


def test_a_small_shown_difference_within_the_margin_is_no_disagreement() -> None:
    rng = np.random.default_rng(3)
    cpu = -0.05 + 0.003 * rng.standard_normal(28)
    assert not disagrees(cpu, cpu + 0.004 + 0.0005 * rng.standard_normal(28))


def waiting(
    before: float, after: float, spent: tuple[float, float]
) -> tuple[float, float, tuple[TimeShares, TimeShares]]:
    """Log ratios of CPU and wall time, and shares, of programs that wait besides (all in ms)."""
    walls = (before + spent[0], after + spent[1])
    shares = (TimeShares(before / walls[0], 0.1), TimeShares(after / walls[1], 0.1))
    return np.log(after / before), np.log(walls[1] / walls[0]), shares


@pytest.mark.parametrize(
    ("cpu_ms", "waiting_ms", "expected"),
    [
        ((40.0, 1.54), (0.4, 0.08), False),  # 26 and 25 times as fast: start-up of 0.08 ms
        ((29.1, 1.1), (0.5, 0.5), False),  # 26 and 18 times as fast: 0.5 ms of 1.6
        ((100.0, 50.0), (1000.0, 1000.0), True),  # twice as fast, and it waits as before
        ((100.0, 100.5), (1.0, 20.0), True),  # the same work, and it waits longer
        ((100.0, 95.0), (5.0, 15.0), True),  # faster by the one, slower by the other
        ((100.0, 80.0), (0.0, 4.0), True),  # waiting that only one of them has explains nothing
    ],
)
def test_start_up_that_both_have_is_no_other_conclusion(
    cpu_ms: tuple[float, float], waiting_ms: tuple[float, float], *, expected: bool
) -> None:
    rng = np.random.default_rng(4)
    cpu, wall, shares = waiting(*cpu_ms, waiting_ms)
    noise = 0.003 * rng.standard_normal(28)
    own = 0.001 * rng.standard_normal(28)
    assert disagrees(cpu + noise, wall + noise + own, RULE, shares) is expected


def test_nothing_shown_by_either_is_no_disagreement() -> None:
    rng = np.random.default_rng(5)
    noise = 0.1 * rng.standard_normal(28)
    assert not disagrees(noise, noise + 0.015 + 0.001 * rng.standard_normal(28))
