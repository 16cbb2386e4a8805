"""How a program behaves in unmeasured executions, and what follows for metric and mode. Pure.

The rule is stated in docs/background/metric-and-mode.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ensign.model.trials import TaskActivity

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
class Behaviour:
    """What the executions of one program (or server) have in common.

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


COMPUTES = Behaviour(0.0, 0.0, 1.0, 1.0, 0.0)


def behaviour_of(runs: Sequence[tuple[int, TaskActivity | None]]) -> Behaviour:
    """From CPU time (ns) and activity of each execution: medians, so that no single one decides.

    What was hardly looked at is taken for a program that computes.
    """
    seen = [(cpu_ns, each) for cpu_ns, each in runs if each is not None]
    if sum(each.looks for _, each in seen) < _FEWEST_LOOKS:
        return COMPUTES
    counted = [pair for pair in seen if pair[1].looks >= _LOOKS_THAT_COUNT] or seen
    return Behaviour(
        idle_share=median(each.idle_share for _, each in counted),
        idle_ns=median(each.idle_ns for _, each in counted),
        runnable=median(each.runnable for _, each in counted),
        cpu_over_busiest=median(cpu / max(each.busiest_cpu_ns, 1) for cpu, each in counted),
        beside_ns=median(cpu - each.busiest_cpu_ns for cpu, each in counted),
    )
