"""Description of this machine: read from `/proc`, `/sys` and `/etc` under a root folder."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import os
import re
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ensign.host.topology import read_topology
from ensign.model.instructions import LEVELS, ProcessorSets, registers_text, sets_of

_PROC_ROOT = Path("/")
_PREEMPTION = {
    "none": "PREEMPT_NONE",
    "voluntary": "PREEMPT_VOLUNTARY",
    "full": "PREEMPT",
    "lazy": "PREEMPT_LAZY",
    "real-time": "PREEMPT_RT",
}
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


def read_activity(root: Path = _PROC_ROOT) -> CpuActivity:
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
    processes = [
        BusyProcess(
            process.pid,
            process.name,
            (process.ticks - earlier.get((process.pid, process.name), 0)) / elapsed,
        )
        for process in after.processes
        if process.pid not in own and not process.kernel
    ]
    return tuple(
        sorted((busy for busy in processes if busy.share > 0), key=lambda busy: -busy.share)
    )


@dataclass(frozen=True, slots=True)
class Processor:
    """Features; `identity` differs where code made for "this processor" might.

    `registers` are those of `cpuid` that show features, as the meter names them.
    """

    sets: ProcessorSets
    identity: str
    registers: Mapping[str, int] = field(default_factory=dict)

    @property
    def flags(self) -> frozenset[str]:
        """The names of all that it is known to have."""
        return self.sets.names

    def lacks(self, target: str) -> tuple[str, ...]:
        """Features of a target that are missing here; none for other names."""
        return tuple(sorted(self.sets.lacking(LEVELS.get(target, frozenset()))))


def read_cpuinfo(root: Path = Path("/")) -> str:
    """The text of /proc/cpuinfo; empty where there is no such file."""
    try:
        return (root / "proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return ""


def flags_of_all(cpuinfo: str) -> frozenset[str]:
    """Features of every processor in the text of /proc/cpuinfo; empty where it is no such text."""
    fields = (_pair(line) for line in cpuinfo.splitlines() if ":" in line)
    flag_sets = [frozenset(value.split()) for name, value in fields if name == "flags"]
    return frozenset.intersection(*flag_sets) if flag_sets else frozenset()


def processor_of(cpuinfo: str, registers: Mapping[str, int] | None = None) -> Processor:
    """The first processor of the text of /proc/cpuinfo, with what `cpuid` says of it."""
    registers = registers or {}
    first = cpuinfo.split("\n\n", 1)[0]
    fields = dict(_pair(line) for line in first.splitlines() if ":" in line)
    flags = frozenset(fields.get("flags", "").split())
    naming = ("vendor_id", "cpu family", "model", "stepping")
    parts = [*(fields.get(name, "") for name in naming), *sorted(flags)]
    parts.append(registers_text(registers))
    identity = hashlib.sha256(" ".join(parts).encode()).hexdigest()
    sets = ProcessorSets(flags | sets_of(registers), whole=bool(registers))
    return Processor(sets, identity, registers)


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


_AMOUNT = re.compile(r"(\w+):\s*([0-9]{1,18})\b")
_DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_ROOT = Path("/")
_CPUS = "sys/devices/system/cpu"
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes."""

    total_bytes: int
    available_bytes: int
    swap_bytes: int
    swap_used_bytes: int


@dataclass(frozen=True, slots=True)
class ProcessorFacts:
    """The CPU. `caches` as `L1 data 32K`, of the first CPU; `governors` of all CPUs, distinct.

    `smt` and `turbo` are `on`, `off` or `unknown`; `hypervisor` is empty on bare metal.
    """

    model: str
    cpus: int
    cores: int
    microcode: str
    caches: tuple[str, ...]
    mitigations: tuple[tuple[str, str], ...]
    governors: tuple[str, ...]
    turbo: str
    smt: str
    hypervisor: str


@dataclass(frozen=True, slots=True)
class System:
    """The operating system. `aslr` is `randomize_va_space`; `huge_pages` the chosen word.

    `host` names it to others of its fleet, without telling the machine's own id: equal where that
    and the name of the host are equal (machine-id(5) asks for such a hash).

    `timer` is the frequency of the kernel's ticks, `preemption` how it may take a CPU from itself.
    """

    kernel: str
    distribution: str
    libc: str
    aslr: str
    huge_pages: str
    load_average: float
    timer: str = UNKNOWN
    preemption: str = UNKNOWN
    host: str = UNKNOWN


@dataclass(frozen=True, slots=True)
class Machine:
    """One reading of a machine."""

    processor: ProcessorFacts
    system: System
    memory: Memory


def read_machine(root: Path = _ROOT, *, libc: str | None = None) -> Machine:
    """Read all facts; what the machine does not tell is `unknown` or 0."""
    return Machine(_processor(root), _system(root, libc or _libc()), _memory(root))


