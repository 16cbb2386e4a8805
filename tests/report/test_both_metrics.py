from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.model.comparisons import Comparison, OtherMetric, TimeShares
from ensign.model.trials import Metric
from ensign.report.both_metrics import both_said, other_cell, why_they_disagree
from report_data import comparison


def disagreeing(wall: float, baseline: TimeShares, variant: TimeShares) -> Comparison:
    """5.7 % faster by CPU time, `wall` (a log ratio) by wall time."""
    other = comparison("new", wall, 0.004, metric=Metric.WALL)
    beside = OtherMetric(other, disagrees=True, baseline=baseline, variant=variant)
    return replace(comparison("new", -0.055, 0.004), beside=beside)


@pytest.mark.parametrize(
    ("wall", "shares", "said", "why"),
    [
        (
            0.0,
            (TimeShares(0.62, 0.3, load=0.99), TimeShares(0.58, 0.3, load=0.99)),
            ", but about equal by wall time",
            "the load generator set the pace (99 % busy, the servers 62 and 58 %)",
        ),
        (
            0.03,
            (TimeShares(0.5, 0.6), TimeShares(0.4, 0.7)),
            ", but takes 3.0 % longer (wall)",
            (
                "50 and 60 % of the wall time passed waiting, "
                "and 60 and 70 % of the CPU time is the kernel's"
            ),
        ),
        (
            -0.01,
            (TimeShares(1.9, 0.1), TimeShares(3.8, 0.1)),
            ", but is only 1.0 % faster by wall time",
            "1.9 and 3.8 CPUs were busy on average",
        ),
        (
            0.0,
            (TimeShares(0.9, 0.1, taken=0.05), TimeShares(0.6, 0.1, taken=0.38)),
            ", but about equal by wall time",
            "other processes used the CPU for 5 and 38 % of the wall time",
        ),
        (-0.03, (TimeShares(0.99, 0.7), TimeShares(0.97, 0.5)), ", and is 3.0 % faster by", ""),
    ],
)
def test_where_both_costs_disagree_both_are_said_and_why(
    wall: float, shares: tuple[TimeShares, TimeShares], said: str, why: str
) -> None:
    found = disagreeing(wall, *shares)
    assert both_said(found).startswith(said)
    assert why in why_they_disagree(found)
    assert bool(why) is bool(why_they_disagree(found))


def test_where_they_agree_only_the_table_has_the_other() -> None:
    agreeing = comparison("new", -0.055, 0.004)
    assert both_said(agreeing) == ""
    assert other_cell(agreeing) == "+4.4 to +5.7 %"
    withheld = agreeing.without_claim("it runs for a fixed time")
    assert (both_said(withheld), other_cell(withheld)) == ("", "withheld")
