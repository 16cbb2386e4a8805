"""From tests of a suite to workloads of a study. Pure."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence

from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.study_problems import suggestion
from ensign.model.study_suite import Suite
from ensign.model.study_workload import DriveStep, Workload
from ensign.workloads.redis_specification.scale import scaled
from ensign.workloads.redis_specification.suite_file import Source
from ensign.workloads.redis_specification.translate import Inexpressible, Test, translate

# Commands may be so slow that a thousand of them would be too many; a drive counts exactly.
_ROUNDING = 10
_LONGEST_NAME = 60
_MARK_CHARACTERS = 6
_PREFIX = "memtier_benchmark-"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_.+-]+")

Tests = Mapping[str, Source]


def expanded(study: Study, find: Callable[[Suite], Tests]) -> Study:
    """The study with the tests of its suite as workloads; it has no suite any more.

    InputError for names that no test has, and for tests that no drive can say.
    """
    if study.suite is None:
        return study
    found = find(study.suite)
    measured = chosen(found, study.suite.tests, "[suite] 'tests'")
    names = short_names([test.name for test in measured])
    workloads = [_workload(test, names[test.name], study.suite) for test in measured]
    changes: dict[str, object] = {"suite": None, "workloads": [*study.workloads, *workloads]}
    training = study.training
    if training is not None and training.tests is not None:
        trained_on = chosen(found, training.tests, "[training] 'tests'")
        names = short_names([test.name for test in trained_on])
        runs = [_workload(test, f"{names[test.name]}", study.suite) for test in trained_on]
        runs = [_of_length(each, training.requests) for each in runs]
        changes["training"] = training.model_copy(
            update={"tests": None, "workloads": [*training.workloads, *runs]}
        )
    return study.model_copy(update=changes)


def chosen(found: Tests, patterns: Sequence[str], where: str) -> list[Test]:
    """The tests of names and glob patterns, in their order, each once. InputError, see above."""
    names: list[str] = []
    for pattern in patterns:
        matching = _matching(found, pattern)
        if not matching:
            near = suggestion(pattern, [_short(name) for name in found])
            raise InputError(f"{where}: no test is called '{pattern}'{near}")
        names += [name for name in matching if name not in names]
    tests: list[Test] = []
    for name in names:
        test = translate(found[name])
        if isinstance(test, Inexpressible):
            raise InputError(f"{where}: '{name}' cannot be raced: {test.reason}")
        tests.append(test)
    return tests


def _matching(found: Tests, pattern: str) -> list[str]:
    for name in (pattern, f"{_PREFIX}{pattern}"):
        if name in found:
            return [name]
    return [
        name
        for name in sorted(found)
        if fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(_short(name), pattern)
    ]


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Names of workloads: without what all have in common, cut where too long, unique.

    A name that is cut ends in a mark made from the whole name, so that it never depends on others.
    """
    return {name: _cut(_NOT_IN_NAMES.sub("-", _short(name).lower()), name) for name in names}


def _short(name: str) -> str:
    return name.removeprefix(_PREFIX)


def _cut(short: str, name: str) -> str:
    if len(short) <= _LONGEST_NAME:
        return short
    mark = hashlib.sha256(name.encode()).hexdigest()[:_MARK_CHARACTERS]
    return f"{short[: _LONGEST_NAME - _MARK_CHARACTERS - 1].rstrip('-')}-{mark}"


def _workload(test: Test, name: str, suite: Suite) -> Workload:
    part = scaled(test, suite.scale, values=suite.scale_values)
    return Workload(
        name=name,
        drive=part.drive,
        preload=[DriveStep(drive=each) for each in part.preload],
        server_args=list(part.server_args),
        requests=part.requests,
        rounding=_ROUNDING,
    )


def _of_length(workload: Workload, requests: int) -> Workload:
    return workload.model_copy(update={"requests": workload.requests or requests})
