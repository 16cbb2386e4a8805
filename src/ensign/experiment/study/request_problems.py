"""Refusals of the meter, said of the study's lines before anything is built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ensign.builders.training import TrainingRun
from ensign.experiment.machine import cpus_of_study
from ensign.experiment.study.variants import VariantSet, race_request, training_request
from ensign.experiment.study_file import StudyFile
from ensign.meter.client import find_meter
from ensign.meter.request_checks import RequestProblem, check_races
from ensign.meter.requests import RaceRequest
from ensign.model.study import Study
from ensign.model.study_problems import Problem, Where
from ensign.model.study_workload import Workload

# Of what is built; nothing is run.
_PROGRAM = "/program"
# As many as any pilot may find: a number that is chosen is no mistake of the study.
_REQUESTS = 1_000_000
# Where keys of a request come from: of the study, of its server, of a workload.
_Places = tuple[tuple[Where, Where], ...]
_OF_STUDY: _Places = ((("ports",), ("race", "ports")), (("slice_ns",), ("race", "slice")))
_OF_SERVER: _Places = (
    (("ready",), ("server", "ready")),
    (("program", "argv"), ("server", "command")),
    (("program", "env"), ("server", "env")),
    (("program",), ("server", "command")),
)
_OF_WORKLOAD: _Places = (
    (("load", "drive"), ("drive",)),
    (("load", "process", "argv"), ("load",)),
    (("load", "operations_pattern"), ("operations",)),
    (("load",), ("load",)),
    (("preload",), ("preload",)),
    (("program", "argv"), ("command",)),
    (("program", "stdin"), ("input",)),
    (("program", "stdout"), ("output",)),
    (("program",), ("command",)),
    (("score_pattern",), ("score", "pattern")),
    (("operations_pattern",), ("operations",)),
)


def require_requests(file: StudyFile, executable: Path | None = None) -> None:
    """StudyError, a line for each mistake, where the meter could not carry out what is asked."""
    asked = tuple(_requests(file))
    found = check_races(executable or find_meter(), [request for _, _, request in asked])
    problems = [
        study_problem(problem, file.study, workload, where)
        for (workload, where, _), wrong in zip(asked, found, strict=True)
        for problem in wrong
        if not _of_twin(problem)
    ]
    if problems:
        raise file.errors(tuple(dict.fromkeys(problems)))


def study_problem(
    problem: RequestProblem, study: Study, workload: Workload, start: Where
) -> Problem:
    """The mistake as one of the study's key that a value of the request comes from. Pure.

    `start` leads to the workload.
    """
    place = place_in_study(problem.steps, study, workload, start)
    text = problem.text.replace(f"`{_last_key(problem.steps)}`", f"`{_last_key(place)}`")
    whose = f"workload '{workload.name}': " if place[: len(start)] == start else ""
    return Problem(place, whose + text.replace("`", "'"))


def place_in_study(steps: Where, study: Study, workload: Workload, start: Where) -> Where:
    """Place in the study of a value of a workload's race. Pure."""
    if steps[:1] != ("variants",):
        return _found(steps, _OF_STUDY, ()) or start
    served = study.server is not None and workload.command is None
    of_server = _found(steps[2:], _OF_SERVER, ()) if served else None
    return of_server or _found(steps[2:], _OF_WORKLOAD, start) or start


def _found(steps: Where, places: _Places, start: Where) -> Where | None:
    for asked, written in places:
        if steps[: len(asked)] == asked:
            return (*start, *written, *steps[len(asked) :])
    return None


def _last_key(steps: Where) -> str:
    return next((step for step in reversed(steps) if isinstance(step, str)), "")


def _of_twin(problem: RequestProblem) -> bool:
    """The twin is the baseline again, with its mistakes."""
    return problem.steps[:1] == ("variants",) and problem.steps[1:2] not in ((), (0,))


def _requests(file: StudyFile) -> Iterator[tuple[Workload, Where, RaceRequest]]:
    """A race of each workload, as if the programs were there."""
    study = file.study
    cpus, _ = cpus_of_study(study.cpus)
    variants = VariantSet(
        artifacts=((file.variants[0].name, _PROGRAM),),
        tools=dict.fromkeys(study.build.tools, _PROGRAM),
        cpus=cpus,
        folder=str(file.folder),
    )
    for workload in study.workloads:
        requests = workload.fixed_requests or _REQUESTS
        request = race_request(study, variants, workload, requests, seed=study.race.seed)
        yield workload, file.place_of(workload.name), request
    for workload in () if study.training is None else study.training.workloads:
        run = TrainingRun(Path(_PROGRAM), workload, (), {}, 1)
        where = file.place_of(workload.name, "training")
        yield workload, where, training_request(study, variants, run)
