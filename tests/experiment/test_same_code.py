"""Differences between files of the same code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.experiment.compare.functions import same_code_findings
from ensign.model.finding_kinds.ran import SAME_CODE
from ensign.model.results import FunctionCost, FunctionCosts

TOTAL = FunctionCost("", "", 100.0, 110.0, 0.1, 0.08, 0.12)
SAME = FunctionCost("work", "", 50.0, 59.0, 0.09, 0.07, 0.11, same_code=True)
OTHER = FunctionCost("rest", "", 50.0, 51.0, 0.01, 0.0, 0.02)
COSTS = FunctionCosts("new", "w", 0.95, (900, 900), TOTAL, (SAME, OTHER))


def test_a_difference_in_the_same_code_is_told() -> None:
    (finding,) = same_code_findings([COSTS])
    assert finding.is_a(SAME_CODE)
    assert finding.subject == "new"
    assert finding.text.startswith("90 % of the difference on w lies in functions with the same")
    assert "(work)" in finding.text


def test_a_loop_that_lies_elsewhere_is_told_by_its_places() -> None:
    row = replace(SAME, loop_starts=(0, 52))
    (finding,) = same_code_findings([replace(COSTS, by_symbol=(row, OTHER))])
    assert "(work, whose loop begins at 52 modulo 64 instead of 0)" in finding.text


@pytest.mark.parametrize(
    "costs",
    [
        replace(COSTS, by_symbol=(replace(SAME, same_code=False), OTHER)),
        replace(COSTS, by_symbol=(replace(SAME, difference=0.05), OTHER)),
        replace(COSTS, by_symbol=(replace(SAME, low=-0.01), OTHER)),
        replace(COSTS, total=replace(TOTAL, low=-0.01)),
        replace(COSTS, total=None),
    ],
)
def test_other_differences_are_not(costs: FunctionCosts) -> None:
    assert not list(same_code_findings([costs]))
