from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.host.machine import BusyProcess, read_machine
from ensign.host.programs import Answer
from ensign.host.topology import CpuChoice
from ensign.meter.client import Json
from ensign.meter.questions import MeterAbilities
from ensign.model.checkup import Checkup, CheckupLine, Status
from ensign.model.errors import InternalError
from ensign.report import as_doctor
from ensign.tools.doctor.examine import checkup, examine_machine, install
from ensign.tools.doctor.noise import Noise, measure_noise, noise_of
from ensign.tools.doctor.probe import DoctorPorts, Examination, Installer, Program, SandboxFacts
from fakes import FakeMeter, FakePrograms

CPUS = CpuChoice((1,), (0,), (0,))
ALL_PROGRAMS = (
    "gcc-12 clang-19 ld.bfd ld.lld-19 mold perf valgrind llvm-profdata-19 llvm-bolt-19 "
    "make cmake ninja tclsh dpkg-source hyperfine git mmdebstrap"
)


def examination(root: Path, programs: str = ALL_PROGRAMS) -> Examination:
    return Examination(
        programs=tuple(Program(name, f"{name} 1.0") for name in programs.split()),
        runtimes=(("profile", "19"), ("bolt", "19")),
        sandbox=SandboxFacts(found=True, works=True, said=""),
        installer=Installer(apt=True, root=False),
        machine=read_machine(root, libc="glibc"),
        cpus=CPUS,
        paranoid="2",
        cache_folder="/cache",
        cache_free_bytes=50 * 2**30,
        abilities=MeterAbilities("1", "cgroup", "", ("instructions", "cycles")),
        noise=Noise(executions=30, half_width=0.004, running_share=0.98),
        steal=0.0,
        busy=(),
    )


def lacks(found: Checkup) -> dict[str, str]:
    return {c.name: c.remedy for c in found.checks if c.status is not Status.GOOD}


def only(found: Checkup, name: str) -> CheckupLine:
    (check,) = (check for check in found.checks if check.name == name)
    return check


def test_a_machine_with_everything_lacks_nothing(tmp_path: Path) -> None:
    found = checkup(examination(tmp_path))
    assert lacks(found) == {}
    assert as_doctor.terminal(found).endswith("Nothing is missing.\n")


def test_each_lack_has_the_command_that_mends_it(tmp_path: Path) -> None:
    seen = replace(
        examination(tmp_path, "clang-14 clang-19 ld.lld-19"),
        runtimes=(("profile", "14"),),
        sandbox=SandboxFacts(found=False, works=False, said=""),
    )
    apt = "sudo apt-get install "
    assert lacks(checkup(seen)) == {
        "gcc": apt + "gcc",
        "ld.bfd": apt + "binutils",
        "mold": apt + "mold",
        "ld.lld-14": apt + "lld-14",
        "perf": apt + "linux-perf",
        "valgrind": apt + "valgrind",
        "llvm-profdata-14": apt + "llvm-14",
        "llvm-profdata-19": apt + "llvm-19",
        "profile runtime of clang-19": apt + "libclang-rt-19-dev",
        "llvm-bolt": apt + "bolt-19",
        "make": apt + "make",
        "cmake": apt + "cmake",
        "ninja": apt + "ninja-build",
        "tclsh": apt + "tcl",
        "dpkg-source": apt + "dpkg-dev",
        "hyperfine": apt + "hyperfine",
        "git": apt + "git",
        "bwrap": apt + "bubblewrap",
        "mmdebstrap": apt + "mmdebstrap",
    }


def test_what_is_lost_is_said_beside_each_lack(tmp_path: Path) -> None:
    seen = examination(tmp_path, ALL_PROGRAMS.replace("mmdebstrap", "debootstrap"))
    for_user = checkup(replace(seen, sandbox=SandboxFacts(found=False, works=False, said="")))
    assert "not confined" in only(for_user, "bwrap").detail
    assert "no environment of a Debian release" in only(for_user, "mmdebstrap").detail
    for_root = checkup(replace(seen, installer=Installer(apt=True, root=True)))
    assert only(for_root, "debootstrap").status is Status.GOOD
    assert only(for_root, "bwrap").detail.endswith("runs as nobody")


