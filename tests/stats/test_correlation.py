"""The lag-1 correlation against simulated noise: docs/statistics/correlation.md."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ensign.model.trials import Metric
from ensign.stats.correlation import LARGEST_Z, are_correlated, lag_one, widening, z_of
from ensign.stats.looks import looks_up_to
from ensign.stats.pair import PairNames, PairRule, Rule, compare
from ensign.stats.simulation import INDEPENDENT_NOISE, drifting, exclusions, normal
from ensign.stats.stopping import pair_findings

RACES = 20_000


def alarms(d: np.ndarray) -> float:
    return float((z_of(lag_one(d), d.shape[-1]) > LARGEST_Z).mean())


@pytest.mark.parametrize("n", [10, 28, 100])
@pytest.mark.parametrize("name", list(INDEPENDENT_NOISE))
def test_false_alarms_of_the_finding(name: str, n: int) -> None:
    """About 1 in 100 whatever the law of the noise: a permutation would leave r alike."""
    d = INDEPENDENT_NOISE[name](np.random.default_rng(1), (RACES, n))
    assert 0.001 < alarms(d) < 0.022


@pytest.mark.parametrize(
    ("correlation", "n", "power"),
    [(0.3, 10, 0.045), (0.3, 40, 0.30), (0.3, 100, 0.73), (0.5, 10, 0.12), (0.5, 40, 0.76),
     (0.5, 100, 0.99)],
)  # fmt: skip
def test_power_of_the_finding(correlation: float, n: int, power: float) -> None:
    d = drifting(np.random.default_rng(2), (RACES, n), correlation)
    assert alarms(d) == pytest.approx(power, abs=0.02)


@pytest.mark.parametrize(
    ("correlation", "widened", "plain"),
    [(0.1, 0.051, 0.070), (0.3, 0.10, 0.178), (0.5, 0.175, 0.388)],
)
def test_widening_takes_off_much_of_what_correlation_costs(
    correlation: float, widened: float, plain: float
) -> None:
    """A/A races that exclude 0 at any look up to 112 executions."""
    d = drifting(np.random.default_rng(3), (RACES, 112), correlation)
    at = looks_up_to(112)
    found = exclusions(d, 0.0, PairRule(), at).any(axis=1).mean()
    assert found == pytest.approx(widened, abs=0.012)
    assert found < 0.75 * plain


def test_it_costs_little_where_executions_are_independent() -> None:
    for n, cost in ((10, 1.14), (20, 1.10), (40, 1.07)):
        d = normal(np.random.default_rng(4), (RACES, n))
        assert widening(d).mean() == pytest.approx(cost, abs=0.01)
        assert widening(d).min() >= 1


def test_r_is_told_with_every_comparison_and_the_finding_names_it() -> None:
    walk = np.cumsum(np.random.default_rng(5).standard_normal(28)) / 100
    names = PairNames("new", "old", Metric.CPU)
    entry = compare(names, walk.tolist(), PairRule())
    assert entry.correlation == pytest.approx(float(lag_one(walk)))
    (found,) = (each for each in pair_findings(walk.tolist(), PairRule()) if "corr" in each.code)
    assert f"correlation {entry.correlation:.2f}" in found.text
    assert "times as wide" in found.text
    once = pair_findings(walk.tolist(), PairRule(rule=Rule.T))
    assert any("too narrow" in each.text for each in once)


def test_too_few_or_equal_executions_say_nothing() -> None:
    assert not are_correlated([0.1] * 20)
    assert not are_correlated([0.0, 0.1, 0.2, 0.3, 0.4])
    assert float(widening([0.1] * 20)) == pytest.approx(math.sqrt(1.05 / 0.95))
    assert float(widening([0.1, 0.2])) == 1
