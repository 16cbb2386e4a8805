from __future__ import annotations

import pytest

from ensign.experiment.study.result import overlap_findings
from ensign.model.findings import Severity
from ensign.model.study import Study
from ensign.model.study_axes import Choice

_SERVER = {"command": ["{artifact}", "{port}"]}


def study(training: dict[str, object] | None, test: dict[str, object]) -> Study:
    return Study.model_validate(
        {
            "name": "x",
            "layouts": "natural",
            "source": {"kind": "path", "path": "."},
            "build": {"commands": [["make"]], "artifact": "x"},
            "axes": {"compiler": ["gcc-12"]},
            "baseline": {},
            "server": _SERVER,
            "training": None if training is None else {"workloads": [training]},
            "workloads": [test],
        }
    )


def test_a_variant_that_is_trained_on_a_test_says_so() -> None:
    other: dict[str, object] = {
        "name": "learn",
        "load": ["load", "-n", "1000", "-t", "get"],
    }
    plain = study(other, _TEST)
    also = plain.model_copy(update={"include": [Choice(pgo="on", training="also set")]})
    (finding,) = overlap_findings(also)
    assert (finding.code, finding.severity) == ("training-overlaps-tests", Severity.WARNING)
    assert "also set" in finding.text


_TEST: dict[str, object] = {"name": "set", "load": ["load", "-n", "{requests}", "-t", "set"]}


@pytest.mark.parametrize(
    ("training", "said"),
    [
        ({**_TEST, "requests": 9}, "set runs the command of set"),
        ({**_TEST, "name": "learn", "requests": 9}, "learn runs the command of set"),
        (
            {"name": "learn", "load": ["load", "-n", "1000", "-t", "set"]},
            "learn runs the command of set",
        ),
    ],
)
def test_an_overlap_is_an_error_about_the_whole(training: dict[str, object], said: str) -> None:
    (finding,) = overlap_findings(study(training, _TEST))
    assert (finding.code, finding.severity) == ("training-overlaps-tests", Severity.ERROR)
    assert finding.subject == ""
    assert said in finding.text


@pytest.mark.parametrize(
    "training",
    [
        None,
        {"name": "learn", "load": ["load", "-n", "1000", "-t", "get"]},
        {"name": "learn", "load": ["load", "-n", "all", "-t", "set"]},
        {"name": "set", "load": ["load", "-t", "get"]},
        {"name": "learn", "load": ["load", "-n", "1000", "-t", "set", "-P", "8"]},
    ],
)
def test_other_commands_are_no_overlap(training: dict[str, object] | None) -> None:
    assert overlap_findings(study(training, _TEST)) == ()
