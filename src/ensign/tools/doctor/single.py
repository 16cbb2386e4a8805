"""`ensign doctor BINARY | DIR | PID`: findings, facts and advice of one program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ensign.host.processes import Processes
from ensign.host.programs import LocalPrograms
from ensign.host.running_process import read_process
from ensign.model.checkup import ArtifactCheckup, Fact
from ensign.model.errors import InputError
from ensign.model.finding_kinds.proof import LOOKS_UNOPTIMIZED
from ensign.tools.doctor.artifact import examine_evidence
from ensign.tools.doctor.inspect_program import completed, look_at, of_process, with_mapped

_SYSTEM = ("/usr", "/bin", "/sbin", "/opt", "/lib", "/lib64")


def examine_program(
    path: Path, processes: Processes, *, dry_run: bool = False, record: Path | None = None
) -> ArtifactCheckup:
    """As `examine_path`, with facts and advice where it is one program or library.

    A folder has them where one program was built in it. InputError.
    """
    checkup, built = examine_evidence(path, processes, dry_run=dry_run, record=record)
    if len(built) != 1:
        return checkup
    seen = built[0]
    look = look_at(Path(seen.proof.binary.path), seen)
    if look is None:
        return checkup
    look = replace(look, unoptimized=any(e.is_a(LOOKS_UNOPTIMIZED) for e in checkup.findings))
    # What is looked at brings no programs of its own.
    folder = path.absolute() if path.is_dir() else path.absolute().parent
    installed = any(folder.is_relative_to(each) for each in _SYSTEM)
    done = completed(checkup, look, LocalPrograms(folders=() if installed else (folder,)))
    named = (Fact("file", seen.subject),) if path.is_dir() else ()
    return replace(done, facts=(*named, *done.facts))


def examine_process(number: int, processes: Processes) -> ArtifactCheckup:
    """Look at a running process. InputError where there is none, or it may not be looked at."""
    process = read_process(number)
    checkup, built = examine_evidence(process.executable, processes)
    look = look_at(process.executable, built[0]) if built else None
    if look is None:
        raise InputError(f"process {number} has ended, or its program cannot be read")
    return of_process(checkup, process, with_mapped(look, process))
