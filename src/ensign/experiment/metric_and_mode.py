"""The rule for the compared cost and for taking turns, of commands and studies alike. Pure.

It is stated in docs/background/metric-and-mode.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ensign.model.finding_kinds.race import (
    CPU_BY_REQUEST,
    FEW_CPUS,
    INTERLEAVED_BY_REQUEST,
    SEVERAL_CPUS,
)
from ensign.model.findings import Finding
from ensign.model.trials import Metric, Mode, TaskActivity

# Whoever waits, or computes beside others, for less than this is too short to be called either.
_NOTEWORTHY_NS = 5_000_000
_WAITING_SHARE = 0.5
# One busy task: up to 1.1 runnable. CPU time over that of the busiest: up to 1.15 with some help
# (`cat | gzip | wc`), 1.25 or more with several busy tasks.
_SEVERAL_RUNNABLE = 1.2
_SEVERAL_CPU = 1.2
# Servers, over the idle time as well: up to 0.75 with one connection, or one worker (Go,
# `memcached -t1`), 2 or more with several (`memcached -t4` under eight connections).
_MORE_THAN_A_CPU = 1.2
_FEWEST_LOOKS = 10
_LOOKS_THAT_COUNT = 3


@dataclass(frozen=True, slots=True)
class Behavior:
    """Behavior that the executions of one program (or server) share.

    `idle_share` is the share of the time in which no task could run, `runnable` how many could on
    average when one could, `cpu_over_busiest` all CPU time over that of the busiest task.
    """

    idle_share: float
    idle_ns: float
    runnable: float
    cpu_over_busiest: float
    beside_ns: float

    @property
    def waits(self) -> bool:
        """It mostly waits for something else than a CPU: stopping it would not stop that."""
        return self.idle_share > _WAITING_SHARE and self.idle_ns > _NOTEWORTHY_NS

    @property
    def parallel(self) -> bool:
        """Several of its tasks are busy at a time."""
        return (
            self.runnable >= _SEVERAL_RUNNABLE
            and self.cpu_over_busiest >= _SEVERAL_CPU
            and self.beside_ns >= _NOTEWORTHY_NS
        )

    @property
    def outgrows_a_cpu(self) -> bool:
        """As a server, which waits for its load meanwhile, it has work for more than one CPU.

        A Go program hands its work from thread to thread, so that several seem busy.
        """
        return self.parallel and (1 - self.idle_share) * self.runnable >= _MORE_THAN_A_CPU


COMPUTES = Behavior(0.0, 0.0, 1.0, 1.0, 0.0)


def behavior_of(runs: Sequence[tuple[int, TaskActivity | None]]) -> Behavior:
    """From CPU time (ns) and activity of each execution: medians, so that no single one decides.

    What was hardly looked at is taken for a program that computes.
    """
    seen = [(cpu_ns, activity) for cpu_ns, activity in runs if activity is not None]
    if sum(activity.looks for _, activity in seen) < _FEWEST_LOOKS:
        return COMPUTES
    counted = [pair for pair in seen if pair[1].looks >= _LOOKS_THAT_COUNT] or seen
    return Behavior(
        idle_share=median(activity.idle_share for _, activity in counted),
        idle_ns=median(activity.idle_ns for _, activity in counted),
        runnable=median(activity.runnable for _, activity in counted),
        cpu_over_busiest=median(cpu / max(activity.busiest_cpu_ns, 1) for cpu, activity in counted),
        beside_ns=median(cpu - activity.busiest_cpu_ns for cpu, activity in counted),
    )


FEWEST_RUNS = 3
_MOMENT_NS = 1_000_000_000
_MOST_RUNS = 10
_MOST_RUNS_AGAIN = 25
# Runs of a few milliseconds are seen by few looks each.
_LONG_ENOUGH_NS = 60_000_000


@dataclass(frozen=True, slots=True)
class Requested:
    """Choices of the user; None where the rule decides.

    `serves`: the programs are servers, which wait for their load; `loaded`: a process is that load.
    """

    metric: Metric | None = None
    mode: Mode | None = None
    serves: bool = False
    loaded: bool = False
    scored: bool = False


@dataclass(frozen=True, slots=True)
class MetricAndMode:
    """Choice for a race. If `parallel`, variants get all CPUs; `findings` tell contradictions."""

    metric: Metric
    mode: Mode
    parallel: bool
    findings: tuple[Finding, ...] = ()


def choose(asked: Requested, does: Sequence[Behavior]) -> MetricAndMode:
    """The rule; the user's own choices go first. One program decides for all."""
    parallel = any(_needs_several_cpus(behavior, serves=asked.serves) for behavior in does)
    waiting = not asked.serves and any(behavior.waits for behavior in does)
    by_turns = parallel or waiting
    metric = Metric.SCORE if asked.scored else asked.metric
    metric = metric or (Metric.WALL if by_turns else Metric.CPU)
    # Slices have no queues and hide what waits: wall time of servers is that of whole executions.
    by_turns = by_turns or metric is Metric.SCORE or (asked.loaded and metric is Metric.WALL)
    findings: list[Finding] = []
    if asked.mode is Mode.INTERLEAVED and by_turns:
        findings.append(_interleaved_by_request(waiting=waiting, parallel=parallel))
    if asked.metric is Metric.CPU and metric is Metric.CPU and (parallel or waiting):
        findings.append(_cpu_by_request(waiting=waiting))
    mode = asked.mode or (Mode.ALTERNATING if by_turns else Mode.INTERLEAVED)
    return MetricAndMode(metric, mode, parallel, tuple(findings))


