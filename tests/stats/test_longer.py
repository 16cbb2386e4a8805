"""Races as long as is said find the difference as often as is said."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ensign.model.comparisons import Direction
from ensign.model.trials import Metric
from ensign.stats.expected import longer_race
from ensign.stats.pair import PairNames, PairRule, Rule, compare

RULE = PairRule(rule=Rule.T)
NAMES = PairNames("new", "old", Metric.CPU)


@pytest.mark.parametrize(("executions", "spread"), [(5, 0.06), (12, 0.1), (40, 0.2)])
def test_a_race_as_long_as_is_said_finds_five_percent_in_four_of_five(
    executions: int, spread: float
) -> None:
    random = np.random.default_rng(executions)
    found = raced = 0
    while raced < 500:
        first = compare(NAMES, list(random.normal(0, spread, executions)), RULE)
        longer = longer_race([first], None)
        if longer is None or longer.difference != 0.05:
            continue
        raced += 1
        count = math.ceil(longer.times * executions)
        second = compare(NAMES, list(random.normal(math.log(1.05), spread, count)), RULE)
        found += second.direction is Direction.SLOWER
    assert 0.72 <= found / raced <= 0.92


def test_what_is_decided_or_would_be_found_needs_no_longer_race() -> None:
    slower = compare(NAMES, [0.1, 0.11, 0.09, 0.1], RULE)
    assert longer_race([slower], None) is None
    narrow = compare(NAMES, [0.001, -0.001, 0.0005, -0.0005] * 10, RULE)
    assert longer_race([narrow], 0.05) is None
    withheld = slower.without_claim("nobody knows")
    assert longer_race([withheld], None) is None


def test_the_margin_is_what_is_to_be_found() -> None:
    wide = compare(NAMES, [0.1, -0.1, 0.05, -0.05], RULE)
    asked = longer_race([wide], 0.01)
    assert asked is not None
    assert asked.difference == 0.01
    usual = longer_race([wide], None)
    assert usual is not None
    assert usual.difference == 0.05
    assert usual.times < asked.times / 20


def test_of_many_pairs_at_once_each_finds_as_often_as_is_said() -> None:
    """Eight pairs are judged together, so each interval is of a higher level."""
    random = np.random.default_rng(8)
    rule = PairRule(rule=Rule.T, level=1 - 0.05 / 8)
    found = 0
    for _ in range(500):
        longer = None
        while longer is None or longer.difference != 0.05:
            first = compare(NAMES, list(random.normal(0, 0.1, 12)), rule)
            longer = longer_race([first], None)
        count = math.ceil(longer.times * 12)
        second = compare(NAMES, list(random.normal(math.log(1.05), 0.1, count)), rule)
        found += second.direction is Direction.SLOWER
    assert 0.6 <= found / 500 <= 0.92
