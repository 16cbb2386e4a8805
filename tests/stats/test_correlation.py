"""The lag-1 correlation against simulated noise: docs/background/statistics/correlation.md."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ensign.model.trials import Metric
from ensign.stats.correlation import (
    LARGEST_Z,
    are_correlated,
    lag_one,
    shared_correlation,
    widening,
    widening_for,
    z_of,
)
from ensign.stats.looks import looks_up_to
from ensign.stats.pair import PairNames, PairRule, Rule, compare, critical, log_interval
from ensign.stats.rounds import RoundCosts
from ensign.stats.stopping import correlated_rounds, pair_findings, round_correlation
from simulated_races import INDEPENDENT_NOISE, drifting, exclusions, normal

RACES = 20_000
STEADY = [0.010, 0.012, 0.009, 0.011, 0.013, 0.008, 0.010, 0.012, 0.011, 0.009]


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


def study(correlation: float, sizes: tuple[int, int, int], studies: int) -> np.ndarray:
    """d[study, variant, workload, round] of so many variants: they share the baseline's noise."""
    variants, workloads, rounds = sizes
    shape = (studies, variants + 1, workloads, rounds)
    y = drifting(np.random.default_rng(5), shape, correlation)
    return np.asarray(y[:, 1:] - y[:, :1])


@pytest.mark.parametrize("sizes", [(3, 12, 7), (3, 12, 12), (3, 12, 20), (3, 3, 20)])
@pytest.mark.parametrize("correlation", [0.0, 0.1, 0.3, 0.5])
def test_tests_of_a_study_cover_what_they_say(
    correlation: float, sizes: tuple[int, int, int]
) -> None:
    """Student's intervals alone miss 14 % of the time for 0.3, and 25 % for 0.5."""
    d = study(correlation, sizes, 600)
    n = d.shape[-1]
    half = critical(n, PairRule(rule=Rule.T)) * d.std(axis=-1, ddof=1) / math.sqrt(n)
    wider = np.array([float(widening_for(shared_correlation(each), n)) for each in d])
    missed = float((np.abs(d.mean(axis=-1)) > half * wider[:, None, None]).mean())
    assert 0.02 < missed < 0.063
    if correlation == 0:
        assert 1.0 <= wider.mean() < 1.07


def test_one_interval_of_a_study_is_widened_as_are_all() -> None:
    plain = log_interval(STEADY, PairRule(rule=Rule.T))
    wider = log_interval(STEADY, PairRule(rule=Rule.T, correlation=0.3))
    factor = float(widening_for(0.3, len(STEADY)))
    assert factor > 1.3
    assert wider.high - wider.mean == pytest.approx(factor * (plain.high - plain.mean))


def test_correlated_workloads_of_a_study_are_named_and_chance_names_none() -> None:
    rng = np.random.default_rng(6)
    y = rng.standard_normal((3, 4, 30)) / 100
    assert correlated_rounds(costs_of(y), round_correlation(costs_of(y))) == ()
    y[1, 2] += np.cumsum(rng.standard_normal(30)) / 100
    shared = round_correlation(costs_of(y))
    (found,) = correlated_rounds(costs_of(y), shared)
    assert (found.code, found.subject) == ("correlated-executions", "w2")
    assert shared > 0


def costs_of(y: np.ndarray) -> RoundCosts:
    rounds = tuple(range(y.shape[-1]))
    names = tuple(f"w{number}" for number in range(y.shape[1]))
    return RoundCosts(Metric.CPU, ("base", "new", "twin"), names, rounds, (), y)


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