def _processor(root: Path) -> ProcessorFacts:
    fields = _first_of_cpuinfo(_text(root / "proc/cpuinfo"))
    topology = read_topology(root)
    base = root / _CPUS
    governors = {_text(path) for path in base.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return ProcessorFacts(
        model=_model(fields),
        cpus=len(topology.cpus),
        cores=topology.cores,
        microcode=fields.get("microcode", UNKNOWN),
        caches=_caches(base / "cpu0/cache"),
        mitigations=tuple(
            (path.name, _text(path)) for path in sorted(base.glob("vulnerabilities/*"))
        ),
        governors=tuple(sorted(governors - {""})),
        turbo=_turbo(base),
        smt=_smt(_text(base / "smt/control"), siblings=len(topology.cpus) > topology.cores),
        hypervisor=_hypervisor(root, fields.get("flags", "")),
    )


def _first_of_cpuinfo(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _model(fields: dict[str, str]) -> str:
    if "model name" in fields:
        return fields["model name"]
    if "CPU part" in fields:  # VARIANT names no model
        return f"CPU implementer {fields.get('CPU implementer', '?')} part {fields['CPU part']}"
    return fields.get("cpu", UNKNOWN)


def _caches(folder: Path) -> tuple[str, ...]:
    caches = []
    for index in sorted(folder.glob("index[0-9]*")):
        kind = _text(index / "type").lower()
        name = f"L{_text(index / 'level')}" + ("" if kind == "unified" else f" {kind}")
        caches.append(f"{name} {_text(index / 'size')}")
    return tuple(caches)


def _turbo(base: Path) -> str:
    words = {"intel_pstate/no_turbo": ("on", "off"), "cpufreq/boost": ("off", "on")}
    for place, (zero, one) in words.items():
        value = _text(base / place)
        if value in ("0", "1"):
            return one if value == "1" else zero
    return UNKNOWN


def _smt(control: str, *, siblings: bool) -> str:
    if control == "on" or siblings:
        return "on"
    return "off" if control in ("off", "forceoff", "notsupported", "notimplemented") else UNKNOWN


def _hypervisor(root: Path, flags: str) -> str:
    named = _text(root / "sys/hypervisor/type") or _text(root / "sys/class/dmi/id/sys_vendor")
    if "hypervisor" in flags.split() or (root / "sys/hypervisor/type").exists():
        return named or "virtual machine"
    return ""


def _system(root: Path, libc: str) -> System:
    load = _text(root / "proc/loadavg").split()
    release = _text(root / "proc/sys/kernel/osrelease")
    config = _kernel_config(root, release)
    hz = config.get("HZ", "")
    return System(
        kernel=release or UNKNOWN,
        timer=f"{hz} Hz" if hz else UNKNOWN,
        preemption=_preemption(config, _text(root / "proc/cmdline")),
        distribution=_distribution(_text(root / "etc/os-release")),
        libc=libc,
        aslr=_text(root / "proc/sys/kernel/randomize_va_space") or UNKNOWN,
        huge_pages=_chosen(_text(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        host=_host(_text(root / "etc/machine-id"), _text(root / "proc/sys/kernel/hostname")),
        load_average=float(load[0]) if load and _DECIMAL.fullmatch(load[0]) else 0.0,
    )


def _host(machine_id: str, name: str) -> str:
    """Systems of one image may have one id, so the name counts, too."""
    if not machine_id:
        return UNKNOWN
    return hmac.new(machine_id.encode(), f"ensign {name}".encode(), "sha256").hexdigest()[:12]


def _kernel_config(root: Path, release: str) -> dict[str, str]:
    """What the kernel was configured with, where it or its package says so."""
    try:
        text = gzip.decompress((root / "proc/config.gz").read_bytes()).decode(errors="replace")
    except (OSError, EOFError, zlib.error):
        text = _text(root / f"boot/config-{release}") if release else ""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name.removeprefix("CONFIG_"): value for name, _, value in pairs}


def _preemption(config: Mapping[str, str], command_line: str) -> str:
    """A kernel whose model is chosen at its start has it on its command line, or the usual one."""
    usual = next((name for name, key in _PREEMPTION.items() if config.get(key) == "y"), UNKNOWN)
    if config.get("PREEMPT_DYNAMIC") != "y":
        return usual
    words = (word.partition("=") for word in command_line.split())
    return {key: value for key, _, value in words}.get("preempt", usual)


def _distribution(text: str) -> str:
    pairs = (line.partition("=") for line in text.splitlines())
    values = {name: value.strip().strip("\"'") for name, _, value in pairs}
    return values.get("PRETTY_NAME") or values.get("ID") or UNKNOWN


def _chosen(text: str) -> str:
    before, bracket, rest = text.partition("[")
    return rest.partition("]")[0] if bracket else before or UNKNOWN


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or UNKNOWN
    except (OSError, ValueError):
        return UNKNOWN


def _memory(root: Path) -> Memory:
    kib: dict[str, int] = {}
    for line in _text(root / "proc/meminfo").splitlines():
        match = _AMOUNT.match(line)
        if match is not None:
            kib[match[1]] = int(match[2])
    swap = kib.get("SwapTotal", 0)
    return Memory(
        total_bytes=kib.get("MemTotal", 0) * 1024,
        available_bytes=kib.get("MemAvailable", 0) * 1024,
        swap_bytes=swap * 1024,
        swap_used_bytes=(swap - kib.get("SwapFree", swap)) * 1024,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (OSError, ValueError):  # a name with a NUL is none
        return ""
