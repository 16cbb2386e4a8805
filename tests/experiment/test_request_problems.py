"""Mistakes that the meter finds, as those of lines of a study."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.experiment.study.request_problems import place_in_study, require_requests, study_problem
from ensign.experiment.study_file import parse_study
from ensign.meter.request_checks import RequestProblem
from ensign.model.errors import StudyError
from experiment.test_driven_studies import STUDY
from small_studies import study as batch_study


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'GET", "{key}',
            'GET", "{script:a}',
            "s.toml:37: workload 'get': \"{script:a}\": 'scripts' has no \"a\"",
        ),
        (
            "operations = 90, connections = 3",
            "operations = 90, connections = 3, threads = 4",
            "s.toml:35: workload 'get': 'threads' must lie between 1 and 3",
        ),
        (
            'argv = ["INCR", "a"] }] }\n\n',
            'argv = ["INCR", "{key}"] }] }\n\n',
            "s.toml:28: workload 'learn': \"{key}\" needs 'keys'",
        ),
        ('mode = "driven"', 'mode = "driven"\nslice = "2m"', "s.toml:24: 'slice' must lie between"),
        ('"{port}"]\n\n', '"{port}"]\nready.output = "("\n\n', "s.toml:21: "),
    ],
)
def test_mistakes_have_a_line(old: str, new: str, said: str) -> None:
    assert old in STUDY
    with pytest.raises(StudyError) as raised:
        require_requests(parse_study(STUDY.replace(old, new, 1), Path("s.toml")))
    (line,) = str(raised.value).splitlines()
    assert said in line


def test_a_mistake_of_the_server_is_told_once_however_many_workloads_there_are() -> None:
    more = STUDY[STUDY.index("[[workloads]]") :].replace('"get"', '"set"')
    text = STUDY.replace('"{port}"]\n\n', '"{port}"]\nready.output = "("\n\n', 1) + more
    with pytest.raises(StudyError) as raised:
        require_requests(parse_study(text, Path("s.toml")))
    assert len(str(raised.value).splitlines()) == 1


def test_lines_are_those_of_the_file_when_some_workloads_are_asked_for() -> None:
    more = STUDY[STUDY.index("[[workloads]]") :].replace('"get"', '"set"')
    wrong = more.replace("{key}", "{expiry}")
    file = parse_study(STUDY + wrong, Path("s.toml"))
    require_requests(file.with_workloads(["get"]))
    with pytest.raises(StudyError, match=r"^s\.toml:45: workload 'set': "):
        require_requests(file.with_workloads(["set"]))


def test_good_studies_have_no_problems() -> None:
    require_requests(parse_study(STUDY, Path("s.toml")))


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/variants/0/program/argv/1", ("workloads", 3, "command", 1)),
        ("/variants/0/program/stdin", ("workloads", 3, "input")),
        ("/variants/0/operations_pattern", ("workloads", 3, "operations")),
        ("/variants/0/score_pattern", ("workloads", 3, "score", "pattern")),
        ("/variants/0/files/folders", ("workloads", 3)),
        ("/ports", ("race", "ports")),
        ("/executions", ("workloads", 3)),
    ],
)
def test_places_of_a_program_that_runs_by_itself(path: str, place: tuple[str | int, ...]) -> None:
    study = batch_study()
    problem = RequestProblem(code="range", path=path, text="so it is")
    workload = study.workloads[0]
    assert place_in_study(problem.steps, study, workload, ("workloads", 3)) == place


def test_keys_are_called_as_in_the_study() -> None:
    study = batch_study()
    problem = RequestProblem(code="range", path="/slice_ns", text="`slice_ns` is too long")
    found = study_problem(problem, study, study.workloads[0], ("workloads", 0))
    assert (found.where, found.text) == (("race", "slice"), "'slice' is too long")
