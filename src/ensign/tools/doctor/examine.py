"""`ensign doctor` from look to judgment, with the compilers of a study where one is named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.experiment.study.networks import NETWORKS_REMEDY
from ensign.experiment.study.request_problems import require_requests
from ensign.experiment.study_file import StudyFile, read_study
from ensign.host.machine_findings import (
    busy_findings,
    machine_facts,
    machine_findings,
    steal_findings,
)
from ensign.host.programs import Programs
from ensign.host.topology import read_topology
from ensign.meter.questions import MeterAbilities
from ensign.model.checkup import Checkup, CheckupLine, Status
from ensign.model.errors import InternalError
from ensign.model.units import format_size
from ensign.toolchains.table import BOLT, absent, newest, package_of
from ensign.tools.doctor.noise import Noise
from ensign.tools.doctor.probe import (
    BUILD_TOOLS,
    LINKERS,
    ROOT_MAKERS,
    DoctorPorts,
    Examination,
    Installer,
    Program,
    SandboxFacts,
    examine,
)

_LITTLE_DISK_BYTES = 5 * 2**30
_GOOD_HALF_WIDTH = 0.01
_GOOD_RUNNING_SHARE = 0.97
_PARANOID_FOR_USERS = 2
_PACKAGES = {
    "perf": "linux-perf",
    "ninja": "ninja-build",
    "tclsh": "tcl",
    "dpkg-source": "dpkg-dev",
    "bwrap": "bubblewrap",
    "gzip": "gzip",
}


def examine_machine(ports: DoctorPorts, *, study: Path | None = None, race: bool = True) -> Checkup:
    """Look and judge. StudyError where the study is wrong."""
    cpus = read_topology(ports.root).numbers
    file = None if study is None else read_study(study, machine_cpus=cpus)
    if file is not None:
        # Without a meter that is what the checkup says.
        with suppress(InternalError):
            require_requests(file)
        ports = replace(ports, programs=ports.programs.apart_from(file.folders))
    seen = examine(ports, race=race)
    more = () if file is None else tuple(_study_checks(file, ports.programs, seen.installer))
    return checkup(seen, more)


def _study_checks(
    file: StudyFile, programs: Programs, installer: Installer
) -> Iterator[CheckupLine]:
    for name in dict.fromkeys(variant.compiler for variant in file.variants):
        untried = programs.not_tried(name, file.folders)
        if untried:
            yield CheckupLine("study", name, Status.POOR, f"not tried: {untried}")
        elif programs.find(name) is None:
            line = file.positions.line(("axes", "compiler"))
            yield missing_compiler(package_of(name), installer, f"{file.path}:{line}: not found")
        else:
            yield CheckupLine("study", name, Status.GOOD, programs.ask((name, "--version")).line)


@dataclass(frozen=True, slots=True)
class _KnownPrograms:
    """Programs by name."""

    programs: tuple[Program, ...]

    def matching(self, pattern: str) -> tuple[Program, ...]:
        return tuple(program for program in self.programs if re.fullmatch(pattern, program.name))

    def versions(self, pattern: str) -> frozenset[str]:
        """The LLVM versions in the names that match."""
        matches = (re.search(r"-(\d+)$", program.name) for program in self.matching(pattern))
        return frozenset(match[1] for match in matches if match)


def checkup(seen: Examination, more: Iterable[CheckupLine] = ()) -> Checkup:
    """All checks, those about a study (`more`) first."""
    programs = _KnownPrograms(seen.programs)
    checks = (
        *more,
        *_compilers(programs, seen),
        *_linkers(programs, seen),
        *_profilers(programs, seen),
        *_tools(programs, seen),
        _sandbox(seen.sandbox, seen.installer),
        _networks(seen.sandbox),
        _environments(programs, seen.installer),
        _disk(seen),
        *_measuring(seen),
    )
    findings = (
        *seen.cpus.findings,
        *machine_findings(seen.machine),
        *steal_findings(seen.steal),
        *busy_findings(seen.busy),
    )
    return Checkup(checks, machine_facts(seen.machine, steal=seen.steal), findings)


def missing_compiler(name: str, installer: Installer, where: str) -> CheckupLine:
    """A compiler that a study names and the machine has not."""
    return CheckupLine("study", name, Status.MISSING, where, install(name, installer))


def install(program: str, installer: Installer) -> str:
    """The command that installs a program, or words where no package manager is known."""
    package = _PACKAGES.get(program, program)
    if not installer.apt:
        return f"install {program}"
    command = f"{'' if installer.root else 'sudo '}apt-get install {package}"
    return absent(package, installer.packages) or command


def _compilers(seen: _KnownPrograms, all_seen: Examination) -> Iterator[CheckupLine]:
    for family in ("gcc", "clang"):
        programs = seen.matching(rf"{family}(-\d+)?")
        for program in programs:
            yield _good("compilers", program)
        if not programs:
            yield _lacking("compilers", family, all_seen.installer)


def _linkers(seen: _KnownPrograms, all_seen: Examination) -> Iterator[CheckupLine]:
    for program in seen.matching(LINKERS):
        yield _good("linkers", program)
    if not seen.matching(r"ld\.bfd"):
        yield _lacking("linkers", "ld.bfd", all_seen.installer, "binutils")
    if not seen.matching("mold"):
        yield _lacking("linkers", "mold", all_seen.installer)
    yield from _per_clang(seen, all_seen, "linkers", "ld.lld", "lld")


def _profilers(seen: _KnownPrograms, all_seen: Examination) -> Iterator[CheckupLine]:
    for program in seen.matching(r"perf|valgrind|llvm-profdata(-\d+)?|llvm-bolt(-\d+)?"):
        yield _good("profilers", program)
    for name in ("perf", "valgrind"):
        if not seen.matching(name):
            yield _lacking("profilers", name, all_seen.installer)
    yield from _per_clang(seen, all_seen, "profilers", "llvm-profdata", "llvm")
    runtimes = {version for kind, version in all_seen.runtimes if kind == "profile"}
    for version in _by_number(seen.versions(r"clang-\d+") - runtimes):
        name = f"profile runtime of clang-{version}"
        package = f"libclang-rt-{version}-dev"
        yield _lacking("profilers", name, all_seen.installer, package)
    bolts = seen.versions(r"llvm-bolt-\d+")
    if not seen.matching(r"llvm-bolt(-\d+)?"):
        clang = _by_number(seen.versions(r"clang-\d+"))[-1:]
        known = all_seen.installer.packages
        package = "".join(f"bolt-{version}" for version in clang) or newest(BOLT, known)
        yield _lacking("profilers", "llvm-bolt", all_seen.installer, package)
    for version in _by_number(bolts - {v for kind, v in all_seen.runtimes if kind == "bolt"}):
        name = f"runtime of llvm-bolt-{version}"
        yield _lacking("profilers", name, all_seen.installer, f"libbolt-{version}-dev")


def _per_clang(
    seen: _KnownPrograms, all_seen: Examination, area: str, tool: str, package: str
) -> Iterator[CheckupLine]:
    """The tool of each Clang's own version; Clang's files are for its own LLVM only."""
    if seen.matching(re.escape(tool)) and not seen.versions(r"clang-\d+"):
        return
    lacking = seen.versions(r"clang-\d+") - seen.versions(re.escape(tool) + r"-\d+")
    for version in _by_number(lacking):
        name = f"{tool}-{version}"
        yield _lacking(area, name, all_seen.installer, f"{package}-{version}")


def _tools(seen: _KnownPrograms, all_seen: Examination) -> Iterator[CheckupLine]:
    for area, names in (("build tools", BUILD_TOOLS), ("other tools", ("hyperfine", "git"))):
        for name in names:
            programs = seen.matching(re.escape(name))
            yield _good(area, programs[0]) if programs else _lacking(area, name, all_seen.installer)


def _sandbox(sandbox: SandboxFacts, installer: Installer) -> CheckupLine:
    lost = "builds and races are not confined, and there are no environments"
    if not sandbox.found:
        remedy = install("bwrap", installer)
        return CheckupLine("sandboxes", "bwrap", Status.MISSING, f"not found: {lost}", remedy)
    if not sandbox.works:
        remedy = "sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000"
        detail = f"cannot make a namespace ({sandbox.said}): {lost}"
        return CheckupLine("sandboxes", "bwrap", Status.POOR, detail, remedy)
    who = "nobody" if installer.root else "you"
    detail = f"bubblewrap works: what is built and raced is confined, and runs as {who}"
    return CheckupLine("sandboxes", "bwrap", Status.GOOD, detail)


def _networks(sandbox: SandboxFacts) -> CheckupLine:
    """Networks of workloads with two ends."""
    area, name = "sandboxes", "networks"
    if not sandbox.no_networks:
        return CheckupLine(area, name, Status.GOOD, "two ends can have a network between them")
    detail = f"workloads with a network are left out: {sandbox.no_networks}"
    return CheckupLine(area, name, Status.MISSING, detail, NETWORKS_REMEDY)


def _environments(seen: _KnownPrograms, installer: Installer) -> CheckupLine:
    """Command that makes a root directory of a release of Debian; debootstrap needs root."""
    usable = [
        program
        for program in seen.matching("|".join(ROOT_MAKERS))
        if installer.root or program.name == ROOT_MAKERS[0]
    ]
    if usable:
        return _good("environments", usable[0])
    detail = "not found: no environment of a Debian release can be made; a directory or archive can"
    remedy = install(ROOT_MAKERS[0], installer)
    return CheckupLine("environments", ROOT_MAKERS[0], Status.MISSING, detail, remedy)


def _disk(seen: Examination) -> CheckupLine:
    detail = f"{format_size(seen.cache_free_bytes)} free for {seen.cache_folder}"
    if seen.cache_free_bytes < _LITTLE_DISK_BYTES:
        remedy = "ensign clean, or ENSIGN_CACHE=FOLDER on a larger disk"
        return CheckupLine("disk", "cache", Status.POOR, detail, remedy)
    return CheckupLine("disk", "cache", Status.GOOD, detail)


def _measuring(seen: Examination) -> Iterator[CheckupLine]:
    abilities = seen.abilities
    if isinstance(abilities, str):
        yield CheckupLine("measuring", "ensign-meter", Status.MISSING, abilities, "make setup")
        return
    yield CheckupLine("measuring", "ensign-meter", Status.GOOD, abilities.version)
    yield _freezer(abilities)
    yield _counters(abilities, seen)
    if seen.noise is not None:
        yield _noise(seen.noise, seen)


def _freezer(abilities: MeterAbilities) -> CheckupLine:
    if abilities.freezer == "cgroup":
        detail = "programs are stopped by a control group"
        return CheckupLine("measuring", "control groups", Status.GOOD, detail)
    detail = f"not usable ({abilities.obstacle}): programs are stopped by signals, which is slower"
    remedy = "systemd-run --user --scope -p Delegate=yes ensign …, or run as root"
    return CheckupLine("measuring", "control groups", Status.POOR, detail, remedy)


def _counters(abilities: MeterAbilities, seen: Examination) -> CheckupLine:
    if {"instructions", "cycles"} & set(abilities.counters):
        detail = ", ".join(abilities.counters)
        return CheckupLine("measuring", "hardware counters", Status.GOOD, detail)
    paranoid = int(seen.paranoid) if seen.paranoid.lstrip("-").isdigit() else 0
    if not seen.installer.root and paranoid > _PARANOID_FOR_USERS:
        detail = f"not for users (perf_event_paranoid is {paranoid})"
        remedy = "sudo sysctl kernel.perf_event_paranoid=1"
    elif seen.machine.processor.hypervisor:
        detail = "the hypervisor does not show them; CPU time is measured all the same"
        remedy = "a dedicated host (bare metal), or a virtual PMU enabled by the host"
    else:
        detail = "the kernel offers none; CPU time is measured all the same"
        remedy = "a kernel with perf events (CONFIG_PERF_EVENTS)"
    return CheckupLine("measuring", "hardware counters", Status.MISSING, detail, remedy)


def _noise(noise: Noise, seen: Examination) -> CheckupLine:
    if noise.trouble:
        return CheckupLine("measuring", "noise", Status.POOR, noise.trouble, "stop other programs")
    detail = (
        f"two seconds of gzip against itself: 95 % interval ±{noise.half_width * 100:.2f} % "
        f"({noise.executions} executions, a program ran {noise.running_share * 100:.0f} % "
        "of the time)"
    )
    if noise.excludes_1:
        detail += (
            "; the interval excludes 'no difference', which happens by chance once in 20 times"
        )
    poor = noise.half_width > _GOOD_HALF_WIDTH or noise.running_share < _GOOD_RUNNING_SHARE
    if not poor and not noise.excludes_1:
        return CheckupLine("measuring", "noise", Status.GOOD, detail)
    loud = busy_findings(seen.busy)
    remedy = "stop other programs" if loud else "ensign doctor once more"
    return CheckupLine("measuring", "noise", Status.POOR, detail, remedy)


def _good(area: str, program: Program) -> CheckupLine:
    return CheckupLine(area, program.name, Status.GOOD, program.version or "there")


def _lacking(area: str, name: str, installer: Installer, package: str | None = None) -> CheckupLine:
    return CheckupLine(area, name, Status.MISSING, "not found", install(package or name, installer))


def _by_number(versions: frozenset[str] | set[str]) -> list[str]:
    return sorted(versions, key=int)
