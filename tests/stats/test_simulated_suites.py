"""Suites against simulated rounds with known truth; bounds as in test_simulated_pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from ensign.stats.pair import PairRule, Rule, mean_and_half_width
from ensign.stats.suite import round_geomeans, upper_bounds
from ensign.stats.twin import exits_for_finding

T = PairRule(rule=Rule.T)
STUDIES = 10_000
M = math.log(1.01)


def suite(seed: int, shape: tuple[int, int, int], shared: float, own: float) -> np.ndarray:
    """d[study, workload, round]: an effect that a round's workloads share, and their own."""
    rng = np.random.default_rng(seed)
    studies, _, rounds = shape
    return shared * rng.standard_normal((studies, 1, rounds)) + own * rng.standard_normal(shape)


@pytest.mark.parametrize("rounds", [8, 12])
@pytest.mark.parametrize("shared", [0.0, 0.008])
def test_the_geomean_covers_whatever_the_correlation(rounds: int, shared: float) -> None:
    d = suite(1, (STUDIES, 12, rounds), shared, 0.008)
    mean, half = mean_and_half_width(round_geomeans(d), T)
    assert (np.abs(mean) <= half).mean() == pytest.approx(0.95, abs=0.011)


def test_a_per_workload_formula_would_not() -> None:
    d = suite(2, (STUDIES, 12, 12), 0.008, 0.008)
    se = np.sqrt((d.var(axis=2, ddof=1) / 12).sum(axis=1)) / 12
    assert (np.abs(d.mean(axis=(1, 2))) <= 1.96 * se).mean() < 0.6


def shown(d: np.ndarray) -> float:
    return float((upper_bounds(d, 0.95) < M).all(axis=1).mean())


def test_non_inferior_is_wrong_in_five_percent_at_worst() -> None:
    # The least favorable truth: one workload at the margin, the others far below it.
    d = suite(3, (STUDIES, 20, 8), 0.0, 0.004) - 0.05
    d[:, 0] += 0.05 + M
    assert shown(d) == pytest.approx(0.05, abs=0.011)


def test_non_inferior_is_wrong_almost_never_when_all_are_at_the_margin() -> None:
    assert shown(suite(4, (STUDIES, 20, 8), 0.0, 0.004) + M) < 0.001


def test_correlation_does_not_raise_its_error() -> None:
    assert shown(suite(5, (STUDIES, 20, 8), 0.02, 0.001) + M) < 0.061


def test_non_inferior_has_the_power_of_its_weakest_workload() -> None:
    d = suite(6, (STUDIES, 20, 8), 0.0, 0.006) - 0.1
    d[:, 0] += 0.1
    quantile = scipy.stats.t.ppf(0.95, 7)
    expected = scipy.stats.nct.cdf(-quantile, 7, -M / (0.006 / math.sqrt(8)))
    assert shown(d) == pytest.approx(expected, abs=0.011)
    assert 0.9 < expected < 1


def test_an_honest_twin_rarely_gives_a_finding() -> None:
    d = suite(7, (2_000, 50, 8), 0.0, 1.0)
    mean, half = mean_and_half_width(d, T)
    exits = (np.abs(mean) > half).sum(axis=1)
    assert exits.mean() == pytest.approx(2.5, abs=0.2)
    # 1.2 % expected; five standard errors of 2,000 studies are 1.2 points.
    assert 0.001 < (exits >= exits_for_finding(50)).mean() < 0.024
