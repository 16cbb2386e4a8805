"""Known truths: the load generator's bottleneck, waiting, and noise that only one cost has."""

from __future__ import annotations

import numpy as np
import pytest

from ensign.model.trials import Metric
from ensign.stats.both_metrics import beside
from ensign.stats.pair import PairNames, PairRule, compare

RULE = PairRule(margin=0.01)


def disagrees(cpu: np.ndarray, wall: np.ndarray, rule: PairRule = RULE) -> bool:
    names = {metric: PairNames("new", "old", metric) for metric in Metric}
    chosen = compare(names[Metric.CPU], cpu.tolist(), rule)
    other = compare(names[Metric.WALL], wall.tolist(), rule)
    return beside(chosen, other, (cpu - wall).tolist(), rule, (None, None)).disagrees


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
