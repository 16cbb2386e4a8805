"""`ensign doctor`: what this machine offers and lacks, or what is wrong with what was built."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from ensign.cli.output import say, write
from ensign.model.errors import InputError
from ensign.model.findings import Severity

_SEVERITIES = tuple(Severity)
_FAILED = 1


def doctor(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]",
            help="A study (.toml): check its compilers, too. A program or a folder: what it shows.",
        ),
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    race: Annotated[
        bool, typer.Option(help="Measure the noise by racing a program against itself for 2 s.")
    ] = True,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="SEVERITY", help="Exit with 1 where a finding is a note, warning or error."
        ),
    ] = None,
) -> None:
    """Say what this machine offers and lacks; or, of a PATH, which flags had no effect there.

    A PATH is a program, a library, or a folder in which something was built, with or without
    ensign. Exit status: 0, 1 by --fail-on, 2 wrong use.
    """
    least = _severity(fail_on)
    columns = shutil.get_terminal_size((80, 24)).columns
    if path is not None and path.suffix != ".toml":
        found = _of_artifact(path, columns, json=json)
    else:
        found = _of_machine(path, columns, json=json, race=race)
    if least is not None and any(_SEVERITIES.index(each) >= least for each in found):
        raise typer.Exit(_FAILED)


def _severity(word: str | None) -> int | None:
    """The rank from which findings count. InputError for a word that is none."""
    if word is None:
        return None
    if word not in _SEVERITIES:
        raise InputError(f"--fail-on knows {', '.join(_SEVERITIES)}, not '{word}'")
    return _SEVERITIES.index(Severity(word))


def _of_artifact(path: Path, columns: int, *, json: bool) -> list[Severity]:
    from ensign.lab.doctor.artifact import examine_path  # noqa: PLC0415
    from ensign.lab.ports import Ports  # noqa: PLC0415  # pydantic and pyelftools load here
    from ensign.report import as_artifact  # noqa: PLC0415

    found = examine_path(path, Ports().processes())
    say(as_artifact.as_json(found) if json else as_artifact.terminal(found, columns))
    return [finding.severity for finding in found.findings]


def _of_machine(study: Path | None, columns: int, *, json: bool, race: bool) -> list[Severity]:
    from ensign.lab.doctor.examine import examine_machine  # noqa: PLC0415  # numpy loads here
    from ensign.lab.doctor.probe import DoctorPorts  # noqa: PLC0415
    from ensign.report import as_doctor  # noqa: PLC0415

    if race and sys.stderr.isatty():
        write(sys.stderr, "looking around and measuring for two seconds …\n")
    found = examine_machine(DoctorPorts(), study=study, race=race)
    say(as_doctor.as_json(found) if json else as_doctor.terminal(found, columns))
    return [finding.severity for finding in found.findings]
