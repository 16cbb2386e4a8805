"""The machine of a race: which CPUs who gets, and what went on there meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ensign.host.machine import (
    CpuActivity,
    Machine,
    busy_processes,
    read_activity,
    read_machine,
    steal_share,
)
from ensign.host.machine_findings import (
    busy_findings,
    machine_facts,
    machine_findings,
    steal_findings,
)
from ensign.host.topology import allowed_cpus, default_cpus, read_topology
from ensign.model.errors import InputError
from ensign.model.finding_kinds.machine import LOAD_AVERAGE
from ensign.model.findings import Finding
from ensign.model.results import MachineFacts

if TYPE_CHECKING:
    from ensign.model.study_race import Cpus


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """CPUs of the programs under test, of load generators, and of the meter; empty: any.

    `wide` are those of the programs and of load generators where a program needs several; empty
    where these are no others.
    """

    program: tuple[int, ...] = ()
    load: tuple[int, ...] = ()
    meter: tuple[int, ...] = ()
    wide: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def widened(self) -> CpuPlan:
        """Those for programs with several busy tasks."""
        program, load = self.wide
        return replace(self, program=program or self.program, load=load or self.load)


def cpus_of_options(
    asked: tuple[int, ...] | None, *, servers: bool
) -> tuple[CpuPlan, tuple[Finding, ...]]:
    """CPUs for `compare`. InputError where the user asked for some that cannot be had."""
    allowed = allowed_cpus()
    if asked is not None and not allowed.issuperset(asked):
        missing = ", ".join(str(cpu) for cpu in asked if cpu not in allowed)
        raise InputError(f"--cpus: this machine lets ensign use no CPU {missing}")
    choice = default_cpus(allowed, read_topology())
    program = asked or choice.variants
    free = tuple(sorted(allowed.difference(program)))
    load = choice.load if asked is None else (free[-1:] or program)
    meter = choice.meter if asked is None else (free[:1] or program)
    return CpuPlan(program, load, meter), choice.findings if servers else ()


def cpus_of_study(asked: Cpus) -> tuple[CpuPlan, tuple[Finding, ...]]:
    """CPUs for a study; what its table leaves open comes from the machine."""
    allowed = allowed_cpus()
    choice = default_cpus(allowed, read_topology())
    every = tuple(sorted(allowed))
    program = tuple(asked.server or choice.variants)
    load = tuple(asked.load or choice.load)
    own = asked.server is not None or asked.load is not None
    wide = (tuple(asked.server or every), tuple(asked.load or every))
    return CpuPlan(program, load, choice.meter, wide), () if own else choice.findings


@dataclass(frozen=True, slots=True)
class MachineState:
    """One reading of the machine."""

    machine: Machine
    activity: CpuActivity

    def facts_since(self, before: MachineState) -> MachineFacts:
        """Facts of this machine, and the steal time since an earlier reading."""
        steal = steal_share(before.activity.cpus, self.activity.cpus)
        return machine_facts(self.machine, steal=None if self is before else steal)

    def findings_until(self, after: MachineState) -> tuple[Finding, ...]:
        """Doubts about the machine's state, and about what ran between the two readings."""
        steal = steal_share(self.activity.cpus, after.activity.cpus)
        busy = busy_processes(
            self.activity, after.activity, cpus=os.cpu_count() or 1, own={os.getpid()}
        )
        # The load average still remembers ensign's own builds; who was busy is read directly.
        state = (one for one in machine_findings(self.machine) if not one.is_a(LOAD_AVERAGE))
        return (
            *state,
            *steal_findings(steal),
            *busy_findings(busy),
        )


def machine_state() -> MachineState:
    """Reads the machine, now."""
    return MachineState(read_machine(), read_activity())
