"""The CPUs, which share a core, and which of them should do what."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ensign.model.finding_kinds.machine import ONE_CORE, TWO_CORES
from ensign.model.findings import Finding

_ROOT = Path("/")
_CPUS = "sys/devices/system/cpu"
_RANGE = re.compile(r"(?<![^\s,])([0-9]{1,6})(?:-([0-9]{1,6}))?(?=[,\s]|$)")
# As many as Linux is built for on x86-64, at most.
_MOST_CPUS = 1 << 13


@dataclass(frozen=True, slots=True)
class Cpu:
    """A CPU as the system counts it. `siblings` share its core, itself included.

    `capacity` is larger for faster cores, comparable on one machine only; 0 where unknown.
    """

    number: int
    package: int
    siblings: frozenset[int]
    capacity: int = 0


@dataclass(frozen=True, slots=True)
class Topology:
    """The online CPUs, by number."""

    cpus: tuple[Cpu, ...]

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the online CPUs."""
        return frozenset(cpu.number for cpu in self.cpus)

    @property
    def cores(self) -> int:
        """Physical cores (as far as a virtual machine shows them)."""
        return len({cpu.siblings for cpu in self.cpus})


@dataclass(frozen=True, slots=True)
class CpuChoice:
    """CPUs of the programs under test, of load generators, and of the meter and ensign."""

    variants: tuple[int, ...]
    load: tuple[int, ...]
    meter: tuple[int, ...]
    findings: tuple[Finding, ...] = ()


def allowed_cpus() -> frozenset[int]:
    """The CPUs that this process may use."""
    return frozenset(os.sched_getaffinity(0))


def read_topology(root: Path = _ROOT) -> Topology:
    """The CPUs of the machine whose `sys` is in `root`."""
    base = root / _CPUS
    numbers = cpu_list(_text(base / "online"))
    return Topology(tuple(_read_cpu(base / f"cpu{number}", number) for number in sorted(numbers)))


def cpu_list(text: str) -> frozenset[int]:
    """The numbers of a list as the kernel writes it: `0-3,8`; what is none is passed over. Pure."""
    numbers: set[int] = set()
    for part in _RANGE.finditer(text):
        first, last = int(part[1]), int(part[2] or part[1])
        numbers.update(range(first, min(last, _MOST_CPUS) + 1))
    return frozenset(numbers)


def default_cpus(allowed: Iterable[int], topology: Topology) -> CpuChoice:
    """Choose CPUs, one per core, never two threads of one core. Pure.

    The variants get the last core (CPU 0 has the most interrupts) among the fastest; the load the
    one before it, of the same package if there is one; the meter the first that is left. With two
    cores, load and meter share the first; with one, everything shares a CPU, and a finding says so.
    """
    cores = _one_cpu_per_core(frozenset(allowed), topology)
    variants = cores[-1]
    others = cores[:-1]
    if not others:
        return _all_on(variants)
    beside = [cpu for cpu in others if cpu.package == variants.package] or others
    load = beside[-1]
    free = [cpu for cpu in others if cpu is not load]
    meter = min(free or [load], key=lambda cpu: cpu.number)
    findings = () if free else (_two_cores(variants.number, load.number),)
    return CpuChoice((variants.number,), (load.number,), (meter.number,), findings)


def _one_cpu_per_core(allowed: frozenset[int], topology: Topology) -> list[Cpu]:
    known = [cpu for cpu in topology.cpus if cpu.number in allowed]
    if not known:  # no topology to be had: then each CPU may be a core
        known = [Cpu(number, 0, frozenset((number,))) for number in allowed]
    first_of_core = [
        cpu for cpu in known if cpu.number == min(cpu.siblings & allowed, default=cpu.number)
    ]
    return sorted(first_of_core, key=lambda cpu: (cpu.capacity, cpu.number))


def _all_on(cpu: Cpu) -> CpuChoice:
    only = (cpu.number,)
    text = (
        f"one core (CPU {cpu.number}) for programs, load generators and the meter: "
        "they take time from each other; use a machine with two cores or more"
    )
    return CpuChoice(only, only, only, (ONE_CORE.found(text),))


def _two_cores(variants: int, load: int) -> Finding:
    text = (
        f"two cores: programs run on CPU {variants}; load generators and the meter share CPU {load}"
    )
    return TWO_CORES.found(text)


def _read_cpu(folder: Path, number: int) -> Cpu:
    siblings = cpu_list(_text(folder / "topology/thread_siblings_list")) or frozenset((number,))
    package = _text(folder / "topology/physical_package_id")
    capacity = _text(folder / "cpu_capacity") or _text(folder / "cpufreq/cpuinfo_max_freq")
    return Cpu(
        number=number,
        package=int(package) if package.lstrip("-").isdigit() else 0,
        siblings=siblings,
        capacity=int(capacity) if capacity.isdigit() else 0,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
