"""Welch's interval against known values and simulated pairs of studies with known truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from ensign.model.comparisons import Direction, Size
from ensign.stats.changes import ChangeRule, variant_changes, welch
from ensign.stats.holm import holm_adjusted
from ensign.stats.rounds import RoundCosts

STUDIES = 10_000
Make = Callable[..., RoundCosts]


def test_it_is_welchs_test_as_scipy_has_it() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, (5, 8)), rng.normal(0.5, 3, (5, 12))
    found = welch(a, b, 0.9)
    known = scipy.stats.ttest_ind(b, a, axis=1, equal_var=False)
    assert found.p == pytest.approx(known.pvalue)
    interval = known.confidence_interval(0.9)
    assert found.mean - found.half_width == pytest.approx(interval.low)
    assert found.mean + found.half_width == pytest.approx(interval.high)


def test_one_round_says_nothing_and_no_spread_is_a_point() -> None:
    lonely = welch(np.zeros((1, 1)), np.ones((1, 9)), 0.95)
    assert np.isinf(lonely.half_width).all()
    assert lonely.p == 1
    exact = welch(np.zeros((2, 4)), np.array([[0.0] * 5, [1.0] * 5]), 0.95)
    assert exact.half_width == pytest.approx(0)
    assert exact.p == pytest.approx([1, 0])


@pytest.mark.parametrize(
    ("n", "sd"), [((8, 8), (1, 1)), ((8, 16), (3, 1)), ((16, 7), (1, 4)), ((8, 8), (1, 10))]
)
def test_it_covers_whatever_the_noise_and_the_rounds_of_both(
    n: tuple[int, int], sd: tuple[float, float]
) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.normal(0, sd[i], (STUDIES, n[i])) for i in (0, 1))
    found = welch(a, b + 1.0, 0.95)
    assert (np.abs(found.mean - 1.0) <= found.half_width).mean() == pytest.approx(0.95, abs=0.011)
    if sd == (1, 4):  # a pooled variance would not
        pooled = scipy.stats.ttest_ind(b, a, axis=1).pvalue <= 0.05
        assert pooled.mean() > 0.08


def test_no_workload_is_named_where_none_moved_in_nineteen_of_twenty() -> None:
    rng = np.random.default_rng(3)
    named = 0
    for _ in range(2_000):
        p = welch(rng.normal(0, 1, (12, 8)), rng.normal(0, 3, (12, 10)), 0.95).p
        named += min(holm_adjusted(p.tolist())) <= 0.05
    assert named / 2_000 < 0.05 + 5 * 0.005


def test_a_change_of_two_percent_is_found(make_costs: Make) -> None:
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(300):
        a = make_costs(rng.normal(-0.05, 0.008, (4, 10)))
        b = make_costs(rng.normal([[-0.05], [-0.05], [-0.05], [-0.02]], 0.008, (4, 10)))
        changes = variant_changes(a, b, "variant", "baseline", ChangeRule(margin=0.01))
        found += changes.significant.slower == ("w3",)
    # Power of one Welch test of 3 % at 0.05/4 is 100 %; wrong names of the other three cost 4 %.
    assert found / 300 > 0.9


def test_no_evidence_of_a_change_is_not_shown_to_be_within_the_margin(make_costs: Make) -> None:
    def change(sd: float) -> tuple[Direction, Size | None]:
        a, b = (make_costs(np.tile([sd, -sd], (3, 6)) * sign) for sign in (1, -1))
        comparison = variant_changes(
            a, b, "variant", "baseline", ChangeRule(margin=0.01)
        ).suite.comparison
        return comparison.direction, comparison.size

    assert change(0.002) == (Direction.UNCLEAR, Size.WITHIN)
    assert change(0.05) == (Direction.UNCLEAR, Size.UNCLEAR)


def test_the_ratio_of_ratios_has_both_ratios_beside_it(make_costs: Make) -> None:
    a, b = make_costs(np.full((2, 4), -0.1)), make_costs(np.full((2, 5), -0.04))
    change = variant_changes(a, b, "variant", "baseline", ChangeRule()).suite
    assert change.ratio_a == pytest.approx(np.exp(-0.1))
    assert change.ratio_b == pytest.approx(np.exp(-0.04))
    assert change.comparison.ratio == pytest.approx(np.exp(0.06))
    assert change.comparison.direction is Direction.SLOWER
