"""From tests of a suite to workloads of a study. Pure."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ensign.model.drive import Data, Drive, DriveCommand, Keys
from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.study_problems import suggestion
from ensign.model.study_suite import Suite
from ensign.model.study_workload import DriveStep, Workload
from ensign.workloads.plugin import SourceFile
from ensign_redis.translate import Inexpressible, Test, translate

# Commands may be so slow that a thousand of them would be too many; a drive counts exactly.
_ROUNDING = 10
_LONGEST_NAME = 60
_MARK_CHARACTERS = 6
_PREFIX = "memtier_benchmark-"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_.+-]+")

# What a test of few keys measures, it no longer would with fewer.
SMALL_KEYS = 1000


def expanded(study: Study, found: Mapping[str, SourceFile]) -> Study:
    """The study with the tests of its suite as workloads; it has no suite any more.

    `found` has the files by the tests' names. InputError for names that no test has, and for tests
    that no drive can say.
    """
    if study.suite is None:
        return study
    measured = chosen(found, study.suite.tests, "[suite] 'tests'")
    names = short_names([test.name for test in measured])
    workloads = [_workload(test, names[test.name], study.suite) for test in measured]
    changes: dict[str, object] = {"suite": None, "workloads": [*study.workloads, *workloads]}
    training = study.training
    if training is not None and training.tests is not None:
        trained_on = chosen(found, training.tests, "[training] 'tests'")
        names = short_names([test.name for test in trained_on])
        runs = [_workload(test, f"{names[test.name]}", study.suite) for test in trained_on]
        runs = [each.of_length(training.requests) for each in runs]
        changes["training"] = training.model_copy(
            update={"tests": None, "workloads": [*training.workloads, *runs]}
        )
    return study.model_copy(update=changes)


def chosen(found: Mapping[str, SourceFile], patterns: Sequence[str], where: str) -> list[Test]:
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


def _matching(found: Mapping[str, SourceFile], pattern: str) -> list[str]:
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


def scaled(test: Test, scale: float, *, values: bool) -> Test:
    """The test with that share of its keys, preloaded and fixed operations, and values if asked."""
    if scale == 1:
        return test
    requests = None if test.requests is None else _part(test.requests, scale)
    return replace(
        test,
        drive=_drive(test.drive, scale, values=values),
        preload=tuple(_drive(each, scale, values=values) for each in test.preload),
        requests=requests,
    )


def _part(number: int, scale: float) -> int:
    """Ranges and counts shrink by one rule, so that a preload still covers what is read."""
    return max(round(number * scale), min(number, SMALL_KEYS))


def _drive(drive: Drive, scale: float, *, values: bool) -> Drive:
    commands = [_command(each, scale, drive) for each in drive.commands]
    operations = drive.operations
    if operations is not None:
        operations = _part(operations, _share(drive.commands, commands, scale))
    changes: dict[str, object] = {"operations": operations, "commands": commands}
    if values:
        changes["data"] = _data(drive.data, scale)
    return drive.model_copy(update=changes)


def _share(old: Sequence[DriveCommand], new: Sequence[DriveCommand], scale: float) -> float:
    """What is left of the ranges: as many operations per key as before, however few keys stay."""
    pairs = zip(old, new, strict=True)
    ranges = [(a.keys, b.keys) for a, b in pairs if a.keys and b.keys and a.keys.number > 1]
    return max((b.number / a.number for a, b in ranges), default=scale)


def _command(command: DriveCommand, scale: float, drive: Drive) -> DriveCommand:
    if command.keys is None:
        return command
    return command.model_copy(update={"keys": _keys(command.keys, scale, drive.connections)})


def _keys(keys: Keys, scale: float, connections: int) -> Keys:
    number = _part(keys.number, scale)
    if keys.pattern == "parallel":  # one for each connection, at least
        number = max(number, min(connections, keys.number))
    share = number / keys.number
    changes: dict[str, object] = {"last": keys.first + number - 1}
    if keys.center is not None:
        changes["center"] = keys.first + (keys.center - keys.first) * share
    if keys.deviation is not None:
        changes["deviation"] = keys.deviation * share
    return keys.model_copy(update=changes)


def _data(data: Data, scale: float) -> Data:
    def part(size: int) -> int:
        return max(1, round(size * scale)) if size else 0

    if data.sizes is not None:
        least, most = data.sizes
        return data.model_copy(update={"sizes": (part(least), part(most))})
    if data.weighted is not None:
        return data.model_copy(
            update={"weighted": [(part(size), weight) for size, weight in data.weighted]}
        )
    return data.model_copy(update={"size": part(round(data.mean_bytes))})
