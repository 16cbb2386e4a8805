"""`ensign init`: a first study of a source tree."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(  # one parameter per option of the command line
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The source tree.", show_default="here")
    ] = Path(),
    *,
    system: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The build system, where the tree has several."),
    ] = None,
    artifact: Annotated[
        str | None,
        typer.Option(metavar="PROGRAM", help="The program to race: a name, or a path in the tree."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND", help="What to race it on, with its words; the first is the program."
        ),
    ] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS",
            help='What to vary instead, as a study has it: \'lto = ["off", "full"]\'; repeatable.',
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over an ensign.toml that is there.")
    ] = False,
) -> None:
    """Look at a source tree, build it once, try its programs, and write an ensign.toml that runs.

    The tree is built in a copy, confined, and its programs are run there: those that are called
    benchmarks, and others on files of the tree. 'ensign run' then races compilers and flags.

    Exit status: 0 written, 2 where nothing could be written, 3 where the project does not build.
    """
    from ensign.cli import init_run  # noqa: PLC0415  # building loads much

    asked = init_run.InitOptions(system or "", artifact or "", command or "", tuple(axis or ()))
    init_run.init(folder, asked, force=force)
