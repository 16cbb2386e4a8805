"""`ensign doctor`: what this machine offers and lacks for building and measuring."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from ensign.cli.output import say, write


def doctor(
    study: Annotated[
        Path | None,
        typer.Argument(metavar="[STUDY]", help="Check that study and its compilers, too."),
    ] = None,
    *,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    race: Annotated[
        bool, typer.Option(help="Measure the noise by racing a program against itself for 2 s.")
    ] = True,
) -> None:
    """Say what this machine offers and lacks, each lack with the command that mends it."""
    from ensign.builders.cache import cache_folder  # noqa: PLC0415  # numpy and pydantic load here
    from ensign.lab.doctor.perform import examine_machine  # noqa: PLC0415
    from ensign.lab.doctor.probe import DoctorPorts  # noqa: PLC0415
    from ensign.report import as_doctor  # noqa: PLC0415

    if race and sys.stderr.isatty():
        write(sys.stderr, "looking around and measuring for two seconds …\n")
    found = examine_machine(DoctorPorts(), cache_folder(os.environ), study=study, race=race)
    if json:
        say(as_doctor.as_json(found))
    else:
        say(as_doctor.terminal(found, shutil.get_terminal_size((80, 24)).columns))
