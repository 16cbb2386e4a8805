from __future__ import annotations

from dataclasses import replace

from ensign.model.expectation import Expectation, PlannedVariant, Work
from ensign.report.as_plan import before_run, plan

_WORK = (
    Work("builds", 3, 5, 90.0, 100 * 2**20, "measured"),
    Work("relinks", 16, 0, 32.0, 80 * 2**20, "guess"),
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
        "relinks     16      0        32 s   80.0 MiB  a guess",
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


def test_a_guess_is_a_range_and_so_is_the_sum() -> None:
    work = (
        Work("builds", 4, 0, 12.0, 0, "guess", 3.0),
        Work("trials", None, 0, 60.0, 0, "budget"),
    )
    expected = Expectation("small", "", (), (("run", "program"),), work, None, ())
    text = plan(expected, 80)
    assert "4 s to 36 s" in text
    assert "1 min 04 s to 1 min 36 s" in text
    assert "as many rounds as the budget holds" in text
    assert "fitting" in text
    said = before_run(expected)
    assert said.startswith("expected: builds 4 s to 36 s (a guess); trials 1 min 00 s (the budget)")
    assert before_run(replace(expected, work=())) == "expected: everything is there already"
