"""Where the time goes, as a table, and what was found to bound it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import report_data as data
from ensign.model.comparisons import TimeShares
from ensign.model.finding_kinds.race import LINK_SATURATED, MOSTLY_SYSTEM, MOSTLY_WAITING
from ensign.model.findings import Finding
from ensign.model.results import Result
from ensign.report import as_html, as_terminal
from ensign.report.bounds import bound_table
from ensign.report.terminal_page import Screen


def cells(result: Result) -> dict[str, dict[str, str]]:
    table = bound_table(result)
    return {row[0]: dict(zip(table.columns[1:], row[1:], strict=True)) for row in table.rows}


def raced(*workloads: tuple[str, TimeShares], findings: tuple[Finding, ...] = ()) -> Result:
    """A study of a baseline and a variant with these shares."""
    facts = [
        replace(data.variant(name), workload=workload, shares=shares)
        for workload, shares in workloads
        for name in (data.study().baseline, "other")
    ]
    return replace(data.study(), measured=tuple(facts), findings=findings)


def test_shares_are_of_the_wall_time_and_the_findings_name_the_bound() -> None:
    found = (
        MOSTLY_SYSTEM.found("…", "big"),
        LINK_SATURATED.found("…", "big"),
        MOSTLY_WAITING.found("…", "slow"),
        MOSTLY_SYSTEM.found("…", "kernel"),
    )
    busy = TimeShares(1.8, 0.25, load=0.4, taken=0.1)
    result = raced(
        ("big", TimeShares(0.4, 0.9)),
        ("slow", TimeShares(0.05, 0.5)),
        ("kernel", TimeShares(1.0, 0.8)),
        ("busy", busy),
        ("mixed", TimeShares(0.6, 0.5)),
        findings=found,
    )
    told = cells(result)
    assert {name: row["bound by"] for name, row in told.items()} == {
        "big": "link",
        "slow": "waiting",
        "kernel": "kernel",
        "busy": "own code",
        "mixed": "",
    }
    assert list(told["busy"].values())[:5] == ["135 %", "45 %", "0 %", "10 %", "40 %"]
    assert list(told["big"].values())[:5] == ["4 %", "36 %", "60 %", "", ""]


def test_tests_of_one_execution_are_one_row() -> None:
    shares = TimeShares(0.9, 0.1)
    assert list(cells(raced(("run/messages", shares), ("run/megabits", shares)))) == ["run"]


def test_commands_have_a_row_each() -> None:
    assert list(cells(data.compared())) == ["old", "new", "twin"]


@pytest.mark.parametrize("result", [data.compared(), raced(("w", TimeShares(0.9, 0.1)))])
def test_the_table_is_in_the_page_and_among_the_details(result: Result) -> None:
    page = as_html.render(result)
    assert page.count("<h2>What bounds it</h2>") == 1
    assert 'href="#bounds"' in page
    details = as_terminal.render(result, Screen(120), details=True)
    assert "What bounds it" in details
    assert "What bounds it" not in as_terminal.render(result, Screen(120))
