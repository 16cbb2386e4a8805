from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.host.machine import BusyProcess, Machine, read_machine
from ensign.host.machine_findings import (
    busy_findings,
    machine_facts,
    machine_findings,
    steal_findings,
)

CPUINFO = """\
processor\t: 0
model name\t: Example CPU @ 3.00GHz
microcode\t: 0x1a
flags\t\t: fpu vme {flags}

processor\t: 1
model name\t: another
"""
FILES = {
    "proc/cpuinfo": CPUINFO.format(flags="sse2"),
    "proc/loadavg": "0.25 0.10 0.05 1/99 1234\n",
    "proc/meminfo": "MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\nHugePages_Total: 0\n"
    "SwapTotal: 1000 kB\nSwapFree: 950 kB\n",
    "proc/sys/kernel/osrelease": "6.1.0-example\n",
    "proc/sys/kernel/randomize_va_space": "2\n",
    "etc/os-release": 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/devices/system/cpu/online": "0-1\n",
    "sys/devices/system/cpu/cpu0/cache/index0/level": "1\n",
    "sys/devices/system/cpu/cpu0/cache/index0/type": "Data\n",
    "sys/devices/system/cpu/cpu0/cache/index0/size": "32K\n",
    "sys/devices/system/cpu/cpu0/cache/index3/level": "3\n",
    "sys/devices/system/cpu/cpu0/cache/index3/type": "Unified\n",
    "sys/devices/system/cpu/cpu0/cache/index3/size": "8192K\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/intel_pstate/no_turbo": "1\n",
    "sys/devices/system/cpu/smt/control": "off\n",
    "sys/devices/system/cpu/vulnerabilities/mds": "Not affected\n",
    "sys/devices/system/cpu/vulnerabilities/spectre_v2": "Mitigation: Retpolines\n",
}


def machine(root: Path, **changes: str) -> Machine:
    files = {**FILES, **{name.replace("__", "/"): text for name, text in changes.items()}}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_machine(root, libc="glibc 2.36")


def codes(found: Machine) -> list[str]:
    return [finding.code for finding in machine_findings(found)]


def test_the_facts_of_a_quiet_machine(tmp_path: Path) -> None:
    found = machine(tmp_path)
    facts = dict(machine_facts(found, steal=0.034).facts)
    assert facts == {
        "CPU": "Example CPU @ 3.00GHz",
        "cores": "2 cores, 2 CPUs",
        "SMT": "off",
        "caches": "L1 data 32K, L3 8192K",
        "microcode": "0x1a",
        "governor": "performance",
        "turbo": "off",
        "virtual machine": "no",
        "host": "unknown",
        "memory": "7.6 GiB",
        "swap": "1000.0 KiB",
        "kernel": "6.1.0-example",
        "timer": "unknown",
        "preemption": "unknown",
        "distribution": "Debian GNU/Linux 12 (bookworm)",
        "libc": "glibc 2.36",
        "ASLR": "full",
        "transparent huge pages": "madvise",
        "load average": "0.25",
        "mitigations": "spectre_v2: Mitigation: Retpolines",
        "steal": "3.4 %",
    }
    assert codes(found) == []


def test_a_host_has_a_name_for_its_fleet_that_does_not_tell_its_id(tmp_path: Path) -> None:
    named = {"etc/machine-id": "0123456789abcdef\n", "proc/sys/kernel/hostname": "n1\n"}
    first = machine(tmp_path / "1", **named).system.host
    assert first == machine(tmp_path / "2", **named).system.host
    assert first not in ("unknown", "0123456789ab")
    other = {**named, "proc/sys/kernel/hostname": "n2\n"}
    assert first != machine(tmp_path / "3", **other).system.host


