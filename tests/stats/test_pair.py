from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st

from ensign.model.comparisons import Direction, Size
from ensign.model.errors import InputError
from ensign.model.trials import Metric
from ensign.stats.correlation import widening
from ensign.stats.pair import (
    LogInterval,
    PairNames,
    PairRule,
    Rule,
    compare,
    direction_of,
    half_width,
    has_spread,
    log_interval,
    rule_for,
    size_of,
)

NAMES = PairNames("new", "old", Metric.CPU)
T = PairRule(rule=Rule.T)
D = [0.012, 0.018, 0.009, 0.021, 0.014, 0.016]

log_ratios = st.lists(st.floats(-1, 1), min_size=4, max_size=30)
rules = st.sampled_from([PairRule(margin=0.05), PairRule(rule=Rule.T, margin=0.05)])


def test_t_interval_agrees_with_scipy() -> None:
    expected = scipy.stats.ttest_1samp(D, 0).confidence_interval(0.95)
    interval = log_interval(D, T)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_sequential_interval_by_hand() -> None:
    # Its lag-1 correlation is below -1/5, so nothing is widened.
    d = [0.01, 0.04, 0.03, 0.05, 0.02]
    a = (6 * 81) ** (1 / 5)
    half = math.sqrt(4 * 6 * (a - 1) / (6 - a)) * math.sqrt(0.00025 / 5)
    interval = log_interval(d, PairRule())
    assert interval.mean == pytest.approx(0.03)
    assert interval.high - 0.03 == pytest.approx(half)
    assert 0.03 - interval.low == pytest.approx(half)


def test_compare_reports_ratios_and_how_they_were_made() -> None:
    result = compare(NAMES, D, PairRule(level=0.9, margin=0.001, rule=Rule.T))
    assert (result.variant, result.baseline, result.metric) == ("new", "old", Metric.CPU)
    assert result.ratio == pytest.approx(math.exp(0.015))
    assert 1.001 < result.low < result.ratio < result.high
    assert (result.level, result.executions, result.rule) == (0.9, 6, "t")
    assert (result.direction, result.size) == (Direction.SLOWER, Size.BEYOND)


@pytest.mark.parametrize("d", [[0.5], [0.1, 0.2], [0.1, 0.2, 0.3]])
def test_too_few_executions_have_no_interval(d: list[float]) -> None:
    result = compare(NAMES, d, PairRule(margin=0.01))
    assert (result.low, result.high) == (0.0, math.inf)
    assert (result.direction, result.size) == (Direction.UNCLEAR, Size.UNCLEAR)
    assert result.ratio == pytest.approx(math.exp(np.mean(d)))


def test_one_execution_has_no_t_interval_and_two_have() -> None:
    assert compare(NAMES, [0.1], T).high == math.inf
    assert compare(NAMES, [0.1, 0.2], T).high < math.inf


def test_a_huge_interval_does_not_overflow() -> None:
    result = compare(NAMES, [-700.0, 700.0, -700.0, 700.0], PairRule())
    assert (result.low, result.high) == (0.0, math.inf)


@pytest.mark.parametrize(
    ("value", "direction", "size"),
    [
        (0.0, Direction.UNCLEAR, Size.WITHIN),
        (0.02, Direction.SLOWER, Size.BEYOND),
        (-0.005, Direction.FASTER, Size.WITHIN),
    ],
)
def test_equal_executions_give_the_point_itself(
    value: float, direction: Direction, size: Size
) -> None:
    result = compare(NAMES, [value] * 6, PairRule(margin=0.01))
    assert result.low == pytest.approx(result.high) == pytest.approx(math.exp(value))
    assert (result.direction, result.size) == (direction, size)


def test_spread_is_more_than_rounding() -> None:
    assert not has_spread([0.1])
    assert not has_spread([0.1 + 0.2, 0.3, 0.3])
    assert has_spread([0.3, 0.3001])


