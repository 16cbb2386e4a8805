"""How many relinks some rounds are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ensign.stats.layouts import relinks_worth
from ensign.stats.student import two_sided_critical


def test_where_layouts_do_not_matter_a_dozen_relinks_do_for_any_number_of_rounds() -> None:
    assert relinks_worth(0.0, 10_000, 0.95) <= 12


def test_where_they_are_all_of_the_variance_nearly_every_round_gets_another() -> None:
    assert [relinks_worth(1.0, rounds, 0.95) for rounds in (2, 10, 40, 200)] == [2, 9, 33, 159]


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("rounds", [12, 60, 200])
def test_simulated_half_widths_are_about_an_eighth_above_the_least(
    part: float, rounds: int
) -> None:
    rng = np.random.default_rng(5)

    def half_width(relinks: int) -> float:
        turns = np.arange(rounds) % relinks
        layouts = rng.normal(0, part**0.5, (2000, relinks))
        executions = rng.normal(0, (1 - part) ** 0.5, (2000, rounds))
        sizes = np.bincount(turns)
        sums = np.stack([executions[:, turns == k].sum(axis=1) for k in range(relinks)], axis=1)
        means = layouts + sums / sizes
        root_mean = float(np.sqrt(means.var(axis=1, ddof=1).mean()))
        return two_sided_critical(0.95, relinks - 1) * root_mean / math.sqrt(relinks)

    assert half_width(max(12, relinks_worth(part, rounds, 0.95))) / half_width(rounds) < 1.16
