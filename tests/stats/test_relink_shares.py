"""Shares of samples in slow and fast relinks: what is shown, and how often nothing is."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ensign.stats.relink_shares import (
    own_layout_sds,
    share_changes,
    shown_growths,
    shows_layouts,
)

BENCH = Path(__file__).parents[2] / "bench" / "statistics_relink_shares.py"
named: Callable[..., frozenset[int]] = runpy.run_path(str(BENCH))["named"]


@pytest.mark.parametrize(("relinks", "samples"), [(6, 40), (8, 100), (12, 300), (24, 60)])
def test_equal_shares_are_rarely_named(relinks: int, samples: int) -> None:
    rng = np.random.default_rng(5)
    trials = 1500
    wrong = sum(bool(named(rng, relinks, samples, 0.0)) for _ in range(trials))
    assert wrong / trials < 0.06


def test_the_function_that_is_slower_is_named() -> None:
    rng = np.random.default_rng(6)
    found = [named(rng, 12, 1000, 0.1) for _ in range(60)]
    assert sum(0 in each for each in found) >= 54
    assert sum(bool(each - {0}) for each in found) <= 3


def test_few_relinks_or_samples_show_nothing() -> None:
    rng = np.random.default_rng(7)
    assert not named(rng, 5, 4000, 0.5)
    assert not named(rng, 12, 10, 0.5)


def test_growths_share_one_level() -> None:
    costs = [0.4, 0.3, 0.2, 0.1]
    found = share_changes(costs, [{"x": count, "y": 50} for count in (70, 64, 61, 50)])
    assert [each.key for each in shown_growths([found], 0.95)[0]] == ["x"]
    same = share_changes(costs, [{"x": count, "y": 50} for count in (50, 52, 52, 50)])
    many = shown_growths([found, *[same] * 100], 0.95)
    assert not any(many)


def layouts(rng: np.random.Generator, sds: list[float], relinks: int, repeats: int) -> np.ndarray:
    """Log costs y[series, round]: each series has its own layouts; a round moves all of them."""
    own = np.stack([np.tile(rng.normal(0, sd, relinks), repeats) for sd in sds])
    shared = rng.normal(0, 0.1, relinks * repeats)
    return own + shared + rng.normal(0, 0.003, own.shape)


def test_each_series_has_its_own_spread() -> None:
    rng = np.random.default_rng(8)
    rounds, sds = range(36), [0.03, 0.03, 0.0, 0.01]
    found = np.array([own_layout_sds(layouts(rng, sds, 12, 3), rounds, 12) for _ in range(300)])
    assert np.sqrt((found**2).mean(axis=0)) == pytest.approx([0.03, 0.03, 0.006, 0.011], abs=0.004)


def test_two_series_or_single_runs_cannot_tell() -> None:
    rng = np.random.default_rng(9)
    assert own_layout_sds(layouts(rng, [0.1, 0.1], 6, 3), range(18), 6) is None
    assert own_layout_sds(layouts(rng, [0.1] * 3, 6, 1), range(6), 6) is None


def test_noise_of_executions_is_no_layout() -> None:
    rng = np.random.default_rng(10)
    trials = 2000
    wrong = sum(shows_layouts(rng.normal(0, 0.02, 24), range(24), 8) for _ in range(trials))
    assert wrong / trials < 0.02
    d = np.tile(rng.normal(0, 0.03, 8), 3) + rng.normal(0, 0.003, 24)
    assert shows_layouts(d, range(24), 8)
    assert not shows_layouts(np.zeros(24), range(24), 8)
