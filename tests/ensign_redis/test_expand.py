from __future__ import annotations

import pytest

from ensign.experiment.study.result import overlap_findings
from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.study_workload import DriveStep
from ensign.workloads.plugin import SourceFile
from ensign_redis.expand import expanded, short_names
from suite_sources import source

_TESTS = {
    each.name: each
    for each in (
        source("--ratio 0:1 --test-time 9", name="memtier_benchmark-Get-10B"),
        source("--ratio 1:0 -n 100", name="memtier_benchmark-Set-10B"),
        source("--command PING --test-time 9", name="memtier_benchmark-ping"),
        source("--reconnect-interval 1", name="memtier_benchmark-again"),
    )
}


def study(*tests: str, training: list[str] | None = None, **suite: object) -> Study:
    return Study.model_validate(
        {
            "name": "x",
            "layouts": "natural",
            "source": {"kind": "path", "path": "."},
            "build": {"commands": [["make"]], "artifact": "x"},
            "axes": {"compiler": ["gcc-12"]},
            "baseline": {},
            "server": {"command": ["{artifact}", "{port}"]},
            "race": {"mode": "driven"},
            "training": None if training is None else {"tests": training, "requests": 70},
            "suite": {
                "kind": "redis-benchmarks-specification",
                "path": ".",
                "tests": list(tests),
                **suite,
            },
        }
    )


def test_tests_become_workloads_in_their_order() -> None:
    found = expanded(study("*-10B", "ping"), _TESTS)
    assert [each.name for each in found.workloads] == ["get-10b", "set-10b", "ping"]
    assert found.suite is None
    workload = found.workloads[1]
    assert workload.drive is not None
    assert workload.requests == 20_000
    assert workload.server_args[:2] == ["--save", ""]
    assert all(isinstance(step, DriveStep) for step in workload.preload)


def test_a_test_is_taken_once_by_its_whole_name_too() -> None:
    found = expanded(study("memtier_benchmark-ping", "pi*"), _TESTS)
    assert [each.name for each in found.workloads] == ["ping"]


def test_training_gets_its_number_of_requests() -> None:
    found = expanded(study("ping", training=["Get-10B", "Set-10B"]), _TESTS)
    assert found.training is not None
    assert [each.requests for each in found.training.workloads] == [70, 20_000]
    assert overlap_findings(found) == ()


def test_drives_overlap_by_a_command_and_its_pattern() -> None:
    tests = {**_TESTS, "other": source("--ratio 1:1 -c 7 -d 9 --pipeline 3", name="other")}
    (finding,) = overlap_findings(expanded(study("Get-10B", training=["other"]), tests))
    assert "other runs the command of get-10b" in finding.text
    walked = source("--ratio 0:1 --key-pattern R:S", name="other")
    apart = {**_TESTS, "other": walked}
    again = expanded(study("Get-10B", training=["other"]), apart)
    assert overlap_findings(again) == ()


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("Get-10b", "[suite] 'tests': no test is called 'Get-10b'; nearest is 'Get-10B'"),
        ("again", "'memtier_benchmark-again' cannot be raced: connects anew"),
        ("bad", "bad.yml: 'clientconfig.arguments': unknown argument --x"),
    ],
)
def test_what_cannot_be_taken_is_said(tests: str, said: str) -> None:
    known: dict[str, SourceFile] = {**_TESTS, "bad": source("--x", name="bad")}
    with pytest.raises(InputError) as raised:
        expanded(study(tests), known)
    assert said in str(raised.value)


def test_names_are_short_unique_and_do_not_depend_on_each_other() -> None:
    start = "memtier_benchmark-1Mkeys-string-with-a-very-long-name-that-goes-on-and-on"
    long = [f"{start}-A", f"{start}-B", "memtier_benchmark-Short:One"]
    found = short_names(long)
    assert len(set(found.values())) == 3
    assert all(len(name) <= 60 for name in found.values())
    assert found[long[0]].startswith("1mkeys-string-with-a-very-long-name")
    assert found[long[2]] == "short-one"
    assert short_names(long[:1]) == {long[0]: found[long[0]]}
