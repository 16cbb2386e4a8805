from __future__ import annotations

import numpy as np
import pytest

from ensign.model.trials import TWIN, Metric
from ensign.stats.layouts import RelinksDiffer, relinks_differ
from ensign.stats.rounds import RoundCosts

VARIANTS = ("baseline", "o3", "aligned", TWIN)
MARGIN = 0.01


def found(
    rng: np.random.Generator,
    rounds: int,
    relinks: int,
    spreads: tuple[float, float, float],
    noise: float,
) -> tuple[RelinksDiffer, ...]:
    """What is found of so many rounds; `spreads` are of baseline, o3 and aligned."""
    used = np.arange(rounds) % relinks
    drift = rng.normal(0, 0.1, rounds)
    layouts = [rng.normal(0, sd, relinks)[used] for sd in (*spreads, spreads[0])]
    y = np.stack(layouts) + drift + rng.normal(0, noise, (4, rounds))
    costs = RoundCosts(Metric.CPU, VARIANTS, ("w",), tuple(range(rounds)), (), y[:, None, :])
    return relinks_differ(costs, relinks, MARGIN, 0.95)


@pytest.mark.parametrize(
    ("rounds", "noise", "spread"),
    [(5, 0.0, 0.009), (12, 0.005, 0.006), (16, 0.005, 0.0), (16, 0.05, 0.0), (24, 0.03, 0.005)],
)
def test_spreads_below_the_margin_are_rarely_said_to_be_above_it(
    rounds: int, noise: float, spread: float
) -> None:
    rng = np.random.default_rng(1)
    said = sum(bool(found(rng, rounds, 12, (spread,) * 3, noise)) for _ in range(600))
    assert said / 600 <= 0.07


@pytest.mark.parametrize("rounds", [5, 11, 16, 24])
def test_a_spread_of_several_margins_shows_at_once(rounds: int) -> None:
    rng = np.random.default_rng(2)
    seen = [found(rng, rounds, 12, (0.035, 0.045, 0.004), 0.005) for _ in range(300)]
    names = [{each.variant for each in one} for one in seen]
    assert sum(map(bool, names)) > 0.9 * 300
    assert sum("aligned" in one for one in names) < 0.02 * 300
    assert {each.told_apart for one in seen for each in one} == {rounds > 14}


def test_the_variant_is_named_where_the_baseline_stands_still() -> None:
    rng = np.random.default_rng(3)
    seen = [found(rng, 16, 12, (0.0, 0.04, 0.0), 0.003) for _ in range(100)]
    assert all([each.variant for each in one] == ["o3"] for one in seen)
    assert np.mean([one[0].sd for one in seen]) == pytest.approx(0.04, rel=0.1)


def test_noise_is_not_taken_for_layouts_where_relinks_ran_again() -> None:
    rng = np.random.default_rng(4)
    assert sum(bool(found(rng, 24, 12, (0.0, 0.0, 0.0), 0.05)) for _ in range(300)) < 20
    once = [found(rng, 12, 12, (0.0, 0.0, 0.0), 0.05) for _ in range(50)]
    assert not any(each.told_apart for one in once for each in one)


def test_nothing_is_said_of_too_few_rounds() -> None:
    assert found(np.random.default_rng(5), 2, 12, (0.1, 0.1, 0.1), 0.0) == ()
