"""Capturing the sheet of an environment: this machine's, or one of a study."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ensign.experiment.environments import NamedEnvironments, system_of
from ensign.experiment.ports import Ports
from ensign.experiment.study.opened import open_cache
from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement_probe import probe_confinement
from ensign.host.machine import read_machine
from ensign.host.programs import Bounded, run_bounded
from ensign.host.regular_file import read_json, read_text
from ensign.host.root_directory import ROOT_PATH, RootDirectory
from ensign.meter.client import find_meter
from ensign.meter.questions import read_processor
from ensign.model.environment_sheet import (
    PROCESSOR_FLAGS,
    PROCESSOR_REGISTERS,
    EnvironmentSheet,
    read_sheet,
)
from ensign.model.errors import InputError
from ensign.model.instructions import registers_text
from ensign.model.study_environment import HOST
from ensign.toolchains.find import installed_compilers

_BOUNDS = Bounded(deadline_s=20.0, most_bytes=4 << 20)
_COMPILER = re.compile(r"(gcc|clang)(-\d+)?")
_MACHINE = Path("/")
_LIMITS = {
    "open files": resource.RLIMIT_NOFILE,
    "stack": resource.RLIMIT_STACK,
    "locked memory": resource.RLIMIT_MEMLOCK,
}
_PYTHON = (
    "import json, sysconfig as s; "
    "print(json.dumps({k: str(v) for k, v in s.get_config_vars().items() "
    "if k in ('CFLAGS','OPT','CONFIG_ARGS','LDFLAGS','CC','PY_CFLAGS','VERSION','Py_ENABLE_SHARED',"
    "'PGO_PROF_USE_FLAG','BASECFLAGS','PY_CORE_CFLAGS','PY_CFLAGS_NODIST')}))"
)


@dataclass(frozen=True, slots=True)
class _Place:
    """Place where programs are asked: `argv` goes before each."""

    argv: tuple[str, ...]
    path: str
    root: RootDirectory

    def ask(self, *words: str) -> str:
        """Output of a command; empty where it fails."""
        answer = run_bounded((*self.argv, *words), {"PATH": self.path, "LC_ALL": "C"}, _BOUNDS)
        return answer.text.strip() if answer.ok else ""


def capture(name: str, study: Path | None, python: str = "") -> EnvironmentSheet:
    """The sheet of `host`, of an environment by its name, or a saved one. InputError."""
    if name.endswith(".json"):
        return _saved(Path(name))
    if name == HOST:
        machine = RootDirectory(HOST, _MACHINE, "")
        place = _Place((), os.environ.get("PATH", os.defpath), machine)
        return EnvironmentSheet(name, dict(_facts(place, python)))
    ports = Ports()
    with open_cache(ports) as cache:
        root = NamedEnvironments(study, ports.processes(), cache, ports.env).root(name)
        confinement = probe_confinement(ports.processes(), ports.env, find_meter())
        if root is None or not confinement.works:
            remedy = f"; {confinement.remedy}" if confinement.remedy else ""
            raise InputError(f"'{name}' cannot be entered: {confinement.reason}{remedy}")
        argv = confinement.argv(ConfinementRequest(ROOT_PATH, root=root.folder))
        return EnvironmentSheet(name, dict(_facts(_Place(argv, ROOT_PATH, root), python)))


def _saved(path: Path) -> EnvironmentSheet:
    try:
        return read_sheet(read_json(read_text(path)))
    except (ValueError, InputError) as error:
        raise InputError(f"{path}: {error}") from None


def _facts(place: _Place, python: str) -> Iterator[tuple[str, str]]:
    system, machine = system_of(place.root), read_machine()
    yield "libc", system.libc
    for library, names in system.choices.items():
        yield f"functions.{library}", " ".join(names)
    yield "distribution", system.distribution
    yield "kernel", machine.system.kernel
    yield "huge pages", machine.system.huge_pages
    yield "glibc tunables", os.environ.get("GLIBC_TUNABLES", "")
    processor = machine.processor
    yield "cpu.model", processor.model
    asked = read_processor()
    yield PROCESSOR_FLAGS, " ".join(sorted(asked.flags))
    yield PROCESSOR_REGISTERS, registers_text(asked.registers)
    yield "cpu.governors", " ".join(processor.governors)
    yield "cpu.turbo", processor.turbo
    yield "cpu.smt", processor.smt
    yield "cpu.mitigations", "; ".join(f"{key}: {text}" for key, text in processor.mitigations)
    for name, number in _LIMITS.items():
        yield f"limits.{name}", str(resource.getrlimit(number)[0])
    help_text = place.ask("/lib64/ld-linux-x86-64.so.2", "--help")
    levels = re.findall(r"^\s+(\S+) \(supported, searched\)", help_text, re.MULTILINE)
    yield "hwcaps", " ".join(levels)
    yield from _compilers(place)
    for line in place.ask("dpkg-buildflags").splitlines():
        name, _, text = line.partition("=")
        yield f"flags.{name}", re.sub(r"(-prefix-map=)\S+=", r"\1FOLDER=", text)
    optflags = place.ask("rpm", "--eval", "%{optflags}")
    if optflags:
        yield "flags.rpm optflags", optflags
    for name, version in system.packages.items():
        yield f"packages.{name}", version
    if python:
        yield from _python(place, python)


def _compilers(place: _Place) -> Iterator[tuple[str, str]]:
    if place.argv:
        folders = place.path.split(os.pathsep)
        names = {each for folder in folders for each in place.root.names_in(folder)}
        compilers = sorted(each for each in names if _COMPILER.fullmatch(each))
    else:
        compilers = installed_compilers(place.path)
    for name in compilers:
        yield f"compilers.{name}.version", place.ask(name, "--version").partition("\n")[0]
        if "gcc" not in name:
            continue
        configured = re.search(r"^Configured with: (.*)", place.ask(name, "-v"), re.MULTILINE)
        yield f"compilers.{name}.configured", configured[1] if configured else ""
        target = place.ask(name, "-Q", "--help=target")
        values = re.findall(r"^\s+(-m(?:arch|tune)=)\s+(\S+)", target, re.MULTILINE)
        yield f"compilers.{name}.target", " ".join(f"{key}{text}" for key, text in values)


def _python(place: _Place, python: str) -> Iterator[tuple[str, str]]:
    answer = place.ask(python, "-I", "-c", _PYTHON)
    packages: Mapping[str, object] = {}
    with suppress(ValueError):
        packages = read_json(answer)
    if not isinstance(packages, dict) or not packages:
        raise InputError(f"--python {python}: it does not say how it was built")
    for name, text in packages.items():
        yield f"python.{name}", str(text)
