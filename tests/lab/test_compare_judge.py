import math
from dataclasses import replace

import pytest

from ensign.lab.compare.judge import Judge
from ensign.lab.compare.options import Options, command_variants
from ensign.meter.client import Json
from ensign.meter.records import TrialPlace, trials
from ensign.model.comparisons import Direction, Size
from ensign.model.findings import Finding, Severity
from ensign.model.results import Stopped
from ensign.model.trials import Metric, Trial
from ensign.stats.pair import PairRule, Rule
from races import execution

START = {"type": "start", "schema": 1, "freezer": "cgroup", "mode": "interleaved"}


def raced(*costs: tuple[int, int, int]) -> list[Trial]:
    records: list[Json] = [START]
    for number, (baseline, other, twin) in enumerate(costs):
        records += execution(number, {"1": baseline, "2": other, "twin": twin})
    return list(trials(records, TrialPlace("", 0, 0, 5)))


def a_judge(rule: PairRule) -> Judge:
    return Judge(command_variants(Options(commands=("old", "new"))), Metric.CPU, rule)


# The other variant costs 10 % more, give or take 0.1 %; the twin is the baseline give or take 0.1
# %.
CLEAR = [(10_000, 11_000 + 10 * (n % 3), 10_000 + 10 * (n % 2)) for n in range(10)]


def test_a_clear_difference_is_stated_as_a_cost_ratio() -> None:
    (row,) = a_judge(PairRule(margin=0.01)).comparisons(raced(*CLEAR))
    assert row.ratio == pytest.approx(1.1009, abs=1e-3)
    assert row.low < row.ratio < row.high
    assert (row.direction, row.size) == (Direction.SLOWER, Size.BEYOND)
    assert (row.variant, row.baseline, row.executions) == ("new", "old", 10)


def test_the_race_ends_when_every_pair_is_settled() -> None:
    assert a_judge(PairRule(margin=0.01)).may_end(raced(*CLEAR)) is Stopped.DECIDED
    assert a_judge(PairRule()).may_end(raced(*CLEAR)) is None
    assert a_judge(PairRule(margin=0.01)).may_end(raced(*CLEAR[:9])) is None


def test_a_twin_that_differs_is_a_finding() -> None:
    same = a_judge(PairRule()).findings(raced(*CLEAR))
    assert [finding.code for finding in same if finding.code == "twin-differs"] == []
    costs = [(10_000 + n % 2, 10_000, 12_000 + n % 3) for n in range(10)]
    codes = [finding.code for finding in a_judge(PairRule()).findings(raced(*costs))]
    assert "twin-differs" in codes


def test_doubts_of_trials_are_told_once_under_the_commands_name() -> None:
    doubt = Finding("escape", Severity.WARNING, "a process left", "2")
    doubtful = [replace(trial, findings=(doubt,)) for trial in raced(*CLEAR)]
    found = [f for f in a_judge(PairRule()).findings(doubtful) if f.code == "escape"]
    assert [finding.subject for finding in found] == ["new"]


def test_a_race_that_ended_before_its_first_look_has_an_ordinary_interval() -> None:
    judge = a_judge(PairRule())
    few = raced(*CLEAR[:4])
    (unknown,) = judge.comparisons(few)
    (known,) = judge.at_the_end(4).comparisons(few)
    assert math.isinf(unknown.high) or unknown.high > known.high
    assert (known.rule, known.direction) == ("t", Direction.SLOWER)
    assert judge.at_the_end(5) is judge


def test_what_a_few_executions_decide_is_not_called_faster_in_one_line_and_chance_in_another() -> (
    None
):
    """By the interval 10 executions differ, by their ranks it may be chance: nothing is claimed."""
    costs = [
        (10_000, 10_000 + more, 10_000) for more in (-20, 30, 40, -25, 60, 70, 80, 90, 60, -30)
    ]
    judge = Judge(
        command_variants(Options(commands=("old", "new"))), Metric.CPU, PairRule(rule=Rule.T)
    )
    (row,) = judge.comparisons(raced(*costs))
    assert row.low > 1
    assert row.direction is Direction.UNCLEAR
    assert "by the ranks of 10 executions that may be chance" in row.withheld
    codes = {finding.code for finding in judge.findings(raced(*costs))}
    assert "few-executions-decide" in codes


def test_what_nobody_looked_at_before_the_race_is_not_claimed_after_it() -> None:
    judge = replace(a_judge(PairRule(margin=0.01)), doubt="nobody saw its clock")
    (row,) = judge.comparisons(raced(*CLEAR))
    assert row.withheld == "nobody saw its clock"
    assert (row.direction, row.size) == (Direction.UNCLEAR, Size.UNCLEAR)
    assert row.ratio == pytest.approx(1.1009, abs=1e-3)
