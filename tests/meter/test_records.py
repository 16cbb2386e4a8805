import re
from pathlib import Path

import pytest

from ensign.meter.records import TrialPlace, outcome_of, trials
from ensign.model.errors import CommandFailed, InputError, InternalError, Interrupted, StorageFailed
from ensign.model.trials import Latency, Mode
from races import execution

START = {"type": "start", "schema": 1, "freezer": "signal", "mode": "interleaved"}
PLACE = TrialPlace("set", first_round=4, seed=1, slice_ns=5_000_000)


def test_each_execution_becomes_a_trial_with_its_own_records() -> None:
    warning = {
        "type": "warning",
        "code": "overshoot",
        "variant": "1",
        "text": "late",
        "execution": 1,
    }
    records = [START, *execution(0, {"1": 10, "twin": 12}), warning, *execution(1, {"1": 20})]
    first, second = trials(records, PLACE)
    assert (first.round_index, second.round_index) == (4, 5)
    assert first.mode is Mode.INTERLEAVED
    assert first.freezer == "signal"
    assert [variant.cpu_ns for variant in first.variants] == [10, 12]
    assert len(first.slices) == 2
    assert first.findings == ()
    assert [finding.code for finding in second.findings] == ["overshoot"]
    assert first.started_unix_s == pytest.approx(1e9)


def test_each_warning_of_the_protocol_is_a_finding_of_its_code() -> None:
    (page,) = (Path(__file__).parents[2] / "docs").rglob("meter-protocol.md")
    (row,) = (line for line in page.read_text().splitlines() if line.startswith("| `warning` |"))
    codes = re.findall(r"`([a-z]+-?[a-z]+)`", row.partition("Codes:")[2])
    assert "escape" in codes
    for code in codes:
        warning = {"type": "warning", "code": code, "text": "so it is", "execution": 0}
        (trial,) = trials([START, warning, *execution(0, {"1": 10})], PLACE)
        assert [(each.code, each.text) for each in trial.findings] == [(code, "so it is")]


def test_a_warning_that_this_version_does_not_know_is_passed_on() -> None:
    warning = {"type": "warning", "code": "new", "variant": "1", "text": "strange", "execution": 0}
    (trial,) = trials([START, warning, *execution(0, {"1": 10})], PLACE)
    (finding,) = trial.findings
    assert (finding.code, finding.text, finding.subject) == ("meter-warning", "new: strange", "1")


def test_an_invalid_execution_is_no_trial_and_leaves_nothing_behind() -> None:
    broken = [dict(record) for record in execution(0, {"1": 10})]
    broken[-1]["valid"] = False
    (trial,) = trials([START, *broken, *execution(1, {"1": 20})], PLACE)
    assert [variant.cpu_ns for variant in trial.variants] == [20]
    assert trial.round_index == 4


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("not-found", InputError),
        ("port-in-use", InputError),
        ("crashed", CommandFailed),
        ("not-ready", CommandFailed),
        ("storage", StorageFailed),
        ("system", CommandFailed),
        ("internal", InternalError),
    ],
)
def test_an_error_is_raised_by_whose_fault_it_was(code: str, kind: type[Exception]) -> None:
    error = {"type": "error", "code": code, "variant": "clang-19-O2", "text": "it is so"}
    with pytest.raises(kind, match="clang-19-O2: it is so"):
        list(trials([START, error], PLACE))


def test_unknown_operations_are_an_error_not_a_guess() -> None:
    variant = {
        "type": "variant",
        "execution": 0,
        "variant": "1",
        "wall_ns": 1,
        "cpu_ns": 1,
        "user_ns": 1,
        "system_ns": 0,
        "operations": None,
    }
    with pytest.raises(CommandFailed, match="operations is unknown"):
        list(trials([START, variant], PLACE))


def test_latencies_of_a_drive_are_kept() -> None:
    given = {"p50": 1, "p95": 2, "p99": 3, "p999": 4, "max": 5, "mean": 2, "count": 100}
    records = [
        {**each, "latency_ns": given} if each["type"] == "variant" else each
        for each in execution(0, {"1": 1})
    ]
    (trial,) = trials([START, *records], PLACE)
    assert trial.variant("1").latency == Latency(**given)


def test_an_execution_before_the_start_is_a_bug() -> None:
    with pytest.raises(InternalError):
        list(trials(execution(0, {"1": 1}), PLACE))


def test_the_outcome_of_one_command() -> None:
    outcome = outcome_of(
        [START, {"type": "outcome", "role": "command", "exit": 3, "stderr_tail": "no such key"}]
    )
    assert (outcome.exit, outcome.stderr_tail) == (3, "no such key")
    with pytest.raises(InputError, match="gone"):
        outcome_of([{"type": "error", "code": "not-found", "text": "gone"}])
    with pytest.raises(InternalError):
        outcome_of([START])


def test_a_meter_that_was_ended_from_elsewhere_is_a_failure() -> None:
    end = {"type": "end", "status": "interrupted", "executions": 1}
    found = trials([START, *execution(0, {"1": 10}), end], PLACE)
    assert next(found).round_index == 4
    with pytest.raises(Interrupted, match="was ended by a signal"):
        next(found)


def test_what_the_meter_says_of_itself_is_passed_on() -> None:
    said = {"type": "error", "code": "system", "text": "cannot make /x: No space left on device"}
    with pytest.raises(CommandFailed, match="No space left"):
        outcome_of([said, {"type": "end", "status": "failed"}])
