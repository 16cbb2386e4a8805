"""`ensign doctor` from look to judgement, with the compilers of a study where one is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ensign.host.programs import Programs
from ensign.host.topology import read_topology
from ensign.lab.doctor.judge import checkup, missing_compiler
from ensign.lab.doctor.probe import DoctorPorts, Installer, examine
from ensign.lab.study.plan import folders_of
from ensign.lab.study.request_problems import require_requests
from ensign.lab.study_file import StudyFile, read_study
from ensign.model.checkup import Checkup, CheckupLine, Status
from ensign.model.errors import InternalError
from ensign.toolchains.table import package_of


def examine_machine(ports: DoctorPorts, *, study: Path | None = None, race: bool = True) -> Checkup:
    """Look and judge. StudyError where the study is wrong."""
    cpus = read_topology(ports.root).numbers
    file = None if study is None else read_study(study, machine_cpus=cpus)
    if file is not None:
        # Without a meter that is what the checkup says.
        with suppress(InternalError):
            require_requests(file)
        ports = replace(ports, programs=ports.programs.apart_from(folders_of(file)))
    seen = examine(ports, race=race)
    more = () if file is None else tuple(_study_checks(file, ports.programs, seen.installer))
    return checkup(seen, more)


def _study_checks(
    file: StudyFile, programs: Programs, installer: Installer
) -> Iterator[CheckupLine]:
    for name in dict.fromkeys(variant.compiler for variant in file.variants):
        untried = programs.not_tried(name, folders_of(file))
        if untried:
            yield CheckupLine("study", name, Status.POOR, f"not tried: {untried}")
        elif programs.find(name) is None:
            line = file.positions.line(("axes", "compiler"))
            yield missing_compiler(package_of(name), installer, f"{file.path}:{line}: not found")
        else:
            yield CheckupLine("study", name, Status.GOOD, programs.ask((name, "--version")).line)
