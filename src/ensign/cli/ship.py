"""`ensign ship`: the best build of a study as a change of the project's own build."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensign.cli.study import StudyPath


def ship(  # noqa: PLR0913  # one parameter per option of the command line
    study: StudyPath,
    variant: Annotated[
        str | None,
        typer.Argument(metavar="[VARIANT]", help="Ship this one (default: the study's winner)."),
    ] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Default: beside the results."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite an earlier shipment in FOLDER.")
    ] = False,
    host: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="It must run on this host, too: a copy of its /proc/cpuinfo, or its sheet "
            "(of 'ensign env show', as JSON).",
        ),
    ] = None,
    compiler: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="COMPILER",
            help="The change must work with this one, too: clang-19, or gcc-10@NAME of "
            "\\[environments].",
        ),
    ] = None,
    update_lock: Annotated[
        bool,
        typer.Option("--update-lock", help="Pin the environments of --with anew, if they changed."),
    ] = False,
    despite: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT",
            help="Ship it despite 'regressions' that are shown, or a 'check' that it fails.",
        ),
    ] = None,
) -> None:
    """Make the best build the project's own: a patch or script, verified, and its pull request.

    Exit status: 0 done, 1 the change lacks an effect that was measured, 2 wrong input or nothing
    to ship, 3 the project does not build with the change, 4 interrupted.
    """
    from ensign.cli import ship_run  # noqa: PLC0415  # numpy loads with it

    wish = ship_run.ShipWish(
        variant, tuple(host or ()), tuple(despite or ()), tuple(compiler or ()), update_lock
    )
    raise typer.Exit(ship_run.ship(study, wish, output, force=force))
