"""One pair against simulated noise with known truth.

Bounds are expected rates (docs/background/statistics/one-pair.md, from 100,000 races) give or take
five standard errors sqrt(p(1 - p)/races), rounded outwards; seeds are fixed, so a test either
always passes or always fails. Ordinary t quantiles in place of c_n would give 19 % false alarms.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from ensign.stats.looks import LEVELS, looks_up_to, mixture_bound
from ensign.stats.pair import PairRule, Rule
from simulated_races import (
    INDEPENDENT_NOISE,
    drifting,
    exclusions,
    largest_log_bounds,
    normal,
    of_two_variants,
    run_races,
    signed_rank_rejections,
)

RACES = 20_000
TO_40 = looks_up_to(40)
SEQUENTIAL = PairRule()
T = PairRule(rule=Rule.T)


def five_errors(share: float, races: int = RACES) -> float:
    return 5 * math.sqrt(share * (1 - share) / races)


def false_alarms(d: np.ndarray, rule: PairRule = SEQUENTIAL) -> float:
    return float(exclusions(d, 0.0, rule, TO_40).any(axis=1).mean())


def test_false_alarms_of_normal_noise() -> None:
    d = normal(np.random.default_rng(1), (RACES, 40))
    assert false_alarms(d) == pytest.approx(0.0272, abs=five_errors(0.0272))


@pytest.mark.parametrize("name", list(INDEPENDENT_NOISE))
def test_false_alarms_stay_below_five_percent_when_both_variants_have_the_same_noise(
    name: str,
) -> None:
    noise = of_two_variants(INDEPENDENT_NOISE[name])
    d = noise(np.random.default_rng(2), (RACES, 40))
    assert 0.01 < false_alarms(d) < 0.0366 + five_errors(0.0366)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t, 3 degrees of freedom", 0.018),
        ("5 % of executions shifted", 0.0495),
        ("exponential", 0.113),
        ("lognormal", 0.0714),
    ],
)
def test_one_sided_noise_in_one_variant_alone_is_known_to_cost(name: str, expected: float) -> None:
    d = INDEPENDENT_NOISE[name](np.random.default_rng(3), (RACES, 40))
    assert false_alarms(d) == pytest.approx(expected, abs=five_errors(expected))


def test_repeated_t_intervals_would_alarm() -> None:
    d = normal(np.random.default_rng(1), (RACES, 40))
    assert false_alarms(d, T) > 0.17
    assert exclusions(d, 0.0, T, range(5, 41)).any(axis=1).mean() > 0.25


def test_one_t_interval_at_the_end_keeps_its_level() -> None:
    d = normal(np.random.default_rng(4), (RACES, 7))
    assert exclusions(d, 0.0, T, [7]).mean() == pytest.approx(0.05, abs=five_errors(0.05))


@pytest.mark.parametrize("first", [5, 10])
def test_no_horizon_reaches_the_level(first: int) -> None:
    races = 50_000
    by_look = largest_log_bounds(np.random.default_rng(5), races, 10**6, first)
    largest = by_look[max(by_look)]
    for level in LEVELS:
        alpha = 1 - level
        alarms = (largest > math.log(mixture_bound(level, first))).mean()
        # Not above alpha, and not so far below that intervals would be wide for nothing.
        assert 0.9 * alpha - five_errors(alpha, races) < alarms
        assert alarms < alpha + five_errors(alpha, races)


def test_the_shortcut_for_long_horizons_agrees_with_the_intervals() -> None:
    by_look = largest_log_bounds(np.random.default_rng(6), RACES, 40)
    assert (by_look[40] > math.log(9)).mean() == pytest.approx(0.0366, abs=five_errors(0.0366))


@pytest.mark.parametrize("name", ["normal", "t, 3 degrees of freedom", "exponential"])
def test_signed_rank_false_alarms_over_its_looks(name: str) -> None:
    noise = of_two_variants(INDEPENDENT_NOISE[name])
    rejected = signed_rank_rejections(noise(np.random.default_rng(7), (RACES, 40)))
    assert rejected.any(axis=1).mean() == pytest.approx(0.049, abs=five_errors(0.049))


@pytest.mark.parametrize(
    "rule", [PairRule(precision=0.005), PairRule(margin=0.01)], ids=["precision", "margin"]
)
@pytest.mark.parametrize("truth", [0.0, 0.0099, 0.02])
def test_coverage_at_stopping(rule: PairRule, truth: float) -> None:
    d = truth + 0.008 * normal(np.random.default_rng(8), (RACES, 112))
    ended = run_races(d, rule)
    assert ended.covers(truth) > 0.955
    assert len(np.unique(ended.executions)) > 3
    assert abs(ended.mean.mean() - truth) < 0.0012


@pytest.mark.parametrize("name", list(INDEPENDENT_NOISE))
def test_coverage_at_stopping_of_other_noise_in_both_variants(name: str) -> None:
    noise = of_two_variants(INDEPENDENT_NOISE[name])
    d = 0.005 + 0.006 * noise(np.random.default_rng(9), (RACES, 112))
    ended = run_races(d, PairRule(precision=0.005))
    assert ended.covers(0.005) > 0.965
    assert ended.early.mean() > 0.87


@pytest.mark.parametrize(
    ("ratio", "by_10", "by_40"), [(0.5, 0.10, 0.563), (1.0, 0.446, 0.999), (2.0, 0.966, 1.0)]
)
def test_power(ratio: float, by_10: float, by_40: float) -> None:
    d = ratio + normal(np.random.default_rng(10), (RACES, 40))
    found = exclusions(d, 0.0, SEQUENTIAL, TO_40)
    assert found[:, :3].any(axis=1).mean() == pytest.approx(by_10, abs=0.02)
    assert found.any(axis=1).mean() == pytest.approx(by_40, abs=0.02)


def test_a_drift_left_in_d_is_known_to_break_every_rule() -> None:
    d = drifting(np.random.default_rng(11), (RACES, 40), 0.5)
    assert 0.15 < false_alarms(d) < 0.18
    assert signed_rank_rejections(d).any(axis=1).mean() > 0.25


def test_noise_has_mean_zero_and_the_stated_spread() -> None:
    spread = dict.fromkeys(INDEPENDENT_NOISE, 1.0) | {"5 % of executions shifted": 1.479}
    for name, noise in INDEPENDENT_NOISE.items():
        sample = noise(np.random.default_rng(12), (400_000,))
        assert sample.mean() == pytest.approx(0.0, abs=0.01), name
        assert sample.std() == pytest.approx(spread[name], rel=0.1), name
