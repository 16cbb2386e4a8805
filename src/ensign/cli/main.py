"""The commands, and the one place where errors become exit statuses."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ensign import __version__
from ensign.cli.compare import compare
from ensign.cli.doctor import doctor
from ensign.cli.schema import schema
from ensign.cli.study import clean, plan, report, run, with_optional_values
from ensign.model.errors import (
    CommandFailed,
    EnsignError,
    InputError,
    InternalError,
    Interrupted,
)

_STATUS: tuple[tuple[type[EnsignError], int], ...] = (
    (InputError, 2),
    (CommandFailed, 3),
    (Interrupted, 4),
    (InternalError, 5),
)

app = typer.Typer(
    name="ensign",
    help="Which build of a native program is fastest, is it really so, and what to ship.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (compare, run, plan, report, doctor, schema, clean):
    app.command()(command)


@app.callback(invoke_without_command=True)
def _options(
    *,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"ensign {__version__}")
        raise typer.Exit


def main() -> None:
    """Entry point of the program `ensign`."""
    try:
        app(args=with_optional_values(sys.argv[1:]))
    except EnsignError as error:
        typer.echo(f"ensign: {error}", err=True)
        sys.exit(exit_status(error))
    except KeyboardInterrupt:
        typer.echo("ensign: interrupted", err=True)
        sys.exit(4)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def exit_status(error: EnsignError) -> int:
    """0 measured, 2 wrong use or input, 3 a command failed, 4 interrupted, 5 a bug."""
    return next(status for kind, status in _STATUS if isinstance(error, kind))
