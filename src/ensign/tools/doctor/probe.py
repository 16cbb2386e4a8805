"""Looking at the machine for `ensign doctor`; what it means is for `judge`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ensign.experiment.study.networks import network_obstacle
from ensign.host.cache import cache_folder
from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement_probe import Confinement, usual_confinement
from ensign.host.machine import (
    BusyProcess,
    Machine,
    busy_processes,
    read_activity,
    read_machine,
    steal_share,
)
from ensign.host.programs import LocalPrograms, Programs
from ensign.host.topology import CpuChoice, allowed_cpus, default_cpus, read_topology
from ensign.meter.client import LocalMeter, Meter, find_meter
from ensign.meter.questions import MeterAbilities, read_abilities
from ensign.model.errors import InternalError
from ensign.toolchains.table import COMPILERS, PROFILERS
from ensign.tools.doctor.noise import Noise, measure_noise

LINKERS = r"ld\.bfd|ld\.gold|ld\.lld(-\d+)?|mold"
BUILD_TOOLS = ("make", "cmake", "ninja", "tclsh", "dpkg-source")
OTHERS = ("hyperfine", "gzip", "git")
ROOT_MAKERS = ("mmdebstrap", "debootstrap")


_RUNTIMES = {
    "profile": "usr/lib/llvm-{version}/lib/clang/*/lib/*/libclang_rt.profile*.a",
    "bolt": "usr/lib/llvm-{version}/lib/libbolt_rt_instr.a",
}
_SILENT = frozenset({"tclsh"})  # takes --version for a script


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is there: its name on the search path, and what it says of its version."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class SandboxFacts:
    """`works` is whether bubblewrap could start a program; `said` is what it said if not.

    `no_networks` is why programs that are raced can have no network of their own; empty if they
    can.
    """

    found: bool
    works: bool
    said: str
    no_networks: str = ""


@dataclass(frozen=True, slots=True)
class Installer:
    """Way to install packages here: by apt, as root or not.

    `packages` can be installed; empty where that is not known.
    """

    apt: bool
    root: bool
    packages: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything that was looked at. `runtimes` are pairs of kind and LLVM version.

    `abilities` is a text where the meter gave no answer; `noise` is None where it was not asked.
    """

    programs: tuple[Program, ...]
    runtimes: tuple[tuple[str, str], ...]
    sandbox: SandboxFacts
    installer: Installer
    machine: Machine
    cpus: CpuChoice
    paranoid: str
    cache_folder: str
    cache_free_bytes: int
    abilities: MeterAbilities | str
    noise: Noise | None
    steal: float
    busy: tuple[BusyProcess, ...]


@dataclass(frozen=True, slots=True)
class DoctorPorts:
    """The subject of an examination, and its ports."""

    programs: Programs = field(default_factory=LocalPrograms)
    meter: Meter = field(default_factory=LocalMeter)
    abilities: Callable[[], MeterAbilities] = field(default=lambda: read_abilities(find_meter()))
    root: Path = Path("/")
    cache_folder: Path = field(default_factory=lambda: cache_folder(os.environ))


def examine(ports: DoctorPorts, *, race: bool) -> Examination:
    """Look at everything; with `race` for two seconds longer."""
    machine = read_machine(ports.root)
    cpus = default_cpus(allowed_cpus(), read_topology(ports.root))
    before = read_activity(ports.root)
    programs = tuple(_programs(ports.programs))
    abilities = _abilities(ports)
    can_race = race and isinstance(abilities, MeterAbilities)
    # By its path: the meter would find one of the current folder, where PATH has that.
    gzip = str(ports.programs.find("gzip") or "/usr/bin/gzip")
    noise = measure_noise(ports.meter, gzip, cpus) if can_race else None
    after = read_activity(ports.root)
    existing = _existing(ports.cache_folder)
    return Examination(
        programs=programs,
        runtimes=tuple(_runtimes(ports.root, programs)),
        sandbox=_sandbox(ports.programs),
        installer=Installer(
            ports.programs.find("apt-get") is not None,
            os.geteuid() == 0,
            ports.programs.packages(),
        ),
        machine=machine,
        cpus=cpus,
        paranoid=_line(ports.root / "proc/sys/kernel/perf_event_paranoid"),
        cache_folder=str(ports.cache_folder),
        cache_free_bytes=shutil.disk_usage(existing).free,
        abilities=abilities,
        noise=noise,
        steal=steal_share(before.cpus, after.cpus),
        busy=busy_processes(before, after, cpus=machine.processor.cpus, own=(os.getpid(),)),
    )


def _programs(programs: Programs) -> Iterable[Program]:
    names = [
        *programs.matching(COMPILERS),
        *programs.matching(LINKERS),
        *programs.matching(PROFILERS),
        *(name for name in (*BUILD_TOOLS, *OTHERS, *ROOT_MAKERS) if programs.find(name)),
    ]
    for name in names:
        answer = programs.ask((name, "--version")) if name not in _SILENT else None
        yield Program(name, answer.line if answer is not None and answer.success else "")


def _runtimes(root: Path, programs: Iterable[Program]) -> Iterable[tuple[str, str]]:
    versions = {
        program.name.rpartition("-")[2] for program in programs if program.name[-1:].isdigit()
    }
    for kind, pattern in _RUNTIMES.items():
        for version in sorted(versions):
            if any(root.glob(pattern.format(version=version))):
                yield kind, version


def _sandbox(programs: Programs) -> SandboxFacts:
    if programs.find("bwrap") is None:
        no_networks = _no_networks(programs, confined=False)
        return SandboxFacts(found=False, works=False, said="", no_networks=no_networks)
    confinement = Confinement("bwrap", root=os.geteuid() == 0)
    argv = confinement.argv(ConfinementRequest(os.defpath, os.environ.get("HOME", "")))
    answer = programs.ask((*argv, "true"))
    return SandboxFacts(
        found=True,
        works=answer.success,
        said=answer.line,
        no_networks=_no_networks(programs, confined=answer.success),
    )


def _no_networks(programs: Programs, *, confined: bool) -> str:
    try:
        meter = find_meter()
    except InternalError as error:
        return str(error)
    root = os.geteuid() == 0
    within = usual_confinement("bwrap", root=root, meter=meter) if confined else Confinement()
    return network_obstacle(programs, within, os.environ)


def _abilities(ports: DoctorPorts) -> MeterAbilities | str:
    try:
        return ports.abilities()
    except InternalError as error:
        return str(error)


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
