"""`ensign env show` and `ensign env diff`: what an environment is, and how two differ."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensign.cli.output import say

env = typer.Typer(
    help="Facts of an environment, and how two differ.", no_args_is_help=True, add_completion=False
)
Study = Annotated[
    Path | None, typer.Option("--study", help="The study whose [environments] are named.")
]
Json = Annotated[bool, typer.Option("--json", help="As JSON; saved, it can be compared later.")]
Python = Annotated[
    str, typer.Option(metavar="PROGRAM", help="A Python there: also how that was built.")
]


@env.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[ENV]",
            help="host (if left out), debian:RELEASE, a directory or archive (with a slash), or a "
            "name of --study.",
        ),
    ] = "host",
    *,
    study: Study = None,
    json: Json = False,
    python: Python = "",
) -> None:
    """Show libc, kernel, CPU, compilers, default flags, packages and limits of an environment.

    Exit status: 0, 2 wrong use.
    """
    from ensign.report import as_environment  # noqa: PLC0415
    from ensign.tools.capture_environment import capture  # noqa: PLC0415  # pydantic loads here

    sheet = capture(name, study, python)
    say(as_environment.sheet_json(sheet) if json else as_environment.sheet_text(sheet))


@env.command()
def diff(
    one: Annotated[str, typer.Argument(help="As for show, or a saved sheet (.json).")],
    other: Annotated[str, typer.Argument(help="The same.")],
    *,
    study: Study = None,
    json: Json = False,
    python: Python = "",
) -> None:
    """Show what differs between two environments, the most consequential first.

    Exit status: 0, 2 wrong use.
    """
    from ensign.model.environment_sheet import sheet_differences  # noqa: PLC0415
    from ensign.report import as_environment  # noqa: PLC0415
    from ensign.tools.capture_environment import capture  # noqa: PLC0415  # pydantic loads here

    differences = sheet_differences(capture(one, study, python), capture(other, study, python))
    text = as_environment.differences_json if json else as_environment.differences_text
    say(text(differences))
