"""`ensign doctor`: what this machine offers and lacks, or what is wrong with what was built."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ensign.cli.output import say, write
from ensign.cli.outputs import FailOn, Outputs, with_outputs
from ensign.model.findings import Finding, Severity


@with_outputs("json")
def doctor(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]",
            help="A study (.toml): check its compilers, too. A program or a folder: what it shows.",
        ),
    ] = None,
    *,
    outputs: Outputs,
    race: Annotated[
        bool, typer.Option(help="Measure the noise by racing a program against itself for 2 s.")
    ] = True,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Of a folder with a Makefile: ask make what it would do, which runs parts of it.",
        ),
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SEVERITY", help="Exit with 1 where a finding is a note, warning or error."
        ),
    ] = None,
) -> None:
    """Report what this machine offers and lacks; for a PATH, which flags had no effect there.

    A PATH is a program, a library, or a folder in which something was built, with or without
    ensign. Nothing of it is run without --dry-run. Exit status: 0, 1 by --fail-on, 2 wrong use.
    """
    failing = FailOn(tuple(fail_on or ()), known=tuple(Severity))
    outputs.check()
    columns = shutil.get_terminal_size((80, 24)).columns
    if path is not None and path.suffix != ".toml":
        found = _of_artifact(path, columns, outputs, dry_run=dry_run)
    else:
        found = _of_machine(path, columns, outputs, race=race)
    status = failing.status_of(found)
    if status:
        raise typer.Exit(status)


def _of_artifact(
    path: Path, columns: int, outputs: Outputs, *, dry_run: bool
) -> tuple[Finding, ...]:
    from ensign.lab.doctor.artifact import examine_path  # noqa: PLC0415
    from ensign.lab.ports import Ports  # noqa: PLC0415  # pydantic and pyelftools load here
    from ensign.report import as_artifact  # noqa: PLC0415

    found = examine_path(path, Ports().processes(), dry_run=dry_run)
    _show(outputs, partial(as_artifact.as_json, found), as_artifact.terminal(found, columns))
    return found.findings


def _of_machine(
    study: Path | None, columns: int, outputs: Outputs, *, race: bool
) -> tuple[Finding, ...]:
    from ensign.lab.doctor.examine import examine_machine  # noqa: PLC0415  # numpy loads here
    from ensign.lab.doctor.probe import DoctorPorts  # noqa: PLC0415
    from ensign.report import as_doctor  # noqa: PLC0415

    if race and sys.stderr.isatty():
        write(sys.stderr, "examining the machine and measuring for two seconds …\n")
    found = examine_machine(DoctorPorts(), study=study, race=race)
    _show(outputs, partial(as_doctor.as_json, found), as_doctor.terminal(found, columns))
    return found.findings


def _show(outputs: Outputs, json: Callable[[], str], text: str) -> None:
    outputs.write_texts({"json": json})
    if not outputs.to_standard_output:
        say(text)