def test_a_bolt_without_its_runtime(tmp_path: Path) -> None:
    seen = replace(examination(tmp_path), runtimes=(("profile", "19"),))
    assert lacks(checkup(seen)) == {
        "runtime of llvm-bolt-19": "sudo apt-get install libbolt-19-dev"
    }


def test_no_package_is_named_that_the_system_has_not() -> None:
    known = frozenset({"gcc-11", "gcc-12", "g++", "ninja-build"})
    installer = Installer(apt=True, root=True, packages=known)
    assert install("ninja", installer) == "apt-get install ninja-build"
    said = "no package of this system is called gcc-99; there are gcc-11, gcc-12"
    assert install("gcc-99", installer) == said
    assert install("perf", installer) == "no package of this system is called linux-perf"


def test_installing_as_root_and_without_apt() -> None:
    assert install("ninja", Installer(apt=True, root=True)) == "apt-get install ninja-build"
    assert install("ninja", Installer(apt=False, root=True)) == "install ninja"


def test_counters_that_users_may_not_have_and_that_nobody_has(tmp_path: Path) -> None:
    seen = examination(tmp_path)
    none = MeterAbilities("1", "cgroup", "", ("page-faults",))
    for_root = replace(seen, abilities=none, paranoid="3")
    assert only(checkup(for_root), "hardware counters").remedy == (
        "sudo sysctl kernel.perf_event_paranoid=1"
    )
    processor = replace(seen.machine.processor, hypervisor="KVM")
    guest = replace(seen, abilities=none, machine=replace(seen.machine, processor=processor))
    assert "hypervisor" in only(checkup(guest), "hardware counters").detail
    assert (
        "CONFIG_PERF_EVENTS"
        in only(checkup(replace(seen, abilities=none)), "hardware counters").remedy
    )


def test_no_control_groups_no_namespaces_little_disk(tmp_path: Path) -> None:
    seen = replace(
        examination(tmp_path),
        abilities=MeterAbilities("1", "signal", "read-only file system", ("cycles",)),
        sandbox=SandboxFacts(found=True, works=False, said="No permissions"),
        cache_free_bytes=2**30,
    )
    found = checkup(seen)
    assert set(lacks(found)) == {"control groups", "bwrap", "cache"}
    assert "read-only file system" in only(found, "control groups").detail
    assert "No permissions" in only(found, "bwrap").detail


@pytest.mark.parametrize(
    ("noise", "status"),
    [
        (Noise(executions=30, half_width=0.009, running_share=0.98), Status.GOOD),
        (Noise(executions=30, half_width=0.011, running_share=0.98), Status.POOR),
        (Noise(executions=30, half_width=0.009, running_share=0.90), Status.POOR),
        (Noise(executions=30, half_width=0.001, running_share=1, excludes_1=True), Status.POOR),
        (Noise(trouble="gzip: not found"), Status.POOR),
    ],
)
def test_judging_noise(tmp_path: Path, noise: Noise, status: Status) -> None:
    seen = replace(examination(tmp_path), noise=noise, busy=(BusyProcess(3, "cc1", 0.9),))
    found = checkup(seen)
    assert only(found, "noise").status is status
    assert [finding.code for finding in found.findings] == ["busy-machine"]


def test_without_a_meter_nothing_else_is_said_of_measuring(tmp_path: Path) -> None:
    found = checkup(replace(examination(tmp_path), abilities="not installed", noise=None))
    assert lacks(found) == {"ensign-meter": "make setup"}
    assert [check.name for check in found.checks if check.area == "measuring"] == ["ensign-meter"]


