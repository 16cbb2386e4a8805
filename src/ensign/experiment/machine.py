"""The machine around a race, and what went on there meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ensign.host.cpu_times import CpuActivity, busy_processes, read_activity, steal_share
from ensign.host.machine import Machine, read_machine
from ensign.host.machine_findings import (
    busy_findings,
    machine_facts,
    machine_findings,
    steal_findings,
)
from ensign.model.finding_kinds.machine import LOAD_AVERAGE
from ensign.model.findings import Finding
from ensign.model.results import MachineFacts


@dataclass(frozen=True, slots=True)
class MachineState:
    """One reading of the machine."""

    machine: Machine
    activity: CpuActivity

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
        state = (one for one in machine_findings(self.machine) if not one.is_a(LOAD_AVERAGE))
        return (
            *state,
            *steal_findings(steal),
            *busy_findings(busy),
        )


def machine_state() -> MachineState:
    """Reads the machine, now."""
    return MachineState(read_machine(), read_activity())
