"""`ensign workloads`: a project's own tests and benchmarks, as workloads of a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensign.cli.output import say


def workloads(
    listed: Annotated[
        Path,
        typer.Argument(
            metavar="LIST",
            help="A list of tests as CTest (json-v1) or Meson (introspect) prints it.",
        ),
    ],
    *,
    source: Annotated[
        str, typer.Option(metavar="DIR", help="The source folder, as it stands in LIST.")
    ],
    artifact: Annotated[
        str,
        typer.Option(metavar="PATH", help="The study's artifact, below that: build/program."),
    ] = "",
) -> None:
    """Write a project's tests and benchmarks as [[workloads]] of a study, for you to choose from.

    Each keeps its arguments, its folder and its environment; paths below the source folder
    become {files}. What cannot be a workload is left as a comment, with the reason. Nothing is run.

    Exit status: 0, 2 where LIST is no such list.
    """
    from ensign.experiment.suites import project_workloads  # noqa: PLC0415  # pydantic loads

    say(project_workloads(listed, source, artifact))
