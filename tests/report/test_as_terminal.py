from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import report_data as data
from ensign.model.finding_kinds.ran import VISIBLE_DIFFERENCES
from ensign.model.results import FunctionCost, Result, SuiteComparison
from ensign.report import as_terminal
from ensign.report.terminal_page import Screen

STUDIES = (data.study, data.huge_study, data.extreme_study, data.empty_study)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("make", STUDIES)
def test_nothing_is_wider_than_the_screen(make: Callable[[], Result], width: int) -> None:
    text = as_terminal.render(make(), Screen(width), every_workload=True, details=True)
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize("width", [60, 120])
def test_piped_text_has_no_escapes_and_ascii_is_ascii(width: int) -> None:
    for text in (
        as_terminal.render(data.compared_several(), Screen(width, unicode=False), details=True),
        as_terminal.render(data.huge_study(), Screen(width, unicode=False), details=True),
    ):
        assert "\x1b" not in text
        assert text.isascii()


def test_color_adds_escapes_and_no_words() -> None:
    plain = as_terminal.render(data.compared(), Screen(100), details=True)
    colored = as_terminal.render(data.compared(), Screen(100, color=True), details=True)
    assert "\x1b[" in colored
    assert "\x1b" not in plain
    assert colored.count("unclear") == plain.count("unclear")


def test_hostile_names_do_not_reach_the_terminal() -> None:
    text = as_terminal.render(data.extreme_study(), Screen(100), details=True)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_every_workload_lists_every_variant() -> None:
    result = data.study()
    brief = as_terminal.render(result, Screen(120), details=True)
    long = as_terminal.render(result, Screen(120), every_workload=True, details=True)
    assert "5 more variants in the HTML" in brief
    for name in data.TRUTH:
        assert f"{name}, by workload" in long


@pytest.mark.parametrize("width", [60, 100])
def test_the_compare_table_has_what_was_asked_for(width: int) -> None:
    text = as_terminal.render(data.compared(), Screen(width), details=True)
    for part in ("95 % interval", "speedup", "user", "system", "memory", "twin",
                 "outputs-differ", "slices of 5 ms", "5 executions", "control group"):  # fmt: skip
        assert part in " ".join(text.split())


def test_several_variants_say_what_the_level_covers() -> None:
    several = " ".join(as_terminal.render(data.compared_several(), details=True).split())
    assert "not all of them at once" in several
    assert "not all of them at once" not in as_terminal.render(data.compared(), details=True)


@pytest.mark.parametrize("details", [False, True])
def test_a_row_of_long_names_is_one_line_and_names_stay_apart(*, details: bool) -> None:
    names = [f"{'a-long-beginning-of-it-' * 3}{index}" for index in range(12)]
    rows = data.compared_rows(
        *(data.comparison(name, -0.03, 0.004, margin=None, baseline="old") for name in names)
    )
    measured = tuple(data.variant(name) for name in ("old", *names))
    result = data.compared(suite=rows, measured=measured, twin="", commands=())
    page = as_terminal.render(result, details=details)
    shown = [line.split()[0] for line in page.splitlines() if "+2.6 to +3.5 %" in line]
    assert len(set(shown)) == (12 if details else 10)
    assert all("…" in name for name in shown)
    assert all(len(line) <= 80 for line in page.splitlines())


def test_commands_on_several_workloads_have_their_claim_on_a_wide_page() -> None:
    row = data.comparison("new", -0.03, 0.004, baseline="old")
    result = data.compared(
        suite=(SuiteComparison(row, 2, non_inferior=True),), margin=data.MARGIN, twin="",
        workload_names=("a", "b"),
    )  # fmt: skip
    page = as_terminal.render(result, Screen(120))
    assert [line for line in page.splitlines() if line.startswith("new ") and "shown" in line]


def test_a_brief_table_of_functions_has_the_others_as_one_row() -> None:
    rows = tuple(
        FunctionCost(f"part_{n}", "", 1e6, 2e6, 0.05 - n / 1000, 0.02, 0.07) for n in range(12)
    )
    total = FunctionCost("", "", 20e6, 30e6, 0.5, 0.4, 0.6)
    base = data.explained()
    costs = replace(base.functions[1], total=total, by_symbol=rows, by_source=())
    text = as_terminal.render(replace(base, functions=(costs,)))
    assert "part_7" in text
    assert "part_8" not in text
    assert "4 others" in text


def test_of_many_workloads_functions_of_those_that_differ_most_are_told() -> None:
    rows = (FunctionCost("part", "", 1e6, 2e6, 0.05, 0.02, 0.07),)
    base = data.explained()
    many = tuple(
        replace(
            base.functions[1], workload=f"w{n}", by_symbol=rows,
            total=FunctionCost("", "", 20e6, 30e6, size := 0.5 - n / 100, size - 0.1, size + 0.1),
        )
        for n in range(6)
    )  # fmt: skip
    result = replace(base, functions=many, workload_names=tuple(each.workload for each in many))
    text = as_terminal.render(result)
    assert [f"w{n}:" in text for n in range(6)] == [True] * 3 + [False] * 3
    assert "3 more workloads, by function: --details" in text
    assert "w5:" in as_terminal.render(result, details=True)


def test_how_files_differ_stands_beside_their_functions() -> None:
    text = "what visibly differs from old: new (m.c compiled with -O3, without -O2)"
    finding = VISIBLE_DIFFERENCES.found(text, "new")
    told = replace(data.explained(), findings=(finding,))
    assert f"new: {text}." in " ".join(as_terminal.render(told).split())
    assert "visibly" not in as_terminal.render(replace(told, functions=()))
