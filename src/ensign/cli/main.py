"""The commands, and the one place where errors become exit statuses."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Collection
from importlib import import_module
from typing import Annotated

import typer

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
_OBJECTS_BETWEEN_COLLECTIONS = 50_000
# What typer makes of a KeyboardInterrupt.
_TYPER_INTERRUPTED = 130

# Modules of `ensign.cli` by the command, and its line in --help, in this order.
_COMMANDS = {
    "compare": ("compare", "Race two or more commands; the first is the baseline."),
    "explain": ("explain", "Say where and why two commands or variants differ."),
    "repair": ("repair", "Try small changes until a build loses nowhere."),
    "init": ("init", "Write a first study for a source tree, by trying its programs."),
    "run": ("study", "Build, prove and race a study; go on where it stopped."),
    "plan": ("study", "Show what a study would build and race, and how long it takes."),
    "report": ("study", "Report a study: terminal, HTML, JSON, CSV, Markdown, figures."),
    "ship": ("ship", "Make the best build the project's own: a patch or a script."),
    "diff-studies": ("study", "Say what changed between two studies."),
    "merge": ("study", "Say what is true of several hosts."),
    "bundle": ("study", "Put a study and its evidence into one file."),
    "unbundle": ("study", "Take a study file out of a bundle, to run it again."),
    "doctor": ("doctor", "Show what this machine lacks, or how a program was built."),
    "suites": ("listings", "List the tests of a published suite."),
    "workloads": ("listings", "Write a project's tests and benchmarks as workloads."),
    "schema": ("listings", "Print the JSON Schema of study files or of results."),
    "clean": ("study", "Empty the cache of sources and builds."),
    "env": ("env", "Show an environment, and how two differ."),
    "record": ("record", "Run a build and record each call of a compiler or linker."),
}
# The words of the command are its own, with or without `--`.
_SETTINGS: dict[str, dict[str, object]] = {
    "record": {"ignore_unknown_options": True, "allow_interspersed_args": False}
}


def application(names: Collection[str] = _COMMANDS) -> typer.Typer:
    """The program, of whose commands only those of these names work: others are not imported."""
    app = typer.Typer(
        name="ensign",
        help="Which build of a native program is fastest, is it really so, and what to ship.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(_options)
    for name, (module, text) in _COMMANDS.items():
        command = _nothing
        if name in names:
            command = getattr(import_module(f"ensign.cli.{module}"), name.replace("-", "_"))
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, short_help=text)
        else:
            app.command(name, short_help=text, context_settings=_SETTINGS.get(name))(command)
    return app


def _nothing() -> None:
    """Stands for a command in a list of them."""


def _options(
    *,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from ensign import __version__  # noqa: PLC0415  # takes a while to find out

        say(f"ensign {__version__}\n")
        raise typer.Exit


def main() -> None:
    """The program `ensign`."""
    # What a start makes lives to the end: looking for garbage in it takes a tenth of the start.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    with stopped_by_signals():
        status = run_command_line(sys.argv[1:])
    settle()
    sys.exit(status)


def run_command_line(argv: list[str]) -> int:
    """Carries out a command line. Returns the exit status; a complaint is on standard error."""
    try:
        status = application(argv[:1])(
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
    if argv[:1] not in (["compare"], ["explain"]):
        return argv
    from ensign.cli.compare import plain_options  # noqa: PLC0415  # others do without it

    return plain_options(argv)


def exit_status(error: EnsignError) -> int:
    """The key in `EXIT_STATUSES` for an error."""
    return next(status for kind, status in _STATUS if isinstance(error, kind))


def _show_usage(error: typer.TyperException) -> None:
    """Shows what is wrong with the command line, in one line; or the help."""
    text = error.format_message().replace("Value error, ", "").rstrip(".")
    context = getattr(error, "ctx", None)
    if "\n" in text:
        write(sys.stderr, f"{text}\n")
    elif context is None:
        complain(text)
    else:
        complain(f"{text}; see '{context.command_path} --help'")
