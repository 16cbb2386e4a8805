from __future__ import annotations

from collections.abc import Callable

import pytest

import report_data as data
from ensign.model.results import StudyResult
from ensign.report import as_terminal
from ensign.report.as_terminal import Screen

STUDIES = (data.study, data.huge_study, data.extreme_study, data.empty_study)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("make", STUDIES)
def test_nothing_is_wider_than_the_screen(make: Callable[[], StudyResult], width: int) -> None:
    text = as_terminal.study(make(), Screen(width), every_workload=True)
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [60, 120])
def test_piped_text_has_no_escapes_and_ascii_is_ascii(width: int) -> None:
    for text in (
        as_terminal.compare(data.compared_several(), Screen(width, unicode=False)),
        as_terminal.study(data.huge_study(), Screen(width, unicode=False)),
    ):
        assert "\x1b" not in text
        assert text.isascii()


def test_colour_adds_escapes_and_no_words() -> None:
    plain = as_terminal.compare(data.compared(), Screen(100))
    coloured = as_terminal.compare(data.compared(), Screen(100, colour=True))
    assert "\x1b[" in coloured
    assert "\x1b" not in plain
    assert coloured.count("unclear") == plain.count("unclear")


def test_hostile_names_do_not_reach_the_terminal() -> None:
    text = as_terminal.study(data.extreme_study(), Screen(100))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_every_workload_lists_every_variant() -> None:
    result = data.study()
    brief = as_terminal.study(result, Screen(120))
    long = as_terminal.study(result, Screen(120), every_workload=True)
    assert "5 more variants in the HTML" in brief
    for name in data.TRUTH:
        assert f"{name}, by workload" in long


@pytest.mark.parametrize("width", [60, 100])
def test_the_compare_table_has_what_was_asked_for(width: int) -> None:
    text = as_terminal.compare(data.compared(), Screen(width))
    for part in ("95 % interval", "speedup", "user", "system", "peak memory", "old (twin)",
                 "outputs-differ", "slices of 5 ms", "5 executions", "control group"):  # fmt: skip
        assert part in " ".join(text.split())


def test_several_variants_say_what_the_level_covers() -> None:
    several = " ".join(as_terminal.compare(data.compared_several()).split())
    assert "not all of them at once" in several
    assert "not all of them at once" not in as_terminal.compare(data.compared())