def records(ratios: list[float]) -> list[Json]:
    made: list[Json] = [{"type": "start", "schema": 1, "freezer": "cgroup", "mode": "interleaved"}]
    for execution, ratio in enumerate(ratios):
        for variant, cpu_ns in (("baseline", 1_000_000), ("twin", round(1_000_000 * ratio))):
            totals = {"wall_ns": cpu_ns, "cpu_ns": cpu_ns, "user_ns": cpu_ns, "system_ns": 0}
            made.append({"type": "variant", "execution": execution, "variant": variant, **totals})
        made.append(
            {
                "type": "execution",
                "execution": execution,
                "wall_ns": 2_000_000,
                "started_unix_ns": 10**18,
                "running_share": 0.5,
                "valid": True,
            }
        )
    return [*made, {"type": "end", "status": "complete", "executions": len(ratios)}]


def test_noise_is_the_interval_of_a_race_of_one_program_with_itself() -> None:
    meter = FakeMeter([records([1.01, 0.99, 1.0, 1.02, 0.98])])
    noise = measure_noise(meter, "gzip", CPUS)
    assert noise.executions == 5
    assert noise.running_share == 0.5
    # Nobody looks before the end: t of 4 degrees of freedom × s/√5 with s = 0.0158.
    assert noise.half_width == pytest.approx(2.776 * 0.0158 / 5**0.5, rel=0.01)
    assert not noise.excludes_1
    ((verb, request),) = meter.requests
    assert verb == "race"
    assert request["budget_ns"] == 2 * 10**9
    assert request["meter_cpus"] == [0]


def test_too_few_executions_and_a_difference_between_twins() -> None:
    few = measure_noise(FakeMeter([records([1.0, 1.0])]), "gzip", CPUS)
    assert few.trouble == "only 2 executions in two seconds"
    assert noise_of(()).trouble == "only 0 executions in two seconds"
    apart = measure_noise(FakeMeter([records([1.1, 1.11, 1.1, 1.11, 1.1])]), "gzip", CPUS)
    assert apart.excludes_1


def test_an_error_of_the_meter_is_the_trouble() -> None:
    failed: list[Json] = [
        {"type": "error", "code": "not-found", "variant": "baseline", "text": "gzip: not found"},
        {"type": "end", "status": "failed", "executions": 0},
    ]
    assert "gzip: not found" in measure_noise(FakeMeter([failed]), "gzip", CPUS).trouble


def no_meter() -> MeterAbilities:
    raise InternalError("no meter here")


def test_from_look_to_text_with_a_study(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text("cpu 1 2 3 4 5 6 7 8\n")
    (tmp_path / "sys/devices/system/cpu").mkdir(parents=True)
    (tmp_path / "sys/devices/system/cpu/online").write_text("0-1\n")
    study = Path(__file__).parents[2] / "studies/redis/quick.toml"
    programs = FakePrograms({"gcc-12": Answer(success=True, line="gcc 12.2")})
    ports = DoctorPorts(programs, FakeMeter([]), no_meter, tmp_path, tmp_path / "not/yet/there")
    found = examine_machine(ports, study=study)
    about_study = [check for check in found.checks if check.area == "study"]
    assert [(check.name, check.status) for check in about_study] == [
        ("gcc-12", Status.GOOD),
        ("clang-19", Status.MISSING),
    ]
    assert about_study[1].detail.startswith(f"{study}:")
    assert only(found, "ensign-meter").detail == "no meter here"
    text = as_doctor.terminal(found, 60)
    assert "✗ clang-19" in text
    assert "→ install clang-19" in text
    assert all(len(line) <= 60 for line in text.splitlines() if "/" not in line)
    content = json.loads(as_doctor.as_json(found))
    assert content["machine"]["CPU"] == "unknown"
    assert {check["status"] for check in content["checks"]} <= {"good", "poor", "missing"}
