from __future__ import annotations

import numpy as np
import pytest

from ensign.model.trials import TWIN, Mode, Trial, VariantTotals
from ensign.stats.readings import (
    most_at_ticks,
    most_gain,
    reading_findings,
    repeated,
    tick_ns,
    timer_grid_ns,
)

MS = 1_000_000


def smooth(rng: np.random.Generator, sd_ms: float) -> dict[str, list[int]]:
    """Five variants of different speed, 12 executions, noise and a drift."""
    variants = {}
    for variant in "abcde":
        mean = rng.uniform(800, 4000)
        drift = np.linspace(0, rng.normal(0, sd_ms), 12)
        variants[variant] = [int(ms * MS) for ms in mean + drift + rng.normal(0, sd_ms, 12)]
    return variants


@pytest.mark.parametrize("sd_ms", [3, 20, 60, 120, 300, 800])
def test_times_without_a_timer_are_rarely_taken_for_a_grid(sd_ms: float) -> None:
    rng = np.random.default_rng(1)
    alarms = sum(timer_grid_ns(smooth(rng, sd_ms)) is not None for _ in range(500))
    assert alarms <= 5


@pytest.mark.parametrize("grid_ms", [100, 250, 1000])
def test_a_timer_is_found_with_its_step(grid_ms: int) -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        ends = {
            variant: [
                int((np.ceil(ns / MS / grid_ms) * grid_ms + 7 + abs(rng.normal(0, 2))) * MS)
                for ns in each
            ]
            for variant, each in smooth(rng, grid_ms).items()
        }
        assert timer_grid_ns(ends) == grid_ms * MS


def test_one_disturbed_execution_is_no_grid() -> None:
    rng = np.random.default_rng(6)
    alarms = 0
    for _ in range(300):
        variants = smooth(rng, 2)
        at, size = int(rng.integers(1, 11)), int(rng.uniform(40, 300) * MS)
        for each in variants.values():
            each[at] += size
        alarms += timer_grid_ns(variants) is not None
    assert alarms == 0


def test_times_within_one_step_say_nothing() -> None:
    assert timer_grid_ns({"a": [2 * 10**9] * 20, "b": [3 * 10**9] * 20}) is None


def test_ticks_are_told_from_nanoseconds() -> None:
    rng = np.random.default_rng(3)
    assert tick_ns([int(each) * 4 * MS for each in rng.integers(20, 90, 30)]) == 4 * MS
    assert tick_ns([int(each) for each in rng.integers(20 * MS, 90 * MS, 30)]) is None
    assert tick_ns([8 * MS] * 30) is None


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("ticks", [8, 40, 400])
def test_a_share_told_at_ticks_is_below_its_limit(share: float, ticks: int) -> None:
    seen = np.random.default_rng(7).binomial(ticks, share, 4000) / ticks
    covered = [share <= most_at_ticks(each, ticks * 4_000_000) for each in seen]
    assert np.mean(covered) > 0.985


def test_what_a_program_can_gain_is_its_own_part_of_the_cost() -> None:
    second = 1e9
    assert most_gain(100 * second, 1000 * second, 1000 * second) == pytest.approx(0.111, abs=0.003)
    assert most_gain(100 * second, 1000 * second, 2000 * second) == pytest.approx(0.0526, abs=0.002)
    assert most_gain(second, second, second) == most_gain(0, 0, 0) == np.inf
    assert most_gain(8 * second, 8 * second, 2 * second) == np.inf, "on several CPUs"


def test_without_a_tick_a_share_may_be_any() -> None:
    assert most_at_ticks(0.0, 0.0) == 1.0
    assert most_at_ticks(1.0, 1e9) == 1.0


@pytest.mark.parametrize("sd_us", [1, 5, 50, 2000])
@pytest.mark.parametrize("count", [30, 1000])
def test_microseconds_repeat_by_chance(sd_us: float, count: int) -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        # Two variants far from each other, one of them the baseline's twin.
        readings = {
            variant: [int(each) * 1000 for each in rng.normal(mean, sd_us, count)]
            for variant, mean in (("a", 40_000), ("b", 90_000), (TWIN, 40_000))
        }
        assert repeated(readings) is None


def test_a_reading_that_stands_still_is_found() -> None:
    rng = np.random.default_rng(5)
    fresh = [int(each) * 1000 for each in rng.normal(40_000, 2000, 200)]
    assert repeated({"a": [*fresh, *[fresh[7]] * 4]}) == fresh[7]
    assert repeated({"a": [0] * 30}) is None
    assert repeated({"a": fresh[:3]}) is None


def trial(round_index: int, *variants: tuple[str, int, int]) -> Trial:
    totals = tuple(
        VariantTotals(name, wall, cpu, cpu, 0, 0, 1000, 0, 0, 0, 1) for name, wall, cpu in variants
    )
    return Trial("get", round_index, 1, Mode.ALTERNATING, "none", 1, 0.0, 1, 1.0, totals, ())


def test_findings_name_workload_and_step() -> None:
    steps = [13, 14, 13, 15, 14, 13, 14, 15, 13, 14]
    trials = [
        trial(n, ("a", k * 250 * MS + n, 3 * MS + n), (TWIN, (k + 1) * 250 * MS, 3 * MS + 99 - n))
        for n, k in enumerate(steps)
    ]
    (finding,) = reading_findings(trials)
    assert (finding.code, finding.subject) == ("timer-grid", "get")
    assert "250 ms" in finding.text
    still = [5_000_001 + max(0, n - 4) * 70_001 for n in range(8)]
    stale = [
        trial(n, ("a", 10**9 + n, still[n]), (TWIN, 10**9, 4_000_000 + n * n * 997))
        for n in range(8)
    ]
    assert [each.code for each in reading_findings(stale)] == ["stale-reading"]
    assert reading_findings([trial(n, ("a", 10**9 + n**3, 5_000_001 + n)) for n in range(9)]) == ()
