from __future__ import annotations

import pytest

from ensign.model.study_workload import Workload
from ensign.workloads.kind import DrivenServer, LoadedServer, Operations, OwnRun
from ensign.workloads.registry import kind_of, may_end_by_the_clock


def _workload(**keys: object) -> Workload:
    return Workload.model_validate({"name": "w", **keys})


def test_a_command_is_one_operation_unless_the_study_says_more() -> None:
    plain = _workload(command=["{artifact}", "x"])
    assert kind_of(plain).processes(plain, None) == OwnRun(("{artifact}", "x"), Operations())
    counted = _workload(command=["{artifact}"], operations=7)
    assert kind_of(counted).processes(counted, None) == OwnRun(("{artifact}",), Operations(7))


def test_a_load_completes_what_it_is_told_to_send() -> None:
    load = _workload(load=["ab", "-n", "{requests}", "127.0.0.1:{port}"])
    found = kind_of(load).processes(load, 500)
    assert isinstance(found, LoadedServer)
    assert found.operations == Operations(count=500)


@pytest.mark.parametrize("program", ["memtier_benchmark", "/opt/x/memtier_benchmark"])
def test_memtier_writes_down_what_it_sent(program: str) -> None:
    load = _workload(load=[program, "-p", "{port}"])
    assert kind_of(load).processes(load, None) == LoadedServer(
        (program, "-p", "{port}", "--json-out-file={tmp}/memtier.json"),
        Operations(json=("{tmp}/memtier.json", "/ALL STATS/Totals/Count")),
    )
    assert not may_end_by_the_clock(load)


def test_what_the_study_says_goes_before_what_memtier_writes() -> None:
    load = _workload(load=["memtier_benchmark", "-p", "{port}"], operations=r"n=(\d+)")
    assert kind_of(load).processes(load, None) == LoadedServer(
        ("memtier_benchmark", "-p", "{port}"), Operations(pattern=r"n=(\d+)")
    )


def test_a_drive_is_counted_and_a_command_may_end_by_the_clock() -> None:
    drive = _workload(drive={"commands": [{"argv": ["PING"]}]})
    assert isinstance(kind_of(drive).processes(drive, 10), DrivenServer)
    assert not may_end_by_the_clock(drive)
    assert may_end_by_the_clock(_workload(command=["{artifact}"]))
    assert not may_end_by_the_clock(_workload(command=["{artifact}"], operations=2))


def test_a_workload_without_a_kind_is_named() -> None:
    with pytest.raises(ValueError, match="workload w is of no kind"):
        kind_of(_workload())
