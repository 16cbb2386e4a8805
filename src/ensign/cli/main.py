"""The commands, and the one place where errors become exit statuses."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from ensign import __version__
from ensign.cli.output import complain, say, settle, write
from ensign.host.os_errors import refusal
from ensign.host.signals import stopped_by_signals
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
_INPUT, _FAILED, _INTERRUPTED, _INTERNAL = 2, 3, 4, 5
EXIT_STATUSES: dict[int, str] = {
    0: "done",
    1: "done, and a condition given by --fail-on holds; "
    "or a shipped change lacks an effect that was measured",
    _INPUT: "wrong use, or wrong input",
    _FAILED: "a command failed: a build, a program under test, or a load generator; or the system "
    "refused what ensign needs (a disk is full, no memory is left, a file cannot be read …)",
    _INTERRUPTED: "interrupted",
    _INTERNAL: "an error in ensign itself; please report it",
}
# What typer makes of a KeyboardInterrupt.
_TYPER_INTERRUPTED = 130

# Modules of `ensign.cli` by the command, in the order of --help.
_COMMANDS = {
    "compare": "compare",
    "init": "init",
    "run": "study",
    "plan": "study",
    "report": "study",
    "ship": "ship",
    "diff-studies": "study",
    "bundle": "study",
    "unbundle": "study",
    "doctor": "doctor",
    "suites": "listings",
    "workloads": "listings",
    "schema": "listings",
    "clean": "study",
    "env": "env",
    "record": "record",
}
# The words of the command are its own, with or without `--`.
_SETTINGS: dict[str, dict[str, object]] = {
    "record": {"ignore_unknown_options": True, "allow_interspersed_args": False}
}


def application(names: Iterable[str] = _COMMANDS) -> typer.Typer:
    """The program with these commands; the modules of others are not read."""
    app = typer.Typer(
        name="ensign",
        help="Which build of a native program is fastest, is it really so, and what to ship.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(_options)
    for name in names:
        command = getattr(import_module(f"ensign.cli.{_COMMANDS[name]}"), name.replace("-", "_"))
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(context_settings=_SETTINGS.get(name))(command)
    return app


def _options(
    *,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        say(f"ensign {__version__}\n")
        raise typer.Exit


def main() -> None:
    """The program `ensign`."""
    with stopped_by_signals():
        status = run_command_line(sys.argv[1:])
    settle()
    sys.exit(status)


def run_command_line(argv: list[str]) -> int:
    """Carries out a command line. Returns the exit status; a complaint is on standard error."""
    asked = argv[:1] if argv and argv[0] in _COMMANDS else _COMMANDS
    try:
        status = application(asked)(
            args=_plain(argv), prog_name="ensign", standalone_mode=False, obj=tuple(argv)
        )
    except EnsignError as error:
        for text in (str(error), *getattr(error, "__notes__", ())):
            complain(text)
        return exit_status(error)
    except typer.TyperException as error:
        _show_usage(error)
        return _INPUT
    except (KeyboardInterrupt, typer.Abort):
        status = _TYPER_INTERRUPTED
    except Exception as error:  # noqa: BLE001  # a bug, whatever it is: never the status of 'slower'
        refused = refusal(error)
        if refused is not None:
            complain(refused)
            return _FAILED
        write(sys.stderr, traceback.format_exc())
        complain(f"this should not have happened, please report it: {error!r}")
        return _INTERNAL
    if status == _TYPER_INTERRUPTED:
        complain("interrupted")
        return _INTERRUPTED
    return status if isinstance(status, int) else 0


def _plain(argv: list[str]) -> list[str]:
    if argv[:1] != ["compare"]:
        return argv
    from ensign.cli.compare import plain_options  # noqa: PLC0415  # others do without it

    return plain_options(argv)


def exit_status(error: EnsignError) -> int:
    """The key in `EXIT_STATUSES` for an error."""
    return next(status for kind, status in _STATUS if isinstance(error, kind))


def _show_usage(error: typer.TyperException) -> None:
    """What is wrong with the command line, in one line; or the help, where nothing was given."""
    text = error.format_message().replace("Value error, ", "").rstrip(".")
    context = getattr(error, "ctx", None)
    if "\n" in text:
        write(sys.stderr, f"{text}\n")
    elif context is None:
        complain(text)
    else:
        complain(f"{text}; see '{context.command_path} --help'")
