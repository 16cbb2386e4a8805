import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ensign.experiment.judge import judge
from ensign.experiment.loop import SoFar
from ensign.experiment.record import Record
from ensign.meter.client import Json
from ensign.meter.records import TrialPlace, trials
from ensign.model.comparisons import Direction, Size
from ensign.model.experiment import Experiment
from ensign.model.findings import Finding, Severity
from ensign.model.results import MachineFacts, Result, Stopped
from ensign.model.trials import Metric, Trial
from races import execution

START = {"type": "start", "schema": 1, "freezer": "cgroup", "mode": "interleaved"}


def raced(*costs: tuple[int, int, int]) -> list[Trial]:
    records: list[Json] = [START]
    for number, (baseline, other, twin) in enumerate(costs):
        records += execution(number, {"old": baseline, "new": other, "twin": twin})
    return list(trials(records, TrialPlace("", 0, 0, 5)))


RULE = Experiment(
    "compare", "", "", ("",), Metric.CPU, 0.95, None, sequential=True, by_ranks=True
)  # fmt: skip
RECORD = Record(
    "", ("old", "new"), 0, (), MachineFacts(()), (), (), (), (), "0", "now", complete=True
)


def result(trials: Sequence[Trial], doubt: str = "", **rule: Any) -> Result:
    experiment = replace(RULE, **rule)
    return judge(experiment, replace(RECORD, doubt=doubt), trials).result


def codes(trials: Sequence[Trial], **rule: Any) -> set[str]:
    return {finding.code for finding in result(trials, **rule).findings}


# The other variant costs 10 % more, give or take 0.1 %; the twin is the baseline give or take 0.1
# %.
CLEAR = [(10_000, 11_000 + 10 * (n % 3), 10_000 + 10 * (n % 2)) for n in range(10)]


def test_a_clear_difference_is_stated_as_a_cost_ratio() -> None:
    (row,) = result(raced(*CLEAR), margin=0.01).comparisons
    assert row.ratio == pytest.approx(1.1004, abs=1e-3)
    assert row.low < row.ratio < row.high
    assert (row.direction, row.size) == (Direction.SLOWER, Size.BEYOND)
    assert (row.variant, row.baseline, row.executions) == ("new", "old", 10)


def may_end(trials: Sequence[Trial], margin: float | None) -> Stopped | None:
    return SoFar(replace(RULE, margin=margin), ("old", "new")).may_end(trials)


def test_the_race_ends_when_every_pair_is_settled() -> None:
    assert may_end(raced(*CLEAR), 0.01) is Stopped.DECIDED
    assert may_end(raced(*CLEAR), None) is None
    assert may_end(raced(*CLEAR[:9]), 0.01) is None


def test_a_twin_that_differs_is_a_finding() -> None:
    assert "twin-differs" not in codes(raced(*CLEAR))
    costs = [(10_000 + n % 2, 10_000, 12_000 + n % 3) for n in range(10)]
    assert "twin-differs" in codes(raced(*costs))


def test_doubts_of_trials_are_told_once_under_the_commands_name() -> None:
    doubt = Finding("escape", Severity.WARNING, "a process left", "new")
    doubtful = [replace(trial, findings=(doubt,)) for trial in raced(*CLEAR)]
    found = [f for f in result(doubtful).findings if f.code == "escape"]
    assert [finding.subject for finding in found] == ["new"]


def test_a_race_that_ended_before_its_first_look_has_an_ordinary_interval() -> None:
    few = raced(*CLEAR[:4])
    (unknown,) = SoFar(RULE, ("old", "new")).comparisons(few)
    (known,) = result(few).comparisons
    assert math.isinf(unknown.high) or unknown.high > known.high
    assert (known.rule, known.direction) == ("t", Direction.SLOWER)
    assert result(raced(*CLEAR[:5])).comparisons[0].rule == "sequential"


def test_what_a_few_executions_decide_is_not_called_faster_in_one_line_and_chance_in_another() -> (
    None
):
    """By the interval 10 executions differ, by their ranks it may be chance: nothing is claimed."""
    costs = [
        (10_000, 10_000 + more, 10_000) for more in (60, -20, 70, -25, 80, 30, 90, -30, 60, 40)
    ]
    said = result(raced(*costs), sequential=False)
    (row,) = said.comparisons
    assert row.low > 1
    assert row.direction is Direction.UNCLEAR
    assert "by the ranks of 10 executions that may be chance" in row.withheld
    assert "few-executions-decide" in {finding.code for finding in said.findings}


def test_what_nobody_looked_at_before_the_race_is_not_claimed_after_it() -> None:
    (row,) = result(raced(*CLEAR), "nobody saw its clock", margin=0.01).comparisons
    assert row.withheld == "nobody saw its clock"
    assert (row.direction, row.size) == (Direction.UNCLEAR, Size.UNCLEAR)
    assert row.ratio == pytest.approx(1.1004, abs=1e-3)
