from __future__ import annotations

import math

import pytest

from ensign.report import terminal_page
from ensign.report.words import Span

ROWS = [
    ("faster", Span(0.02, 0.04, 0.03)),
    ("slower", Span(-0.03, -0.01, -0.02)),
    ("unclear", Span(-0.01, 0.01, 0.0)),
    ("unbounded", Span(-1.0, math.inf, 0.0)),
]


def test_intervals_lie_on_their_side_of_zero() -> None:
    axis, faster, slower, unclear, unbounded = terminal_page.interval_plot(ROWS, 60)
    zero = faster.index("│")
    assert axis[zero] == "0"
    assert faster.index("├") > zero
    assert slower.index("┤") < zero
    assert slower[zero] == "│"
    assert unclear.index("├") < zero < unclear.index("┤")
    assert unclear[zero] == "●"
    assert "◄" in unbounded
    assert "●" not in unbounded


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    rows = [*ROWS, ("n" * 150, Span(-0.5, 4.0, 1.0))]
    lines = terminal_page.interval_plot(rows, width)
    assert max(map(len, lines)) <= width
    assert len(lines) == len(rows) + 1


def test_ascii_is_ascii() -> None:
    text = "\n".join(terminal_page.interval_plot(ROWS, 60, terminal_page.ASCII))
    assert "|" in text
    assert "o" in text
    assert not set("├┤●─│┼") & set(text)


def test_the_axis_holds_every_bound_and_has_round_ticks() -> None:
    low, high = terminal_page.axis_range([span for _, span in ROWS])
    assert low <= -0.03
    assert high >= 0.04
    ticks = terminal_page.Axis(low, high, 50).ticks(7)
    assert 0 in ticks
    assert all(math.isclose(tick * 100, round(tick * 100), abs_tol=1e-9) for tick in ticks)


def test_nothing_to_draw_is_no_line() -> None:
    assert terminal_page.interval_plot([], 80) == []
    assert terminal_page.axis_range([]) == (-0.01, 0.01)


def test_a_long_name_keeps_both_its_ends() -> None:
    assert terminal_page.shortened("clang-19-O3-lto-dependencies", 11) == "clang…ncies"
    assert terminal_page.shortened("short", 11) == "short"