@pytest.mark.parametrize(
    ("low", "high", "direction", "size"),
    [
        (0.001, 0.005, Direction.SLOWER, Size.WITHIN),  # slower, but by less than the margin
        (0.011, 0.02, Direction.SLOWER, Size.BEYOND),
        (0.005, 0.02, Direction.SLOWER, Size.UNCLEAR),
        (-0.02, -0.011, Direction.FASTER, Size.BEYOND),
        (-0.02, 0.005, Direction.UNCLEAR, Size.UNCLEAR),
        (-0.005, 0.005, Direction.UNCLEAR, Size.WITHIN),
        (0.0, 0.005, Direction.UNCLEAR, Size.WITHIN),
    ],
)
def test_direction_and_size_are_two_statements(
    low: float, high: float, direction: Direction, size: Size
) -> None:
    interval = LogInterval((low + high) / 2, low, high)
    assert direction_of(interval) is direction
    assert size_of(interval, 0.01) is size
    assert size_of(interval, None) is None


def test_the_margin_is_a_ratio_in_both_directions() -> None:
    m = math.log1p(0.1)
    assert size_of(LogInterval(0, -m, m), 0.1) is Size.WITHIN
    assert size_of(LogInterval(0, -m * 1.001, m), 0.1) is Size.UNCLEAR


@pytest.mark.parametrize(("allowed", "rule"), [(2, Rule.T), (7, Rule.T), (8, Rule.SEQUENTIAL)])
def test_short_budgets_are_not_peeked_into(allowed: int, rule: Rule) -> None:
    assert rule_for(allowed) is rule


def test_half_width_is_on_the_ratio_scale() -> None:
    assert half_width(LogInterval(0.0, math.log(0.9), math.log(1.2))) == pytest.approx(0.15)
    assert half_width(LogInterval(0.0, -math.inf, math.inf)) == math.inf


@pytest.mark.parametrize("d", [[], [0.1, math.nan], [math.inf, 0.1, 0.2]])
def test_what_cannot_be_compared_is_refused(d: list[float]) -> None:
    with pytest.raises(InputError):
        compare(NAMES, d, PairRule())


@given(log_ratios, rules)
def test_swapping_the_variants_inverts_the_ratio(d: list[float], rule: PairRule) -> None:
    there, back = compare(NAMES, d, rule), compare(NAMES, [-x for x in d], rule)
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.low == pytest.approx(1 / there.high)
    assert back.high == pytest.approx(1 / there.low)
    opposite = {Direction.FASTER: Direction.SLOWER, Direction.SLOWER: Direction.FASTER}
    assert back.direction is opposite.get(there.direction, there.direction)
    assert back.size is there.size


@given(log_ratios, st.floats(0.01, 100), rules)
def test_spread_scales_the_interval(d: list[float], factor: float, rule: PairRule) -> None:
    assume(has_spread(d))
    one, scaled = log_interval(d, rule), log_interval([factor * x for x in d], rule)
    assert scaled.high - scaled.mean == pytest.approx(factor * (one.high - one.mean))


@given(log_ratios, st.randoms(use_true_random=False), rules)
def test_the_order_of_executions_matters_only_where_neighbors_are_alike(
    d: list[float], random: object, rule: PairRule
) -> None:
    shuffled = list(d)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = log_interval(d, rule), log_interval(shuffled, rule)
    sequential = rule.rule is Rule.SEQUENTIAL
    widths = [
        (each.high - each.low) / (float(widening(values)) if sequential else 1)
        for each, values in ((one, d), (other, shuffled))
    ]
    assert widths[0] == pytest.approx(widths[1])
    assert one.mean == pytest.approx(other.mean)


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=30))
def test_looking_often_costs_width(d: list[float]) -> None:
    t, sequential = log_interval(d, T), log_interval(d, PairRule())
    assert sequential.low <= t.low <= t.high <= sequential.high
