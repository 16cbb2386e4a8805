"""The best of many equal commands, raced anew: simulated, with no difference to be found."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from ensign.cli.experiment import tell
from ensign.cli.options import FailOn, Outputs
from ensign.experiment.compare.result import CompareEvidence
from ensign.experiment.record import Record
from ensign.experiment.steps import ExperimentOutcome
from ensign.meter.client import Json
from ensign.meter.records import TrialPlace, trials
from ensign.model.comparisons import Direction
from ensign.model.experiment import Experiment
from ensign.model.results import MachineFacts, Result, Stopped
from ensign.model.trials import Metric
from races import execution

START = {"type": "start", "schema": 1, "freezer": "cgroup", "mode": "interleaved"}
NAMES = ("usual", *(f"other-{number}" for number in range(8)))
ROUNDS, RACES, SPREAD = 8, 120, 0.02
RULE = Experiment("compare", "", "", ("",), Metric.CPU, 0.95, None, by_ranks=True)
RECORD = Record("", NAMES, 0, (), MachineFacts(()), (), (), (), (), "0", "now", complete=True)


def raced(rng: np.random.Generator, names: tuple[str, ...]) -> CompareEvidence:
    """A race of equal commands."""
    records: list[Json] = [START]
    for number in range(ROUNDS):
        costs = np.exp(SPREAD * rng.standard_normal(len(names) + 1)) * 10**7
        records += execution(
            number, dict(zip((*names, "twin"), map(round, costs.tolist()), strict=True))
        )
    found = tuple(trials(records, TrialPlace("", 0, 0, 5)))
    return CompareEvidence(RULE, replace(RECORD, raced=names), found)


def claims(result: Result) -> bool:
    return any(each.direction is Direction.FASTER for each in result.comparisons)


def log_ratio(result: Result, variant: str) -> float:
    return next(math.log(each.ratio) for each in result.comparisons if each.variant == variant)


def test_chance_that_chose_the_best_is_not_taken_for_speed() -> None:
    rng = np.random.default_rng(20261127)
    explored, confirmed, claimed = [], [], 0
    for _ in range(RACES):
        first = raced(rng, NAMES)
        best = first.finalist()
        if not best:
            continue
        second = raced(rng, (NAMES[0], best))
        result = replace(first, explores=True, second=second).result()
        assert result.confirmation is not None
        assert result.confirmation.finalists == (best,)
        assert result.confirmation.result is not None
        explored.append(log_ratio(result, best))
        confirmed.append(log_ratio(result.confirmation.result, best))
        claimed += claims(result.confirmation.result)
    races = len(confirmed)
    assert races > RACES / 2
    error = float(np.std(confirmed)) / math.sqrt(races)
    # The best of eight looks faster than it is by more than any error of the mean; the race anew
    # has no such bias, and claims no more than its level allows.
    assert float(np.mean(explored)) < -5 * error
    assert abs(float(np.mean(confirmed))) < 5 * error
    assert claimed / races <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / races)


def test_a_race_that_was_cut_off_has_no_finalist() -> None:
    first = raced(np.random.default_rng(1), NAMES)
    cut = replace(first, record=replace(RECORD, stopped=Stopped.INTERRUPTED))
    assert first.finalist()
    assert not cut.finalist()
    phase = replace(cut, explores=True).result().confirmation
    assert phase is not None
    assert not phase.plan_sha256


def test_a_finalist_that_was_not_raced_anew_is_not_called_nothing_to_confirm() -> None:
    rng = np.random.default_rng(1)
    first = replace(raced(rng, NAMES), explores=True)
    phase = first.result().confirmation
    assert phase is not None
    assert not phase.plan_sha256
    nothing = replace(raced(rng, NAMES[:1]), explores=True).result().confirmation
    assert nothing is not None
    assert nothing.plan_sha256


def test_an_interrupted_confirmation_ends_as_an_interrupted_race_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = np.random.default_rng(1)
    second = raced(rng, NAMES[:2])
    cut = replace(second, record=replace(second.record, stopped=Stopped.INTERRUPTED))
    result = replace(raced(rng, NAMES), explores=True, second=cut).result()
    assert tell(ExperimentOutcome(result), Outputs(), FailOn(), details=False) == 4
    assert NAMES[1] in capsys.readouterr().out
