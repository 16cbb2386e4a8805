from __future__ import annotations

from pathlib import Path

import pytest

from end_to_end.small_study import BATCH
from ensign.experiment.study.set_up import MeterAfterSetUp
from ensign.experiment.study_file import StudyFile, parse_study
from ensign.meter.client import Json
from ensign.model.errors import CommandFailed, EnsignError, StudyError
from fakes import FakeMeter

AROUND = """
setup = ["mkdir", "/x/{variant}"]
cleanup = ["rmdir", "/x"]
"""


def outcome(status: int) -> list[Json]:
    return [{"type": "outcome", "role": "command", "exit": status}, {"type": "end"}]


def study(more: str = AROUND) -> StudyFile:
    return parse_study(BATCH + more, Path("/folder/s.toml"))


def argvs(meter: FakeMeter) -> list[object]:
    return [request.get("process", {}).get("argv") for _, request in meter.requests]  # type: ignore[attr-defined]


def test_nothing_is_set_up_or_cleaned_up_where_nothing_runs() -> None:
    inner, cleaned = FakeMeter([]), list[EnsignError]()
    with MeterAfterSetUp(inner, study()).cleaned_up(cleaned):
        pass
    assert inner.requests == []


def test_each_variant_and_the_twin_are_set_up_before_the_first_run_alone() -> None:
    inner = FakeMeter([*[outcome(0)] * 3, [], [], outcome(1)])
    cleaned: list[EnsignError] = []
    meter = MeterAfterSetUp(inner, study())
    with meter.cleaned_up(cleaned):
        assert list(meter.run("race", {})) == []
        assert list(meter.run("race", {})) == []
    names = [each.name for each in study().variants]
    setups = [["mkdir", f"/x/{name}"] for name in (*names, "twin")]
    assert argvs(inner) == [*setups, None, None, ["rmdir", "/x"]]
    assert str(cleaned[0]) == "'cleanup of workload long: rmdir /x' exited with status 1"


def test_a_set_up_that_fails_is_cleaned_up_after() -> None:
    inner = FakeMeter([outcome(3), outcome(1)])
    meter = MeterAfterSetUp(inner, study())
    with (
        pytest.raises(CommandFailed, match=r"'setup of workload long: .*status 3") as failed,
        meter.cleaned_up([]),
    ):
        list(meter.run("race", {}))
    assert "cleaning up failed, too" in failed.value.__notes__[0]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ('setup = ["x", "{artifact}"]', "placeholder {artifact} is not known here"),
        ('prepare = ["x", "{nothing}"]', "placeholder {nothing} is unknown"),
        ('prepare = ["x"]\nexpected = "x"', "it has 'prepare', which a check lacks"),
        ('[check]\nsame_output = ["long"]', ""),
        ('setup = ["x"]\n[check]\nsame_output = ["long"]', "has 'setup', which a check does not"),
        (
            '[[training.workloads]]\nname = "t"\ncommand = ["{artifact}"]\nsetup = ["x"]\n',
            "'setup' of training workload 't': a training is no race",
        ),
    ],
)
def test_what_has_no_place_in_a_study(more: str, expected: str) -> None:
    if not expected:
        study(more)
        return
    with pytest.raises(StudyError) as wrong:
        study(more)
    assert expected in str(wrong.value)
