"""Who used the CPUs between two readings: this machine's programs, or its hypervisor's others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path("/")
# proc(5), /proc/stat: user nice system idle iowait irq softirq steal (guest is part of user)
_KTHREADD = 2  # parent of the kernel's threads
_IDLE, _IOWAIT, _STEAL, _FIELDS = 3, 4, 7, 8


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Clock ticks since boot, over all CPUs: in all, idle, and stolen by the hypervisor."""

    total: int
    idle: int
    steal: int


@dataclass(frozen=True, slots=True)
class ProcessTime:
    """CPU time of one process since it began, in clock ticks; `kernel` for the kernel's own."""

    pid: int
    name: str
    ticks: int
    kernel: bool = False


@dataclass(frozen=True, slots=True)
class CpuActivity:
    """One reading: all CPUs, and each process."""

    cpus: CpuTimes
    processes: tuple[ProcessTime, ...]


@dataclass(frozen=True, slots=True)
class BusyProcess:
    """A process and how much of one CPU it used between two readings (1.0 is a whole one)."""

    pid: int
    name: str
    share: float


def read_activity(root: Path = _ROOT) -> CpuActivity:
    """Read `/proc/stat` and every `/proc/PID/stat`."""
    processes = []
    for path in (root / "proc").glob("[0-9]*/stat"):
        try:
            processes.append(parse_process(path.read_text(encoding="utf-8", errors="replace")))
        except (OSError, ValueError, IndexError):
            continue  # it ended meanwhile
    return CpuActivity(
        parse_stat((root / "proc/stat").read_text(encoding="utf-8", errors="replace")),
        tuple(processes),
    )


def parse_stat(text: str) -> CpuTimes:
    """The sums of the first line of `/proc/stat`. Pure."""
    words = text.partition("\n")[0].split()[1 : _FIELDS + 1]
    values = [int(word) for word in words if word.isascii() and word.isdigit()]
    values += [0] * (_FIELDS - len(values))
    return CpuTimes(sum(values), values[_IDLE] + values[_IOWAIT], values[_STEAL])


def parse_process(text: str) -> ProcessTime:
    """One `/proc/PID/stat`; the name is in parentheses and may hold anything. Pure."""
    pid, _, rest = text.partition(" (")
    name, _, fields = rest.rpartition(") ")
    _state, parent, *rest_of_fields = fields.split()
    utime, stime = rest_of_fields[9:11]
    kernel = _KTHREADD in (int(pid), int(parent))
    return ProcessTime(int(pid), name, int(utime) + int(stime), kernel)


def steal_share(before: CpuTimes, after: CpuTimes) -> float:
    """Share of the time in which a CPU wanted to run and the hypervisor ran others. Pure.

    Idle time does not count: an idle machine is not robbed. 0 where nothing ran.
    """
    ran = (after.total - before.total) - (after.idle - before.idle)
    stolen = after.steal - before.steal
    return stolen / ran if ran > 0 and stolen > 0 else 0.0


def busy_processes(
    before: CpuActivity, after: CpuActivity, *, cpus: int, own: Collection[int] = ()
) -> tuple[BusyProcess, ...]:
    """Processes by the share of one CPU that they used between two readings, most first. Pure.

    The kernel's threads work for others and cannot be stopped: they are left out. `own` are more
    process ids to leave out; `cpus` how many CPUs `/proc/stat` adds up.
    """
    elapsed = (after.cpus.total - before.cpus.total) / max(cpus, 1)
    earlier = {(process.pid, process.name): process.ticks for process in before.processes}
    if elapsed <= 0:
        return ()
    found = [
        BusyProcess(
            process.pid,
            process.name,
            (process.ticks - earlier.get((process.pid, process.name), 0)) / elapsed,
        )
        for process in after.processes
        if process.pid not in own and not process.kernel
    ]
    return tuple(sorted((busy for busy in found if busy.share > 0), key=lambda busy: -busy.share))
