"""`ensign doctor`: what this machine offers and lacks, or what is wrong with what was built."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ensign.cli.options import FailOn, Outputs, expanded, output_options
from ensign.cli.output import say, write
from ensign.model.findings import Finding, Severity

_PROCESS = re.compile(r"[1-9][0-9]{0,9}")


@expanded(outputs=output_options("json", "markdown"))
def doctor(  # noqa: PLR0913  # one parameter per option of the command line
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]",
            help="A study (.toml): check its compilers, too. A program, a folder, a list of "
            "compile commands (.json) or a process' number: what it shows.",
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
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What 'ensign record' wrote, where it lies elsewhere."),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="All that is known: units, libraries, sources.")
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SEVERITY", help="Exit with 1 where a finding is a note, warning or error."
        ),
    ] = None,
) -> None:
    """Report what this machine offers and lacks; for a PATH, what was built there, and how.

    A PATH is a program, a library, a running process' number, or a folder in which something was
    built, with or without ensign: findings, facts, and advice with what it was worth elsewhere.
    Unless --dry-run is given, nothing of it is run. Exit status: 0, 1 by --fail-on, 2 wrong use.
    """
    failing = FailOn(tuple(fail_on or ()), known=tuple(Severity))
    outputs.check()
    columns = shutil.get_terminal_size((80, 24)).columns
    if path is not None and path.suffix != ".toml":
        asked = _Wanted(path, dry_run=dry_run, record=record)
        findings = _of_artifact(asked, columns, outputs, details=details)
    else:
        findings = _of_machine(path, columns, outputs, race=race)
    status = failing.status_of(findings)
    if status:
        raise typer.Exit(status)


@dataclass(frozen=True, slots=True)
class _Wanted:
    path: Path
    dry_run: bool
    record: Path | None


def _of_artifact(
    asked: _Wanted, columns: int, outputs: Outputs, *, details: bool
) -> tuple[Finding, ...]:
    from ensign.experiment.ports import Ports  # noqa: PLC0415  # pydantic and pyelftools load here
    from ensign.report import as_artifact  # noqa: PLC0415
    from ensign.tools.doctor.inspect_program import examine_process, examine_program  # noqa: PLC0415

    path, processes = asked.path, Ports().processes()
    if _PROCESS.fullmatch(str(path)) and not path.exists():
        checkup = examine_process(int(str(path)), processes)
    else:
        checkup = examine_program(path, processes, dry_run=asked.dry_run, record=asked.record)
    texts = {
        "json": partial(as_artifact.as_json, checkup),
        "markdown": partial(as_artifact.markdown, checkup),
    }
    _show(outputs, texts, as_artifact.terminal(checkup, columns, details=details))
    return checkup.findings


def _of_machine(
    study: Path | None, columns: int, outputs: Outputs, *, race: bool
) -> tuple[Finding, ...]:
    from ensign.report import as_doctor  # noqa: PLC0415
    from ensign.tools.doctor.examine import examine_machine  # noqa: PLC0415  # numpy loads here
    from ensign.tools.doctor.probe import DoctorPorts  # noqa: PLC0415

    if race and sys.stderr.isatty():
        write(sys.stderr, "examining the machine and measuring for two seconds …\n")
    checkup = examine_machine(DoctorPorts(), study=study, race=race)
    texts = {
        "json": partial(as_doctor.as_json, checkup),
        "markdown": partial(as_doctor.markdown, checkup),
    }
    _show(outputs, texts, as_doctor.terminal(checkup, columns))
    return checkup.findings


def _show(outputs: Outputs, texts: Mapping[str, Callable[[], str]], text: str) -> None:
    outputs.write_texts(texts)
    if not outputs.to_standard_output:
        say(text)
