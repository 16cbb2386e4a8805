"""What bounds a program that runs alone: its own code, the kernel, its load, or a wait. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from ensign.experiment.metric_and_mode import Behavior, behavior_findings
from ensign.experiment.pilots import CommandPilot, PilotRun
from ensign.model.finding_kinds.race import (
    LINK_SATURATED,
    LOAD_BOTTLENECK,
    MOSTLY_SYSTEM,
    MOSTLY_WAITING,
    SHORT_PROCESSES,
)
from ensign.model.findings import Finding
from ensign.model.traced_execution import TracedExecution
from ensign.model.trials import TaskActivity, WaitCall, WaitsFor
from ensign.model.units import format_duration, format_gain, format_size
from ensign.stats.readings import most_gain

_NOTEWORTHY_NS = 5_000_000
_SYSTEM_SHARE = 0.6
# A server that computes less than this of its time waits for its load.
_LOADED_SHARE = 0.2
# What is called the reason has so much of it; less is one of several.
_MOST = 0.8
_SHOWN_SHARE = 0.1
# Of the kernel's time, seen by looks a millisecond apart.
_LOOKED_NS = 20_000_000
_MANY_WAITS = 20
# Of a link's rate; a token bucket lets a little more pass, and looks come a little late.
_FULL = 0.9
_MOST_CALLS = 3
_INSIDE = frozenset((WaitsFor.CHILD, WaitsFor.PIPE, WaitsFor.LOCK))
_WORDS = {
    WaitsFor.DISK: "the disk",
    WaitsFor.TIMER: "a timer",
    WaitsFor.SOCKET: "a socket",
    WaitsFor.PIPE: "a pipe",
    WaitsFor.TERMINAL: "a terminal or a device",
    WaitsFor.LOCK: "a lock or another thread",
    WaitsFor.CHILD: "processes that it started",
    WaitsFor.EVENTS: "a file, a socket or a time",
    WaitsFor.OTHER: "another system call",
}
# What the kernel takes for each, at least about: of a read or write and its bytes, a page fault, a
# process. Named is only what explains a good part of the system time, and far more than the rest.
_CALL_NS, _BYTE_NS, _FAULT_NS, _PROCESS_NS = 300, 0.3, 1_000, 400_000
_EXPLAINED = 0.2
_SMALL_BYTES = 512
# To start a process and to load its libraries takes about a millisecond.
_MANY_PROCESSES, _SHORT_NS = 10, 4_000_000


@dataclass(frozen=True, slots=True)
class WaitShare:
    """A share of the time in which no task could run: what for, and the calls, the longest first.

    Several reasons could not be told apart.
    """

    share: float
    reasons: tuple[WaitsFor, ...]
    calls: tuple[str, ...]

    @property
    def text(self) -> str:
        """`the disk (fsync)`, `a timer or a lock or another thread (nanosleep, futex)`."""
        text = " or ".join(_WORDS[reason] for reason in self.reasons)
        return f"{text} ({', '.join(self.calls[:_MOST_CALLS])})" if self.calls else text


def usage_findings(
    pilots: Sequence[CommandPilot],
    *,
    servers: bool = False,
    cpus: int | None = None,
    by_turns: bool = True,
) -> Iterator[Finding]:
    """Findings on the use of the CPU, where programs may use so many CPUs."""
    for pilot in pilots:
        yield from behavior_findings(
            pilot.behavior, pilot.name, serves=servers, cpus=cpus, by_turns=by_turns
        )
        yield from bound_findings(pilot, serves=servers, by_turns=by_turns)


def bound_findings(
    pilot: CommandPilot, *, serves: bool = False, by_turns: bool = True
) -> Iterator[Finding]:
    """Findings on a program that little of its own code bounds."""
    does = pilot.behavior
    if serves:
        yield from _load(pilot)
    elif does.waits:
        text = _waiting(pilot, does) + ("; raced in whole executions" * by_turns)
        yield MOSTLY_WAITING.found(text, pilot.name)
        return
    yield from _short_processes(pilot)
    system_ns = median(run.system_ns for run in pilot.runs)
    if pilot.cpu_ns > _NOTEWORTHY_NS and system_ns > _SYSTEM_SHARE * pilot.cpu_ns:
        yield MOSTLY_SYSTEM.found(_of_the_kernel(pilot, system_ns / pilot.cpu_ns), pilot.name)


def link_findings(pilot: CommandPilot, rate_bits: int) -> Iterator[Finding]:
    """A finding where the link between both ends, of that rate, was full."""
    seen = [run.activity for run in pilot.runs if run.activity and run.activity.link_ns]
    if not rate_bits or sum(activity.link_ns for activity in seen) < _NOTEWORTHY_NS:
        return
    # A single run that others held up says nothing of the link.
    bits = median(8e9 * activity.link_bytes / activity.link_ns for activity in seen)
    if bits >= _FULL * rate_bits:
        text = (
            f"bound by its link, which carries {bits / 1e6:,.0f} of {rate_bits / 1e6:,.0f} Mb/s: "
            "faster code cannot achieve more, only use less CPU time"
        )
        yield LINK_SATURATED.found(text, pilot.name)


def _short_processes(pilot: CommandPilot) -> Iterator[Finding]:
    activity = [run.activity for run in pilot.runs if run.activity is not None]
    if not activity or pilot.cpu_ns < _NOTEWORTHY_NS:
        return
    started = median(task_activity.processes for task_activity in activity) - 1
    share = median(task_activity.children_cpu_ns for task_activity in activity) / pilot.cpu_ns
    each_ns = share * pilot.cpu_ns / max(started, 1)
    if started >= _MANY_PROCESSES and share >= _SYSTEM_SHARE and each_ns < _SHORT_NS:
        text = (
            f"starts {started:,.0f} processes or more, which have {min(share, 1) * 100:.0f} % of "
            f"its CPU time, {format_duration(each_ns)} each at most: starting them is most of it"
        )
        yield SHORT_PROCESSES.found(text, pilot.name)


def _load(pilot: CommandPilot) -> Iterator[Finding]:
    if pilot.cpu_ns < _LOADED_SHARE * pilot.wall_ns:
        text = (
            f"the load is the bottleneck: the server computed for {format_duration(pilot.cpu_ns)} "
            f"of {format_duration(pilot.wall_ns)}; "
            "send more requests by each process and connection"
        )
        yield LOAD_BOTTLENECK.found(text, pilot.name)


def _waiting(pilot: CommandPilot, does: Behavior) -> str:
    most = _most_gain(pilot.runs, (run.wall_ns for run in pilot.runs))
    most = min(most, (1 - does.idle_share) / does.idle_share)
    return (
        f"spends {does.idle_share * 100:.0f} % of its time waiting for {_waits_for(pilot, does)}"
        f"{_how_often(pilot)}: a compiler will not help (at most {format_gain(most)})"
    )


def _how_often(pilot: CommandPilot) -> str:
    """How many waits there are in a second, of all tasks; a few are those of its start."""
    waits = median(run.voluntary_switches for run in pilot.runs)
    per_s = 1e9 * waits / max(1, pilot.wall_ns)
    return f", in about {per_s:,.0f} waits per second" if waits >= _MANY_WAITS else ""


def _waits_for(pilot: CommandPilot, does: Behavior) -> str:
    shares = wait_shares(run.activity for run in pilot.runs)
    if not shares:
        return "something other than a CPU"
    if shares[0].share >= _MOST:
        return shares[0].text
    shown = [share for share in shares if share.share >= _SHOWN_SHARE]
    return ", ".join(f"{share.text} {does.idle_share * share.share * 100:.0f} %" for share in shown)


def wait_shares(runs: Iterable[TaskActivity | None]) -> tuple[WaitShare, ...]:
    """Shares of the waiting of all these executions by its reason, the largest first.

    Empty where most of it is not known.
    """
    spent_ns: dict[tuple[WaitsFor, ...], Counter[str]] = {}
    unknown_ns = 0
    for wait in (wait for run in runs if run is not None for wait in run.waits):
        # Who was woken while it was looked at has no call any more: that is no reason of its own.
        if not (calls := reasons(wait.calls)):
            unknown_ns += wait.ns
            continue
        called = spent_ns.setdefault(tuple(dict.fromkeys(call.what for call in calls)), Counter())
        called.update({call.call: wait.ns // len(calls) for call in calls})
    known_ns = sum(called.total() for called in spent_ns.values())
    if known_ns <= unknown_ns:
        return ()
    shares = (
        WaitShare(
            called.total() / known_ns, what, tuple(call for call, _ in called.most_common() if call)
        )
        for what, called in spent_ns.items()
    )
    return tuple(sorted(shares, key=lambda share: -share.share))


def reasons(calls: Sequence[WaitCall]) -> tuple[WaitCall, ...]:
    """Of tasks that all sleep, the calls that the others wait for.

    Whoever waits for a child, a pipe or a lock may wait for another task of the same program, so a
    wait for something outside of it is the reason. A lock beside a timer is told with it: who
    sleeps may hold the lock, or have nothing to do with it.
    """
    calls = tuple(call for call in calls if call.what is not WaitsFor.UNKNOWN)
    outside = tuple(call for call in calls if call.what not in _INSIDE)
    if outside:
        timed = {call.what for call in outside} == {WaitsFor.TIMER}
        locks = tuple(call for call in calls if call.what is WaitsFor.LOCK)
        return (*outside, *locks) if timed else outside
    return tuple(call for call in calls if call.what is not WaitsFor.CHILD) or calls


def _of_the_kernel(pilot: CommandPilot, share: float) -> str:
    does = pilot.behavior
    most = format_gain(_most_gain(pilot.runs, (run.cpu_ns for run in pilot.runs)))
    waits = f"; it waits for {_waits_for(pilot, does)}" if does.idle_share > _SHOWN_SHARE else ""
    return (
        f"{share * 100:.0f} % of its CPU time is the kernel's{_kernel_reason(pilot, share)}: its "
        f"flags reach the rest only, for at most {most}{waits}"
    )


def _most_gain(runs: Sequence[PilotRun], costs_ns: Iterable[int]) -> float:
    user_ns, cpu_ns = sum(run.user_ns for run in runs), sum(run.cpu_ns for run in runs)
    return most_gain(user_ns, cpu_ns, sum(costs_ns))


def _kernel_reason(pilot: CommandPilot, share: float) -> str:
    """What most of the system time is for; empty where that cannot be told."""
    told = _by_counts(pilot.runs) or _by_looks(pilot.traced, share)
    told = "; ".join(part for part in (told, _per_operation(pilot.runs)) if part)
    return f" ({told})" if told else ""


def _by_looks(traced: TracedExecution | None, share: float) -> str:
    """The system calls in which it was found, where they are most of that share."""
    if traced is None:
        return ""
    known_ns = sum(cpu_ns for _, cpu_ns in traced.calls)
    whole_ns = sum(time.cpu_ns for time in traced.samples)
    if known_ns < max(_LOOKED_NS, _MOST * share * whole_ns):
        return ""
    longest = sorted(traced.calls, key=lambda each: -each[1])[:_MOST_CALLS]
    shown = [pair for pair in longest if pair[1] >= _SHOWN_SHARE * known_ns]
    return f"{', '.join(f'{call} {ns / known_ns * 100:.0f} %' for call, ns in shown)} of that"


def _per_operation(runs: Sequence[PilotRun]) -> str:
    """Reads and writes of an operation, where there are many operations."""
    seen = [run for run in runs if run.activity and run.operations > 1]
    calls = sum(run.activity.reads + run.activity.writes for run in seen if run.activity)
    moved = sum(
        run.activity.read_bytes + run.activity.written_bytes for run in seen if run.activity
    )
    if not calls:
        return ""
    rate = calls / sum(run.operations for run in seen)
    return f"{rate:,.1f} reads and writes per operation, of {format_size(round(moved / calls))}"


def _by_counts(runs: Sequence[PilotRun]) -> str:
    seen = [(run, run.activity) for run in runs if run.activity and run.activity.looks]
    if not seen:
        return ""
    writes = median(activity.writes for _, activity in seen)
    written = median(activity.written_bytes for _, activity in seen)
    reads = median(activity.reads for _, activity in seen)
    read = median(activity.read_bytes for _, activity in seen)
    faults = median(run.page_faults for run, _ in seen)
    started = median(activity.processes for _, activity in seen) - 1
    costs = {
        _transfers("write", writes, written): writes * _CALL_NS + written * _BYTE_NS,
        _transfers("read", reads, read): reads * _CALL_NS + read * _BYTE_NS,
        f"{faults:,.0f} page faults": faults * _FAULT_NS,
        f"it starts {started:,.0f} processes or more": started * _PROCESS_NS,
    }
    whole, (text, largest) = sum(costs.values()), max(costs.items(), key=lambda pair: pair[1])
    system_ns = median(run.system_ns for run, _ in seen)
    enough = largest >= _EXPLAINED * system_ns and largest >= _MOST * whole
    return text if enough else ""


def _transfers(name: str, calls: float, total_bytes: float) -> str:
    each_bytes = total_bytes / calls if calls else 0.0
    text = f"{calls:,.0f} calls that {name} {format_size(round(each_bytes))} each"
    return f"{text}, which a buffer saves" if each_bytes < _SMALL_BYTES else text
