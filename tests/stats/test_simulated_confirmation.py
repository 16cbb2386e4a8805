"""Exploring, choosing the best, confirming: simulated studies with known truth."""

from __future__ import annotations

import numpy as np
import pytest

from ensign.stats.pair import PairRule, Rule, mean_and_half_width
from ensign.stats.suite import SuiteRule, upper_bounds

STUDIES = 10_000
VARIANTS, WORKLOADS = 20, 6
EXPLORING, FINALISTS, CONFIRMING = 7, 3, 16
T = PairRule(rule=Rule.T)


def rounds(rng: np.random.Generator, truth: np.ndarray, count: int) -> np.ndarray:
    """Geomeans g[study, variant, round]; a round's baseline is shared by all its variants."""
    studies, variants = truth.shape
    baseline = rng.normal(0, 0.004, (studies, 1, count))
    return truth[:, :, None] + rng.normal(0, 0.008, (studies, variants, count)) - baseline


def chosen(g: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and truths of the finalists, the best first."""
    order = np.argsort(g.mean(axis=-1), axis=1)[:, :FINALISTS]
    return order, np.take_along_axis(truth, order, axis=1)


@pytest.mark.parametrize("spread", [0.0, 0.002])
def test_the_winner_of_an_exploration_is_flattered_and_its_confirmation_is_not(
    spread: float,
) -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(0, spread, (STUDIES, VARIANTS)) if spread else np.zeros((STUDIES, VARIANTS))
    explored = rounds(rng, truth, EXPLORING)
    order, true = chosen(explored, truth)

    mean, half = mean_and_half_width(explored, T)
    best = order[:, :1]
    flattered = np.take_along_axis(mean, best, axis=1) - true[:, :1]
    covers = np.abs(flattered) <= np.take_along_axis(half, best, axis=1)
    assert flattered.mean() < -0.003
    assert covers.mean() < 0.85

    rule = SuiteRule(finalists=FINALISTS).pair_rule
    mean, half = mean_and_half_width(rounds(rng, true, CONFIRMING), rule)
    misses = np.abs(mean - true) > half
    assert (mean - true).mean() == pytest.approx(0, abs=1e-4)
    # Each at 1 - 0.05/3; five standard errors of 10,000 studies.
    assert misses[:, 0].mean() == pytest.approx(0.05 / 3, abs=0.0065)
    assert misses.any(axis=1).mean() < 0.05 + 0.011


def test_pooling_the_exploration_in_would_not_cover() -> None:
    rng = np.random.default_rng(2)
    truth = np.zeros((STUDIES, VARIANTS))
    explored = rounds(rng, truth, EXPLORING)
    order, true = chosen(explored, truth)
    of_best = np.take_along_axis(explored, order[:, :1, None], axis=1)
    pooled = np.concatenate([of_best, rounds(rng, true[:, :1], CONFIRMING)], axis=-1)
    mean, half = mean_and_half_width(pooled, T)
    assert (np.abs(mean) > half).mean() > 0.08


def test_a_false_winner_is_claimed_in_a_twentieth_of_studies_at_most() -> None:
    rng = np.random.default_rng(3)
    truth = np.zeros((STUDIES, VARIANTS))
    _, true = chosen(rounds(rng, truth, EXPLORING), truth)
    rule = SuiteRule(finalists=FINALISTS).pair_rule
    mean, half = mean_and_half_width(rounds(rng, true, CONFIRMING), rule)
    claimed = (mean + half < 0).any(axis=1)
    assert claimed.mean() < 0.025 + 0.008


def test_a_true_winner_of_one_percent_is_found_and_confirmed() -> None:
    rng = np.random.default_rng(4)
    truth = np.zeros((STUDIES, VARIANTS))
    truth[:, 7] = -0.012
    order, true = chosen(rounds(rng, truth, EXPLORING), truth)
    rule = SuiteRule(finalists=FINALISTS).pair_rule
    mean, half = mean_and_half_width(rounds(rng, true, CONFIRMING), rule)
    confirmed = ((mean + half < 0) & (order == 7)).any(axis=1)
    assert confirmed.mean() > 0.9


def test_non_inferior_of_any_finalist_is_wrong_in_a_twentieth_at_most() -> None:
    rng, margin = np.random.default_rng(5), np.log1p(0.01)
    level = SuiteRule(finalists=FINALISTS).level_each
    d = rng.normal(0, 0.004, (STUDIES, FINALISTS, WORKLOADS, CONFIRMING)) - 0.05
    d[:, :, 0] += 0.05 + margin
    shown = (upper_bounds(d, level) < margin).all(axis=-1)
    assert shown.any(axis=1).mean() == pytest.approx(0.05, abs=0.011)
