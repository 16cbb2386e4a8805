from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from ensign.model.comparisons import Direction, Size
from ensign.model.errors import InputError
from ensign.model.trials import Metric, Trial
from ensign.stats.pair import PairNames, PairRule, compare
from ensign.stats.rounds import RoundCosts
from ensign.stats.suite import (
    SuiteRule,
    compare_suite,
    compare_workloads,
    round_geomeans,
    workload_comparison,
)

Make = Callable[..., RoundCosts]

D = np.array([[0.02, 0.03, 0.01, 0.02], [-0.01, 0.0, -0.02, -0.01], [0.05, 0.06, 0.06, 0.05]])


def test_the_interval_comes_from_the_spread_of_rounds(make_costs: Make) -> None:
    result = compare_suite(make_costs(D), "variant", "baseline", SuiteRule())
    expected = scipy.stats.ttest_1samp(D.mean(axis=0), 0).confidence_interval(0.95)
    assert result.comparison.ratio == pytest.approx(math.exp(D.mean()))
    assert result.comparison.low == pytest.approx(math.exp(expected.low))
    assert result.comparison.high == pytest.approx(math.exp(expected.high))
    assert (result.comparison.executions, result.comparison.rule) == (4, "t")
    assert (result.workloads, result.non_inferior, result.not_shown) == (3, None, ())


def test_a_round_geomean_is_over_workloads() -> None:
    assert round_geomeans(D) == pytest.approx([0.02, 0.03, 0.05 / 3, 0.02])


def test_finalists_share_the_error(make_costs: Make) -> None:
    rule = SuiteRule(level=0.95, finalists=3)
    result = compare_suite(make_costs(D), "variant", "baseline", rule).comparison
    g = D.mean(axis=0)
    expected = scipy.stats.ttest_1samp(g, 0).confidence_interval(1 - 0.05 / 3)
    assert result.level == pytest.approx(1 - 0.05 / 3)
    assert result.high == pytest.approx(math.exp(expected.high))


def test_swapping_the_variants_inverts_the_geomean(make_costs: Make) -> None:
    costs = make_costs(D)
    there = compare_suite(costs, "variant", "baseline", SuiteRule()).comparison
    back = compare_suite(costs, "baseline", "variant", SuiteRule()).comparison
    assert (back.low, back.high) == pytest.approx((1 / there.high, 1 / there.low))


def test_the_margin_gives_a_size_and_the_claim(make_costs: Make) -> None:
    result = compare_suite(make_costs(D - 0.2), "variant", "baseline", SuiteRule(margin=0.01))
    assert (result.comparison.direction, result.comparison.size) == (Direction.FASTER, Size.BEYOND)
    assert (result.non_inferior, result.not_shown) == (True, ())
    result = compare_suite(make_costs(D), "variant", "baseline", SuiteRule(margin=0.01))
    assert (result.non_inferior, result.not_shown) == (False, ("w0", "w2"))


def test_one_round_shows_nothing(make_costs: Make) -> None:
    result = compare_suite(make_costs(D[:, :1] - 1), "variant", "baseline", SuiteRule(margin=0.01))
    assert (result.comparison.low, result.comparison.high) == (0.0, math.inf)
    assert (result.non_inferior, result.not_shown) == (False, ("w0", "w1", "w2"))


def test_no_round_is_an_error(make_costs: Make) -> None:
    with pytest.raises(InputError, match="no executions"):
        compare_suite(make_costs(D[:, :0]), "variant", "baseline", SuiteRule())


def test_each_workload_has_its_own_interval(make_costs: Make) -> None:
    rows = compare_workloads(make_costs(D), "variant", "baseline", SuiteRule(margin=0.01))
    assert [name for name, _ in rows] == ["w0", "w1", "w2"]
    assert [c.direction for _, c in rows] == [
        Direction.SLOWER,
        Direction.UNCLEAR,
        Direction.SLOWER,
    ]
    expected = scipy.stats.ttest_1samp(D[0], 0).confidence_interval(0.95)
    assert rows[0][1].low == pytest.approx(math.exp(expected.low))


def test_costs_are_shown_beside_the_comparison(make_trial: Callable[..., Trial]) -> None:
    trials = [make_trial({"old": (100, 1, 1), "new": (c, 1, 1)}) for c in (200, 800)]
    comparison = compare(PairNames("new", "old", Metric.CPU), [0.1, 0.2], PairRule())
    row = workload_comparison(trials, "set", comparison)
    assert (row.workload, row.comparison) == ("set", comparison)
    assert (row.baseline_cost_ns, row.variant_cost_ns) == pytest.approx((100, 400))
    assert row.user_share == 0.75
