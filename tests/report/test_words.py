from __future__ import annotations

import math

import pytest

from ensign.model.comparisons import Comparison, Direction, Size
from ensign.model.trials import Metric, Mode
from ensign.report import words
from report_data import comparison, unbounded


def between(low: float, high: float, *, margin: float | None = 0.01) -> Comparison:
    """A comparison whose speedup interval is `low` to `high`."""
    ends = (math.log(1 / (1 + high)), math.log(1 / (1 + low)))
    return comparison("new", sum(ends) / 2, (ends[1] - ends[0]) / 2, margin=margin, baseline="old")


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.039, 0.046, "new is 4.2 % faster by CPU time, between 3.9 and 4.6 % (95 %)"),
        (-0.016, -0.012, "new needs 1.4 % more CPU time, between 1.2 and 1.6 % (95 %)"),
        (-0.012, 0.004, "new is unclear: between 1.2 % slower and 0.4 % faster by CPU time (95 %)"),
        (
            -0.004,
            0.003,
            "new is within 1 % of the baseline by CPU time: "  # noqa: ISC004
            "between 0.4 % slower and 0.3 % faster (95 %)",
        ),
        (
            -0.006,
            -0.002,
            "new needs 0.4 % more CPU time, between 0.2 and 0.6 % (95 %), "  # noqa: ISC004
            "within the 1 % margin",
        ),
        (1.2, 1.4, "new is 2.3 times as fast by CPU time, between 2.2 and 2.4 times (95 %)"),
        (-0.76, -0.74, "new needs 4 times the CPU time, between 3.85 and 4.17 times (95 %)"),
    ],
)
def test_a_sentence_says_what_is_shown_with_its_interval(
    low: float, high: float, said: str
) -> None:
    assert words.sentence(between(low, high), 0.01) == said


def test_the_baseline_is_named_on_demand() -> None:
    said = words.sentence(between(0.039, 0.046), None, against=True)
    assert said.startswith("new is 4.2 % faster than old by CPU time, between")
    alike = words.sentence(between(-0.002, 0.003), 0.01, against=True)
    assert alike.startswith("new is within 1 % of old by CPU time: between")


def test_metric_and_mode_are_named() -> None:
    """More time is r − 1, faster and slower are speedups: 43 % more is a speedup of −30 %."""
    more = comparison("new", math.log(1.43), 0.01, margin=None, baseline="old")
    said = words.sentence(more, None, against=True, mode=Mode.INTERLEAVED)
    assert said == (
        "new needs 43.0 % more CPU time than old, between 41.6 and 44.4 % (95 %, interleaved)"
    )
    assert words.speedup_cell(more) == "−30.1 %"
    wall = comparison("new", math.log(1.12), 0.01, margin=None, metric=Metric.WALL, baseline="old")
    said = words.sentence(wall, None, against=True, mode=Mode.ALTERNATING)
    assert (
        said
        == "new takes 12.0 % longer than old (wall), between 10.9 and 13.1 % (95 %, alternating)"
    )
    long = comparison("new", math.log(3.4), 0.01, margin=None, metric=Metric.WALL, baseline="old")
    assert words.sentence(long, None, against=True, mode=Mode.DRIVEN) == (
        "new takes 3.4 times as long as old (wall), between 3.37 and 3.43 times (95 %, driven)"
    )


def test_what_is_withheld_says_why_and_shows_no_figure() -> None:
    entry = between(0.039, 0.046).without_claim("it runs for a fixed time; give --operations")
    said = words.sentence(entry, 0.01, against=True)
    assert said == (
        "No verdict on new against old (withheld): it runs for a fixed time; give --operations"
    )
    cells = {words.interval_cell(entry), words.speedup_cell(entry), words.statement(entry, 0.01)}
    assert cells == {"withheld"}
    assert words.size_cell(entry) == "unclear"
    assert entry.direction is Direction.UNCLEAR


def test_without_an_interval_there_is_no_percentage() -> None:
    entry = unbounded("new", 2)
    assert words.sentence(entry, 0.01) == "new is unclear: 2 executions are too few for an interval"
    assert words.interval_cell(entry) == "no interval yet"
    assert words.speedup_cell(entry) == "unclear"


def test_where_no_difference_is_shown_the_estimate_is_withheld() -> None:
    entry = between(-0.012, 0.004)
    assert words.speedup_cell(entry) == "unclear"
    assert words.interval_cell(entry) == "−1.2 to +0.4 %"


@pytest.mark.parametrize(
    ("low", "high", "cell"),
    [
        (0.039, 0.046, "+3.9 to +4.6 %"),
        (0.0004, 0.006, "+0.04 to +0.60 %"),
        (0.0411, 0.0415, "+4.11 to +4.15 %"),
        (0.5, 0.9, "+50 to +90 %"),
    ],
)
def test_decimals_follow_the_width_and_never_hide_a_clear_bound(
    low: float, high: float, cell: str
) -> None:
    assert words.interval_cell(between(low, high)) == cell


def test_an_interval_open_on_one_side_says_so() -> None:
    entry = Comparison(
        "new", "old", Metric.CPU, 0.9, 0.0, 0.95, 0.95, Direction.FASTER, Size.BEYOND, 5
    )
    assert words.interval_cell(entry) == "above +5.3 %"
    assert "at least 5.3 %" in words.sentence(entry, None)


@pytest.mark.parametrize(
    ("low", "high", "margin", "said"),
    [
        (0.039, 0.046, 0.01, "faster, by more than 1 %"),
        (0.002, 0.006, 0.01, "faster, by less than 1 %"),
        (0.005, 0.02, 0.01, "faster"),
        (-0.003, 0.002, 0.005, "within 0.5 %"),
        (-0.03, 0.02, 0.01, "unclear"),
        (-0.003, 0.002, None, "unclear"),
    ],
)
def test_direction_and_size_are_two_statements(
    low: float, high: float, margin: float | None, said: str
) -> None:
    assert words.statement(between(low, high, margin=margin), margin) == said


def test_names_cannot_steer_the_terminal() -> None:
    assert words.clean("a\x1b[31mb\u202ec\nd") == r"a\x1b[31mb\u202ec d"
    assert words.clean_block("a\x07\nb") == "a\\x07\nb"


def test_lists_are_cut_with_a_count() -> None:
    assert words.listed(()) == ""
    assert words.listed(("a",)) == "a"
    assert words.listed(("a", "b", "c")) == "a, b and c"
    assert words.listed(tuple("abcdefgh"), 3) == "a, b and 6 more"
