"""Workloads with several inputs become a test each, and `{input}` its path. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ensign.model.placeholders import fill_some
from ensign.model.study import Study
from ensign.model.study_problems import Problem, Where
from ensign.model.study_workload import DriveStep, Workload

_NOT_IN_NAMES = re.compile(r"[^a-z0-9_.+-]+")
_LONGEST_NAME = 60
_EXPECTATIONS = ("expected", "expected_sha256")


@dataclass(frozen=True, slots=True)
class SplitStudy:
    """A study whose workloads have one input at most, or what hinders that.

    `origins` has, by the keys that lead to a list of workloads or of their names, which of the
    written ones each is.
    """

    study: Study
    problems: tuple[Problem, ...]
    origins: Mapping[Where, tuple[int, ...]]


def split_inputs(study: Study) -> SplitStudy:
    """Each workload once for each of its inputs, called by its name and the file's.

    Where the study names such a workload (`same_output`, `slice_check`), it means all of them.
    """
    problems: list[Problem] = []
    measured = _split(study.workloads, ("workloads",), problems)
    changes: dict[str, object] = {"workloads": [workload for _, workload in measured]}
    origins: dict[Where, tuple[int, ...]] = {("workloads",): tuple(index for index, _ in measured)}
    if study.training is not None:
        where = ("training", "workloads")
        trained_on = _split(study.training.workloads, where, problems)
        origins[where] = tuple(index for index, _ in trained_on)
        changes["training"] = study.training.model_copy(
            update={"workloads": [workload for _, workload in trained_on]}
        )
    names: dict[str, list[str]] = {}
    for index, each in measured:
        names.setdefault(study.workloads[index].name, []).append(each.name)
    race, check = study.race, study.check
    if race.slice_check:
        named = _all(race.slice_check, names)
        origins["race", "slice_check"] = tuple(index for index, _ in named)
        changes["race"] = race.model_copy(update={"slice_check": [name for _, name in named]})
    if check is not None and check.same_output is not None:
        named = _all(check.same_output, names)
        origins["check", "same_output"] = tuple(index for index, _ in named)
        changes["check"] = check.model_copy(update={"same_output": [name for _, name in named]})
    return SplitStudy(study.model_copy(update=changes), tuple(problems), origins)


def _all(named: Sequence[str], names: Mapping[str, Sequence[str]]) -> tuple[tuple[int, str], ...]:
    return tuple(
        (index, test) for index, name in enumerate(named) for test in names.get(name, [name])
    )


def _split(
    workloads: Sequence[Workload], where: Where, problems: list[Problem]
) -> list[tuple[int, Workload]]:
    placed: list[tuple[int, Workload]] = []
    for index, workload in enumerate(workloads):
        given = workload.input
        if given is None:
            placed.append((index, workload))
        elif isinstance(given, str):
            placed.append((index, _with_input(workload, given, workload.name)))
        else:
            names = _names(workload.name, given)
            problems += _name_problems(workload, names, (*where, index, "input"))
            problems += _expectation_problems(workload, len(given), (*where, index))
            placed += [
                (index, _with_input(_expecting(workload, number), path, name))
                for number, (path, name) in enumerate(zip(given, names, strict=True))
            ]
    return placed


def _names(name: str, paths: Sequence[str]) -> list[str]:
    """Names of the files; their paths where two files are called the same."""
    short = [_named(name, PurePosixPath(path).name) for path in paths]
    whole = [_named(name, path) for path in paths]
    return [a if short.count(a) == 1 else b for a, b in zip(short, whole, strict=True)]


def _named(name: str, path: str) -> str:
    return f"{name}-{_NOT_IN_NAMES.sub('-', path.lower()).strip('-.')}"


def _name_problems(workload: Workload, names: Sequence[str], where: Where) -> list[Problem]:
    problems = []
    for index, name in enumerate(names):
        if name in names[:index]:
            text = f"'input' of workload '{workload.name}': two inputs make the name '{name}'"
            problems.append(Problem((*where, index), text))
        elif len(name) > _LONGEST_NAME:
            text = f"the name '{name}' is longer than {_LONGEST_NAME} characters; shorten 'name'"
            problems.append(
                Problem((*where, index), f"'input' of workload '{workload.name}': {text}")
            )
    return problems


def _expectation_problems(workload: Workload, inputs: int, where: Where) -> list[Problem]:
    problems = []
    for key in _EXPECTATIONS:
        value = getattr(workload, key)
        if value is not None and (isinstance(value, str) or len(value) != inputs):
            count = 1 if isinstance(value, str) else len(value)
            text = f"'{key}' of workload '{workload.name}': {count} for {inputs} inputs"
            problems.append(Problem((*where, key), f"{text}; give a list with one for each"))
    return problems


def _expecting(workload: Workload, number: int) -> Workload:
    """With what is expected of that one of its inputs."""
    expected = {key: getattr(workload, key) for key in _EXPECTATIONS}
    lists = {key: value for key, value in expected.items() if isinstance(value, list)}
    chosen = {
        key: values[number] if number < len(values) else None for key, values in lists.items()
    }
    return workload.model_copy(update=chosen)


def _with_input(workload: Workload, path: str, name: str) -> Workload:
    """The workload with that one input: as an argument where it says `{input}`, else as stdin."""

    def filled(text: str) -> str:
        return fill_some(text, {"input": path})

    def words(argv: list[str] | None) -> list[str] | None:
        return None if argv is None else [filled(word) for word in argv]

    changes: dict[str, object] = {
        "load": words(workload.load),
        "command": words(workload.command),
        "server_args": words(workload.server_args),
        "env": {key: filled(text) for key, text in workload.env.items()},
        "preload": [
            step if isinstance(step, DriveStep) else words(step) for step in workload.preload
        ],
    }
    changed = {key: value for key, value in changes.items() if value != getattr(workload, key)}
    update = {**changed, "name": name, "input": None if changed else path}
    return workload.model_copy(update=update)
