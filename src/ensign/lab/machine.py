"""The machine around a race: who sits on which CPU, and what went on meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ensign.host.cpu_times import Activity, busy_processes, read_activity, steal_share
from ensign.host.machine import Machine, read_machine
from ensign.host.machine_findings import (
    busy_findings,
    machine_facts,
    machine_findings,
    steal_findings,
)
from ensign.host.topology import allowed_cpus, default_cpus, read_topology
from ensign.lab.compare.arms import CpuPlan
from ensign.lab.study.arms import Seats
from ensign.model.errors import InputError
from ensign.model.findings import Finding
from ensign.model.results import MachineFacts
from ensign.model.study import Cpus


@dataclass(frozen=True, slots=True)
class MachineState:
    """One reading of the machine."""

    machine: Machine
    activity: Activity

    def facts_since(self, before: MachineState) -> MachineFacts:
        """What this machine is, and the steal time since an earlier reading."""
        steal = steal_share(before.activity.cpus, self.activity.cpus)
        return machine_facts(self.machine, steal=None if self is before else steal)

    def findings_until(self, after: MachineState) -> tuple[Finding, ...]:
        """Doubts about the machine's state, and about what ran between the two readings."""
        steal = steal_share(self.activity.cpus, after.activity.cpus)
        busy = busy_processes(
            self.activity, after.activity, cpus=os.cpu_count() or 1, own={os.getpid()}
        )
        # The load average still remembers ensign's own builds; who was busy is read directly.
        state = (one for one in machine_findings(self.machine) if one.code != "load-average")
        return (
            *state,
            *steal_findings(steal),
            *busy_findings(busy),
        )


def machine_state() -> MachineState:
    """Reads the machine, now."""
    return MachineState(read_machine(), read_activity())


def cpu_plan(
    asked: tuple[int, ...] | None, *, servers: bool
) -> tuple[CpuPlan, tuple[Finding, ...]]:
    """CPUs for `compare`. InputError where the user asked for some that cannot be had."""
    allowed = allowed_cpus()
    if asked is not None and not allowed.issuperset(asked):
        missing = ", ".join(str(cpu) for cpu in asked if cpu not in allowed)
        raise InputError(f"--cpus: this machine lets ensign use no CPU {missing}")
    choice = default_cpus(allowed, read_topology())
    arms = asked or choice.arms
    free = tuple(sorted(allowed.difference(arms)))
    load = choice.load if asked is None else (free[-1:] or arms)
    meter = choice.meter if asked is None else (free[:1] or arms)
    return CpuPlan(arms, load, meter), choice.findings if servers else ()


def cpu_seats(asked: Cpus) -> tuple[Seats, tuple[Finding, ...]]:
    """CPUs for a study; what its table leaves open comes from the machine."""
    allowed = allowed_cpus()
    choice = default_cpus(allowed, read_topology())
    every = tuple(sorted(allowed))
    program = tuple(asked.server or choice.arms)
    load = tuple(asked.load or choice.load)
    own = asked.server is not None or asked.load is not None
    wide = (tuple(asked.server or every), tuple(asked.load or every))
    return Seats(program, load, choice.meter, wide), () if own else choice.findings