def test_each_doubt_has_its_finding(tmp_path: Path) -> None:
    found = machine(
        tmp_path,
        **{
            "proc/cpuinfo": CPUINFO.format(flags="hypervisor"),
            "proc/loadavg": "1.5 0 0 1/9 1\n",
            "proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 90 kB\n"
            "SwapTotal: 1000 kB\nSwapFree: 500 kB\n",
            "proc/sys/kernel/randomize_va_space": "0\n",
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
            "sys/devices/system/cpu/smt/control": "on\n",
        },
    )
    assert codes(found) == [
        "governor",
        "smt",
        "virtual-machine",
        "aslr",
        "load-average",
        "low-memory",
        "swap-used",
    ]
    assert "powersave" in machine_findings(found)[0].text


def test_turbo_is_a_note_on_bare_metal_only(tmp_path: Path) -> None:
    found = machine(tmp_path, **{"sys/devices/system/cpu/intel_pstate/no_turbo": "0\n"})
    assert codes(found) == ["turbo"]
    virtual = replace(found, processor=replace(found.processor, hypervisor="KVM"))
    assert codes(virtual) == ["virtual-machine"]


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    found = read_machine(tmp_path, libc="musl")
    assert found.processor.model == "unknown"
    assert found.processor.turbo == "unknown"
    assert found.system.aslr == "unknown"
    assert machine_findings(found) == ()
    assert machine_facts(found).facts[0] == ("CPU", "unknown")


def test_amd_boost_and_variant_models(tmp_path: Path) -> None:
    path = tmp_path / "sys/devices/system/cpu/cpufreq/boost"
    path.parent.mkdir(parents=True)
    path.write_text("1\n")
    cpuinfo = tmp_path / "proc/cpuinfo"
    cpuinfo.parent.mkdir()
    cpuinfo.write_text("processor: 0\nCPU implementer: 0x41\nCPU part: 0xd0c\n")
    found = read_machine(tmp_path, libc="x")
    assert found.processor.turbo == "on"
    assert found.processor.model == "CPU implementer 0x41 part 0xd0c"


def test_steal_and_busy_processes_are_named_above_their_thresholds() -> None:
    assert steal_findings(0.009) == ()
    assert steal_findings(0.03)[0].text.startswith("steal 3 %")
    quiet = BusyProcess(5, "sshd", 0.04)
    assert busy_findings([quiet]) == ()
    (finding,) = busy_findings([BusyProcess(7, "cc1", 0.98), quiet])
    assert finding.code == "busy-machine"
    assert "cc1 (7) 98 %" in finding.text
    assert "sshd" not in finding.text


@pytest.mark.parametrize(
    ("config", "command_line", "timer", "preemption"),
    [
        ("CONFIG_HZ=250\nCONFIG_PREEMPT_NONE=y\n", "quiet", "250 Hz", "none"),
        ("CONFIG_HZ=1000\nCONFIG_PREEMPT_RT=y\n", "", "1000 Hz", "real-time"),
        ("CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "", "unknown", "voluntary"),
        ("CONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "a preempt=none", "unknown", "none"),
        ("CONFIG_PREEMPT=y\n", "preempt=none", "unknown", "full"),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_timer_and_preemption_are_the_kernels_own(
    tmp_path: Path, config: str, command_line: str, timer: str, preemption: str, *, packed: bool
) -> None:
    found = machine(tmp_path, **{"proc/cmdline": command_line, "boot/config-6.1.0-example": config})
    if packed:
        (tmp_path / "boot/config-6.1.0-example").unlink()
        (tmp_path / "proc/config.gz").write_bytes(gzip.compress(config.encode()))
        found = read_machine(tmp_path, libc="musl")
    assert (found.system.timer, found.system.preemption) == (timer, preemption)


def test_a_damaged_configuration_says_nothing(tmp_path: Path) -> None:
    machine(tmp_path)
    for damaged in (b"", b"no gzip", gzip.compress(b"CONFIG_HZ=250")[:-9]):
        (tmp_path / "proc/config.gz").write_bytes(damaged)
        assert read_machine(tmp_path, libc="musl").system.timer == "unknown"
