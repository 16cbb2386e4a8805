"""What a program waits for, and what it needs the kernel for; what faster code can gain at most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.experiment.bounds import bound_findings, link_findings, reasons, wait_shares
from ensign.experiment.pilots import CommandPilot, PilotRun
from ensign.model.traced_execution import FileTime, nothing_seen
from ensign.model.trials import TaskActivity, Wait, WaitCall, WaitsFor

MS = 1_000_000
FSYNC = WaitCall(WaitsFor.DISK, "fsync")
NAP = WaitCall(WaitsFor.TIMER, "nanosleep")
WAIT = WaitCall(WaitsFor.CHILD, "wait4")
FUTEX = WaitCall(WaitsFor.LOCK, "futex")
READ = WaitCall(WaitsFor.PIPE, "read")
GONE = WaitCall(WaitsFor.UNKNOWN)


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ((NAP, WAIT), (NAP,)),
        ((NAP, READ, WAIT), (NAP,)),
        ((READ, WAIT), (READ,)),
        ((WAIT,), (WAIT,)),
        ((FSYNC, FUTEX), (FSYNC,)),
        ((NAP, FUTEX), (NAP, FUTEX)),
        ((NAP, FSYNC), (NAP, FSYNC)),
        ((GONE, FSYNC), (FSYNC,)),
        ((GONE,), ()),
    ],
)
def test_a_wait_within_the_program_is_for_what_the_others_wait_for(
    calls: tuple[WaitCall, ...], told: tuple[WaitCall, ...]
) -> None:
    assert reasons(calls) == told


def pilot(
    user_ms: float, system_ms: float, wall_ms: float, page_faults: int = 0, **seen: object
) -> CommandPilot:
    idle_ms = max(wall_ms - user_ms - system_ms, 0)
    activity = TaskActivity(
        looks=100, observed_ns=round(wall_ms * MS), idle_ns=round(idle_ms * MS),
        busiest_cpu_ns=round((user_ms + system_ms) * MS), **seen,  # type: ignore[arg-type]
    )  # fmt: skip
    run = PilotRun(
        round(wall_ms * MS), round(user_ms * MS), round(system_ms * MS), activity,
        page_faults=page_faults,
    )  # fmt: skip
    return CommandPilot("p", (run,) * 3)


def told(seen: CommandPilot, *, serves: bool = False) -> list[tuple[str, str]]:
    found = bound_findings(seen, serves=serves, by_turns=False)
    return [(each.code, each.text) for each in found]


def test_one_reason_is_named_and_what_faster_code_could_gain() -> None:
    waits = (Wait(80 * MS, (FSYNC,)), Wait(10 * MS, (GONE,)))
    assert told(pilot(20, 10, 120, waits=waits)) == [
        (
            "mostly-waiting",
            (
                "spends 75 % of its time waiting for the disk (fsync): a compiler will not help "
                "(at most +28 %)"
            ),
        )
    ]


def test_several_reasons_have_a_share_each_and_none_is_called_the_one() -> None:
    waits = (Wait(50 * MS, (NAP, FUTEX)), Wait(45 * MS, (FSYNC,)), Wait(5 * MS, (READ,)))
    ((_, text),) = told(pilot(0, 0, 100, waits=waits))
    assert "a timer or a lock or another thread (nanosleep, futex) 50 %, the disk (fsync)" in text
    assert "pipe" not in text


def test_what_is_mostly_unknown_is_not_named() -> None:
    waits = (Wait(40 * MS, (FSYNC,)), Wait(60 * MS, (GONE,)))
    assert wait_shares([TaskActivity(waits=waits), None]) == ()
    ((_, text),) = told(pilot(0, 0, 100, waits=waits))
    assert "waiting for something other than a CPU: " in text


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (
            {"writes": 300_000, "written_bytes": 300_000},
            "(300,000 calls that write 1 B each, which",
        ),
        (
            {"reads": 200_000, "read_bytes": 200_000 * 4096},
            "(200,000 calls that read 4.0 KiB each)",
        ),
        ({"page_faults": 100_000}, "(100,000 page faults)"),
        ({"processes": 200, "page_faults": 9_000}, "(it starts 199 processes or more)"),
        ({"writes": 100_000, "page_faults": 60_000}, "the kernel's: its"),
        ({"writes": 1_000}, "the kernel's: its"),
        ({}, "the kernel's: its"),
    ],
)
def test_the_kernel_is_said_to_do_what_explains_most_of_its_time(
    seen: dict[str, int], reason: str
) -> None:
    ((code, text),) = told(pilot(10, 90, 100, **seen))
    assert code == "mostly-system"
    assert reason in text
    assert text.endswith("its flags reach the rest only, for at most +27 %")


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        (
            (("sendto", 60), ("recvfrom", 20), ("close", 2)),
            "(sendto 73 %, recvfrom 24 % of that): its",
        ),
        # Most of the kernel's time was in no call: for page faults.
        ((("write", 60),), "the kernel's: its"),
        # Too few looks.
        ((), "the kernel's: its"),
    ],
)
def test_calls_in_which_a_program_was_found_are_named(
    calls: tuple[tuple[str, int], ...], reason: str
) -> None:
    looked_at = replace(
        nothing_seen(""),
        followed=True,
        samples=(FileTime("libc.so", 100 * MS),),
        calls=tuple((name, share * MS) for name, share in calls),
    )
    ((_, text),) = told(replace(pilot(10, 90, 100), traced=looked_at))
    assert reason in text


def test_reads_and_writes_of_a_server_are_told_by_operation() -> None:
    seen = pilot(10, 90, 100, reads=500, read_bytes=15_000, writes=500, written_bytes=5_000)
    served = replace(seen, runs=tuple(replace(run, operations=500) for run in seen.runs))
    ((_, text),) = told(served, serves=True)
    assert "(2.0 reads and writes per operation, of 20 B): its" in text


def test_waits_are_counted() -> None:
    seen = pilot(1, 1, 2000, waits=(Wait(90 * MS, (FSYNC,)),))
    waited = replace(seen, runs=tuple(replace(run, voluntary_switches=130) for run in seen.runs))
    ((_, text),) = told(waited)
    assert "waiting for the disk (fsync), in about 65 waits per second: a compiler" in text


def test_several_calls_of_one_kind_are_one_reason_and_a_part_is_told_beside_the_kernel() -> None:
    waits = (Wait(20 * MS, (FSYNC,)), Wait(10 * MS, (WaitCall(WaitsFor.DISK),)))
    ((code, text),) = told(pilot(0, 70, 100, waits=waits))
    assert code == "mostly-system"
    assert text.endswith("; it waits for the disk (fsync)")


def test_many_short_processes_are_what_a_program_does() -> None:
    ((code, text),) = told(pilot(70, 50, 120, processes=49, children_cpu_ns=100 * MS))
    assert code == "short-processes"
    assert text.startswith("starts 48 processes or more, which have 83 % of its CPU time, 2.08 ms")
    assert told(pilot(70, 50, 120, processes=5, children_cpu_ns=110 * MS)) == []
    assert told(pilot(700, 500, 1200, processes=49, children_cpu_ns=1000 * MS)) == []


def test_a_program_that_computes_is_bound_by_itself() -> None:
    assert told(pilot(95, 5, 100)) == []


def test_a_server_that_hardly_computes_is_bound_by_its_load() -> None:
    ((code, text),) = told(pilot(1, 1.2, 90), serves=True)
    assert code == "load-bottleneck"
    assert text.startswith("the load is the bottleneck: the server computed for 2.2 ms of 90 ms")
    assert told(pilot(20, 5, 90), serves=True) == []


def test_a_link_is_full_where_it_carries_what_its_rate_allows() -> None:
    rate = 10**9
    full = pilot(1, 9, 100, link_bytes=9_500_000, link_ns=80 * MS)
    (found,) = link_findings(full, rate)
    assert found.code == "link-saturated"
    assert found.text.startswith("bound by its link, which carries 950 of 1,000 Mb/s: ")
    held_up = pilot(1, 9, 100, link_bytes=2_000_000, link_ns=80 * MS)
    mixed = replace(full, runs=(*full.runs[:2], *held_up.runs[:1]))
    assert len([*link_findings(mixed, rate)]) == 1
    half = pilot(1, 9, 100, link_bytes=5_000_000, link_ns=80 * MS)
    brief = pilot(1, 9, 100, link_bytes=120_000, link_ns=MS)
    assert [*link_findings(half, rate), *link_findings(brief, rate)] == []
    assert [*link_findings(full, 0), *link_findings(full, 10 * rate)] == []
