"""Findings of a reading of the machine on measurements on it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ensign.host.machine import UNKNOWN, BusyProcess, Machine
from ensign.model.finding_kinds.machine import (
    ASLR,
    BUSY_MACHINE,
    GOVERNOR,
    LOAD_AVERAGE,
    LOW_MEMORY,
    SMT,
    STEAL,
    SWAP_USED,
    TURBO,
    VIRTUAL_MACHINE,
)
from ensign.model.findings import Finding
from ensign.model.results import MachineFacts
from ensign.model.units import format_size

_FULL_ASLR = "2"
# A machine with this share of its CPUs in use has other work than the race.
_HIGH_LOAD_PER_CPU = 0.5
_LOW_MEMORY = 0.1
_USED_SWAP = 0.1
_STEAL = 0.01
_BUSY = 0.05
_MOST_NAMED = 3


def machine_facts(machine: Machine, *, steal: float | None = None) -> MachineFacts:
    """The facts for reports; `steal` is the share while it was measured, if it was."""
    cpu, system, memory = machine.processor, machine.system, machine.memory
    facts = {
        "CPU": cpu.model,
        "cores": f"{cpu.cores} cores, {cpu.cpus} CPUs",
        "SMT": cpu.smt,
        "caches": ", ".join(cpu.caches) or UNKNOWN,
        "microcode": cpu.microcode,
        "governor": ", ".join(cpu.governors) or UNKNOWN,
        "turbo": cpu.turbo,
        "virtual machine": cpu.hypervisor or "no",
        "host": system.host,
        "memory": format_size(memory.total_bytes),
        "swap": format_size(memory.swap_bytes) if memory.swap_bytes else "none",
        "kernel": system.kernel,
        "timer": system.timer,
        "preemption": system.preemption,
        "distribution": system.distribution,
        "libc": system.libc,
        "ASLR": {"0": "off", "1": "partial", "2": "full"}.get(system.aslr, system.aslr),
        "transparent huge pages": system.huge_pages,
        "load average": f"{system.load_average:.2f}",
        "mitigations": _mitigations(cpu.mitigations),
    }
    if steal is not None:
        facts["steal"] = f"{steal * 100:.1f} %"
    return MachineFacts(tuple(facts.items()))


def machine_findings(machine: Machine) -> tuple[Finding, ...]:
    """Findings on the machine's state that make measurements worse, with remedies."""
    return (*_of_processor(machine), *_of_system(machine), *_of_memory(machine))


def steal_findings(steal: float) -> tuple[Finding, ...]:
    """A warning where the hypervisor took more than 1 % of the running time."""
    if steal < _STEAL:
        return ()
    text = (
        f"steal {steal * 100:.0f} %: the hypervisor ran other machines on these CPUs; "
        "interleaving evens that out, but intervals get wider"
    )
    return (STEAL.found(text),)


def busy_findings(busy: Iterable[BusyProcess]) -> tuple[Finding, ...]:
    """A warning that names the processes that used more than 5 % of a CPU."""
    loud = [process for process in busy if process.share >= _BUSY][:_MOST_NAMED]
    if not loud:
        return ()
    names = ", ".join(f"{p.name} ({p.pid}) {p.share * 100:.0f} %" for p in loud)
    text = f"other processes use CPU: {names}; stop them for narrower intervals"
    return (BUSY_MACHINE.found(text),)


def _of_processor(machine: Machine) -> Iterator[Finding]:
    cpu = machine.processor
    slow = [name for name in cpu.governors if name != "performance"]
    if slow:
        text = (
            f"governor is {', '.join(slow)}: the clock follows the load; "
            "'cpupower frequency-set -g performance' (package linux-cpupower) fixes it"
        )
        yield GOVERNOR.found(text)
    if cpu.turbo == "on" and not cpu.hypervisor:
        text = "turbo is on: the clock depends on temperature and on the other cores"
        yield TURBO.found(text)
    if cpu.smt == "on":
        text = "SMT is on: two CPUs share a core; ensign uses one CPU per core"
        yield SMT.found(text)
    if cpu.hypervisor:
        text = "a virtual machine: its speed drifts with its neighbors; trust interleaved runs only"
        yield VIRTUAL_MACHINE.found(text)


def _of_system(machine: Machine) -> Iterator[Finding]:
    system = machine.system
    if system.aslr not in (_FULL_ASLR, UNKNOWN):
        text = (
            "address-space randomization is not full: executions share one layout, intervals do "
            "not cover others; 'sysctl kernel.randomize_va_space=2' turns it on"
        )
        yield ASLR.found(text)
    cpus = max(machine.processor.cpus, 1)
    if system.load_average / cpus >= _HIGH_LOAD_PER_CPU:
        text = f"load average {system.load_average:.1f} on {cpus} CPUs: other programs are running"
        yield LOAD_AVERAGE.found(text)


def _of_memory(machine: Machine) -> Iterator[Finding]:
    memory = machine.memory
    if memory.available_bytes < memory.total_bytes * _LOW_MEMORY:
        text = (
            f"only {format_size(memory.available_bytes)} of {format_size(memory.total_bytes)} "
            "of memory is free: programs may be swapped or killed"
        )
        yield LOW_MEMORY.found(text)
    if memory.swap_bytes and memory.swap_used_bytes >= memory.swap_bytes * _USED_SWAP:
        text = f"{format_size(memory.swap_used_bytes)} of swap is in use: memory has been short"
        yield SWAP_USED.found(text)


def _mitigations(pairs: Iterable[tuple[str, str]]) -> str:
    told = [f"{name}: {state}" for name, state in pairs if state != "Not affected"]
    return "; ".join(told) or "none needed"
