"""Means over hosts against simulations whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ensign.stats.fleet import (
    Estimate,
    fleet_mean,
    host_mean,
    kind_mean,
    next_host,
    noisy_hosts,
)

LEVEL = 0.95
RUNS = 1500
# Three standard errors of a share of 0.95 in so many runs.
CHANCE = 3 * math.sqrt(0.95 * 0.05 / RUNS)


def sampled(
    rng: np.random.Generator, hosts: int, mean: float, between: float, drift: float = 0.0
) -> list[Estimate]:
    """Hosts that were raced for other numbers of rounds, with other noise and a drift of rounds."""
    found = []
    for _ in range(hosts):
        rounds = int(rng.integers(6, 40))
        noise = rng.uniform(0.002, 0.03)
        true = rng.normal(mean, between)
        ratios = true + rng.normal(0, noise, rounds) + np.linspace(-drift, drift, rounds)
        one = host_mean(ratios)
        assert one is not None
        found.append(one)
    return found


def holds(pooled: Estimate | None, true: float) -> bool:
    assert pooled is not None
    interval = pooled.interval(LEVEL)
    return interval.low <= true <= interval.high


@pytest.mark.parametrize("hosts", [3, 5, 10, 50])
@pytest.mark.parametrize("between", [0.0, 0.01, 0.1])
def test_the_mean_of_a_kind_is_covered(hosts: int, between: float) -> None:
    rng = np.random.default_rng(hosts)
    runs = RUNS if hosts < 50 else RUNS // 3
    hits = sum(
        holds(kind_mean(sampled(rng, hosts, -0.09, between, drift=0.01)), -0.09)
        for _ in range(runs)
    )
    assert hits / runs >= 0.95 - CHANCE * math.sqrt(RUNS / runs)


@pytest.mark.parametrize(
    ("hosts", "shares"),
    [((3, 3), (0.5, 0.5)), ((3, 5, 10), (0.6, 0.3, 0.1)), ((10, 3, 3), (0.05, 0.9, 0.05))],
)
def test_the_mean_of_a_fleet_is_covered(hosts: tuple[int, ...], shares: tuple[float, ...]) -> None:
    rng = np.random.default_rng(sum(hosts))
    means = np.linspace(-0.1, 0.02, len(hosts))
    spread = np.linspace(0.0, 0.05, len(hosts))
    true = float((means * shares).sum())
    hits = 0
    for _ in range(RUNS):
        pooled = [kind_mean(sampled(rng, *each)) for each in zip(hosts, means, spread, strict=True)]
        known = [(share, one) for share, one in zip(shares, pooled, strict=True) if one]
        hits += holds(fleet_mean(known), true)
    assert hits / RUNS >= 0.93 - CHANCE


@pytest.mark.parametrize("hosts", [5, 10, 30])
@pytest.mark.parametrize("between", [0.005, 0.05])
def test_the_next_host_is_where_it_was_said_to_be(hosts: int, between: float) -> None:
    rng = np.random.default_rng(hosts)
    hits = 0
    for _ in range(RUNS):
        ahead = next_host(sampled(rng, hosts, 0.0, between), LEVEL)
        assert ahead is not None
        hits += ahead.low <= rng.normal(0.0, between) <= ahead.high
    assert hits / RUNS >= 0.95 - CHANCE


def test_too_few_hosts_tell_nothing() -> None:
    one = Estimate(0.1, 0.01, 8)
    assert kind_mean([one]) is None
    assert host_mean(np.array([0.1])) is None
    assert next_host([one] * 4, LEVEL) is None


def test_hosts_without_any_spread_are_no_error() -> None:
    same = kind_mean([Estimate(0.1, 0.0, 8)] * 3)
    assert same is not None
    assert same.mean == pytest.approx(0.1)
    other = kind_mean([Estimate(0.1, 0.0, 8), Estimate(0.2, 0.0, 8)])
    assert other is not None
    assert other.mean == pytest.approx(0.15)
    assert other.between > 0.05


def test_a_noisy_host_is_named_and_seldom_a_quiet_one() -> None:
    rng = np.random.default_rng(7)
    alarms, named = 0, 0
    for _ in range(600):
        quiet = [float(rng.normal(0, 0.01, 10).std(ddof=1)) for _ in range(5)]
        alarms += bool(noisy_hosts([(sd, 9) for sd in quiet]))
        disturbed = float(rng.normal(0, 0.04, 10).std(ddof=1))
        named += 5 in noisy_hosts([(sd, 9) for sd in (*quiet, disturbed)])
    assert alarms / 600 <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / 600)
    assert named / 600 >= 0.9
    assert noisy_hosts([(0.1, 9)]) == ()
