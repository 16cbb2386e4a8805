"""Who wins where the mean decides, and where the worst of layouts does."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

import report_data as data
from ensign.model.results import LayoutFacts, Result, WorstLayout
from ensign.stats.winner import able, winner

BASELINE, FAST, STEADY = "gcc-12-O2", "gcc-12-O3", "gcc-12-O3-align-loops"


def raced(prefer: Literal["mean", "robust"], **worst: float) -> Result:
    """FAST has the better mean; `worst` are cost ratios of the worst layouts."""
    names = {"baseline": BASELINE, "fast": FAST, "steady": STEADY}
    rows = tuple(WorstLayout(names[name], ratio) for name, ratio in worst.items())
    result = data.study({FAST: 0.92, STEADY: 0.95, "gcc-11-Os": 1.08}, findings=())
    layouts = LayoutFacts(12, "object order", worst=rows)
    return replace(result, prefer=prefer, layouts=layouts)


def won(result: Result) -> str:
    best = winner(result)
    return "" if best is None else best.comparison.variant


@pytest.mark.parametrize(
    ("worst", "wins"),
    [
        ({"baseline": 1.05, "fast": 1.01, "steady": 0.96}, STEADY),
        ({"baseline": 1.05, "fast": 0.95, "steady": 0.96}, FAST),
        # The baseline is better at its worst than either.
        ({"baseline": 1.01, "fast": 1.03, "steady": 1.02}, ""),
        # What was raced as one binary has no worst layout that is known.
        ({"baseline": 1.05, "fast": 1.01}, FAST),
        ({"baseline": 1.05}, ""),
        ({}, ""),
    ],
)
def test_the_best_at_its_worst_wins_where_robust_builds_are_preferred(
    worst: dict[str, float], wins: str
) -> None:
    assert won(raced("robust", **worst)) == wins
    assert won(raced("mean", **worst)) == FAST


def test_what_is_not_shown_to_be_faster_does_not_win_by_a_good_worst_layout() -> None:
    worst = WorstLayout("gcc-11-Os", 0.5)
    result = raced("robust", baseline=1.05, fast=1.01, steady=0.96)
    layouts = result.layouts
    assert layouts is not None
    result = replace(result, layouts=replace(layouts, worst=(*layouts.worst, worst)))
    assert [each.comparison.variant for each in able(result)] == ["gcc-11-Os", STEADY, FAST]
    assert won(result) == STEADY
