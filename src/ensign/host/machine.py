"""What this machine is: read from `/proc`, `/sys` and `/etc` under a root folder."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ensign.host.topology import read_topology
from ensign.model.environment_sheet import registers_text
from ensign.model.instructions import LEVELS, ProcessorSets, sets_of


@dataclass(frozen=True, slots=True)
class Processor:
    """What it has; `identity` differs where code made for "this processor" might.

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
        """Which of the features of a target are missing here; none for other names."""
        return tuple(sorted(self.sets.lacking(LEVELS.get(target, frozenset()))))


def read_cpuinfo(root: Path = Path("/")) -> str:
    """The text of /proc/cpuinfo; empty where there is no such file."""
    try:
        return (root / "proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return ""


def flags_of_all(cpuinfo: str) -> frozenset[str]:
    """What every processor in the text of /proc/cpuinfo has; empty where it is no such text."""
    fields = (_pair(line) for line in cpuinfo.splitlines() if ":" in line)
    each = [frozenset(value.split()) for name, value in fields if name == "flags"]
    return frozenset.intersection(*each) if each else frozenset()


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
    """The operating system. `aslr` is `randomize_va_space`; `huge_pages` the chosen word."""

    kernel: str
    distribution: str
    libc: str
    aslr: str
    huge_pages: str
    load_average: float


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
    found = []
    for index in sorted(folder.glob("index[0-9]*")):
        kind = _text(index / "type").lower()
        name = f"L{_text(index / 'level')}" + ("" if kind == "unified" else f" {kind}")
        found.append(f"{name} {_text(index / 'size')}")
    return tuple(found)


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
    return System(
        kernel=_text(root / "proc/sys/kernel/osrelease") or UNKNOWN,
        distribution=_distribution(_text(root / "etc/os-release")),
        libc=libc,
        aslr=_text(root / "proc/sys/kernel/randomize_va_space") or UNKNOWN,
        huge_pages=_chosen(_text(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        load_average=float(load[0]) if load and _DECIMAL.fullmatch(load[0]) else 0.0,
    )


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
        found = _AMOUNT.match(line)
        if found is not None:
            kib[found[1]] = int(found[2])
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
    except OSError:
        return ""