def runs_to_look_at_again(wall_ns: int, before: int) -> int:
    """Number of runs after a race that are held against it, where there were so many `before` it.

    On a machine shared with others a run may use several times its CPU time, and so may those that
    follow within a moment.
    """
    return max(min(before, FEWEST_RUNS), min(_MOST_RUNS_AGAIN, -(-_MOMENT_NS // max(wall_ns, 1))))


def runs_to_look_at(wall_ns: int, took_ns: int, allowed_ns: float) -> int:
    """Number of executions of a program to look at; with its start one takes `took_ns`.

    A single one where three would take more than is allowed: that one is looked at hundreds of
    times.
    """
    if allowed_ns / max(took_ns, 1) < FEWEST_RUNS:
        return 1
    wanted = -(-_LONG_ENOUGH_NS // max(wall_ns, 1))
    return max(FEWEST_RUNS, min(_MOST_RUNS, wanted))


def behavior_findings(
    does: Behavior, name: str, *, serves: bool, cpus: int | None = None, by_turns: bool = True
) -> tuple[Finding, ...]:
    """Findings on a program that has several busy tasks, on so many CPUs."""
    findings: list[Finding] = []
    if not _needs_several_cpus(does, serves=serves):
        return tuple(findings)
    text = (
        f"keeps {does.runnable:.1f} tasks busy at a time: it gets all CPUs"
        f"{', and its executions run whole, in turn' if by_turns else ''}"
    )
    findings.append(SEVERAL_CPUS.found(text, name))
    if serves and cpus is not None and does.runnable + 1 > cpus:
        text = (
            f"keeps {does.runnable:.1f} tasks busy at a time, and its load needs a CPU, too: "
            f"with {cpus} CPUs they take time from each other; use a machine with more"
        )
        findings.append(FEW_CPUS.found(text, name))
    return tuple(findings)


def _needs_several_cpus(does: Behavior, *, serves: bool) -> bool:
    return does.outgrows_a_cpu if serves else does.parallel


def _interleaved_by_request(*, waiting: bool, parallel: bool) -> Finding:
    if waiting:
        why = "it waits, and waiting goes on while it is stopped"
    elif parallel:
        why = "several of its tasks are busy at a time, and slices stop them together"
    else:
        why = "wall time of slices has no queues: it is not what clients of the server would see"
    return INTERLEAVED_BY_REQUEST.found(f"interleaved as requested, though {why}")


def _cpu_by_request(*, waiting: bool) -> Finding:
    why = (
        "it mostly waits: CPU time says little of how long it takes"
        if waiting
        else "several of its tasks are busy at a time: CPU time adds them up, and does not say how "
        "long it takes"
    )
    text = f"compared by CPU time as requested, though {why}"
    return CPU_BY_REQUEST.found(text)
