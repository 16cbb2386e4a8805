from __future__ import annotations

from dataclasses import replace

from ensign.model.expectation import Expectation, PlannedVariant, Work
from ensign.report.as_plan import before_run, plan

_WORK = (
    Work("builds", 3, 5, 90.0, 100 * 2**20, "measured"),
    Work("relinks", 16, 0, 32.0, 80 * 2**20, "alike"),
    Work("checks", 0, 4, 0.0, 0, "measured"),
    Work("trials", 30, 0, 300.0, 0, "budget"),
)


def planned(*work: Work) -> str:
    variant = PlannedVariant("gcc-12-O2", "gcc 12.2", ("-O2",), (), is_baseline=True)
    return plan(
        Expectation("small", "", (variant,), (("run", "program"),), work, 10, (("meter", (1,)),)),
        width=60,
    )


def test_each_kind_of_work_has_its_time_its_disk_and_what_they_rest_on() -> None:
    table = planned(*_WORK).split("Expected:\n")[1].split("\n\n")[0]
    assert table.splitlines() == [
        "         to do  there        time       disk",
        "builds       3      5  1 min 30 s  100.0 MiB  as before",
        "relinks     16      0        32 s   80.0 MiB  as the others",
        "checks       0      4",
        "trials      30      0  5 min 00 s             the budget",
        "in all                 7 min 02 s  180.0 MiB",
    ]


def test_lines_fit_the_width() -> None:
    assert max(map(len, planned(*_WORK).splitlines())) <= 60


def test_a_confirmation_is_announced() -> None:
    expected = Expectation("s", "", (), (), (), 7, (), confirming=(3, 16))
    assert "at most 3) are built afresh and confirmed in 16 rounds" in plan(expected, 200)
    assert "confirmed" not in planned(*_WORK)


def test_what_no_earlier_work_says_is_left_open() -> None:
    work = (
        Work("builds", 4, 0, None, None, "unknown"),
        Work("checks", 4, 0, 8.0, 2**20, "measured"),
        Work("trials", None, 0, 60.0, 0, "budget"),
    )
    expected = Expectation("small", "", (), (("run", "program"),), work, None, ())
    text = plan(expected, 80)
    table = text.split("Expected:\n")[1].split("\n\n")[0]
    assert table.splitlines() == [
        "          to do  there            time         disk",
        "builds        4      0               ?            ?  not known yet",
        "checks        4      0             8 s      1.0 MiB  as before",
        "trials  fitting      0      1 min 00 s               the budget",
        "in all                  1 min 08 s + ?  1.0 MiB + ?",
    ]
    assert "as many rounds as the budget holds" in text
    assert before_run(expected) == (
        "expected: 4 builds (how long is not known yet); checks 8 s (as before); "
        "trials 1 min 00 s (the budget)"
    )
    known = replace(expected, work=work[1:])
    assert before_run(known).endswith("trials 1 min 00 s (the budget); in all 1 min 08 s")
    assert before_run(replace(expected, work=())) == "expected: everything is there already"


def test_the_workloads_of_a_parameter_are_said_once() -> None:
    names = ("get", "fill-1", "fill-64", "set")
    workloads = tuple((name, f"run {name}") for name in names)
    expected = Expectation("s", "", (), workloads, (), 7, (), curves=(("fill-1", "fill-64"),))
    lines = plan(expected, 80).splitlines()
    assert [line for line in lines if ": run" in line] == [
        "  get: run get",
        "  fill-1 … fill-64 (2 values): run fill-1",
        "  set: run set",
    ]
