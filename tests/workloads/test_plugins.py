from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ensign.experiment.study_file import parse_study
from ensign.model.errors import InputError, StudyError
from ensign.model.study_workload import Workload
from ensign.workloads import registry
from ensign.workloads.load_generator import LoadGeneratorKind
from ensign.workloads.registry import kind_of, plugins, suite_named, suite_of_kind
from experiment.test_driven_studies import STUDY

LOAD = Workload.model_validate({"name": "w", "load": ["memtier_benchmark", "-p", "{port}"]})


def test_a_suite_is_found_by_its_name_and_by_its_kind() -> None:
    assert suite_named("redis") is suite_of_kind("redis-benchmarks-specification")
    with pytest.raises(InputError, match="no suite is called 'redi'; nearest is 'redis'"):
        suite_named("redi")


def test_a_study_with_a_kind_of_suite_that_nobody_brings_is_told_where() -> None:
    suite = '\n[suite]\nkind = "redis-benchmark-specification"\npath = "."\ntests = ["a"]\n'
    with pytest.raises(StudyError) as wrong:
        parse_study(STUDY + suite, Path("s.toml"))
    line = (STUDY + suite).splitlines().index('kind = "redis-benchmark-specification"') + 1
    assert f"s.toml:{line}: 'kind': no suite is of the kind" in str(wrong.value)
    assert "nearest is 'redis-benchmarks-specification'" in str(wrong.value)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    points: list[EntryPoint] = []

    def entry_points(*, group: str) -> list[EntryPoint]:
        return [point for point in points if point.group == group]

    monkeypatch.setattr(registry, "entry_points", entry_points)
    monkeypatch.setattr(registry, "plugins", plugins.__wrapped__)
    return points


def test_without_its_plugin_a_load_generator_is_any_other(installed: list[EntryPoint]) -> None:
    assert isinstance(kind_of(LOAD), LoadGeneratorKind)
    installed.append(EntryPoint("redis", "ensign_redis.plugin:PLUGIN", "ensign.workloads"))
    assert not isinstance(kind_of(LOAD), LoadGeneratorKind)


def test_an_entry_point_that_is_no_plugin_is_named(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("odd", "ensign_redis.plugin:MemtierKind", "ensign.workloads"))
    with pytest.raises(InputError, match=r"'odd' of ensign.workloads is not a Plugin"):
        kind_of(LOAD)


def test_a_plugin_that_cannot_be_loaded_is_named(installed: list[EntryPoint]) -> None:
    installed.append(EntryPoint("gone", "no_such_package.plugin:PLUGIN", "ensign.workloads"))
    with pytest.raises(InputError, match=r"plugin 'gone' \(no_such_package.plugin:PLUGIN\) cannot"):
        kind_of(LOAD)
