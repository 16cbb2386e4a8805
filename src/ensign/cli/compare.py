"""`ensign compare`: race commands, or servers, and say which is faster."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import typer

from ensign.cli.options import (
    Details,
    FailOn,
    FailOnOption,
    Outputs,
    compare_options,
    expanded,
    output_options,
)
from ensign.experiment.compare.options import WORDS, Options
from ensign.model.errors import InputError

_WORDS = {"-P": 3, "--parameter-scan": 3, "-L": 2, "--parameter-list": 2}
_SHELL, _DEFAULT_SHELL = "--shell", "/bin/sh"


@expanded(options=compare_options(), outputs=output_options())
def compare(
    context: typer.Context,
    *,
    options: Options,
    outputs: Outputs,
    details: Details = False,
    fail_on: FailOnOption = None,
) -> None:
    """Race two or more commands (or servers); the first is the baseline.

    A command that fails is out of the race; the others race on, and its failure is reported.

    Exit status: 0 measured, 1 by --fail-on, 2 wrong use, 3 a command failed (also where the others
    were measured), 4 interrupted.
    """
    from ensign.cli.compare_run import run_compare  # noqa: PLC0415  # numpy loads with it

    redo = shlex.join(["ensign", *(context.obj or ())])
    failing = FailOn(tuple(fail_on or ()))
    status = run_compare(options, outputs, failing, redo=redo, details=details)
    if status:
        raise typer.Exit(status)


def plain_options(argv: Sequence[str]) -> list[str]:
    """A command line of `compare` with one word for each option's value.

    InputError where words are missing.

    `-L VAR VALUES` and `-P VAR MIN MAX` have a fixed number of words, which typer cannot declare;
    they become one, joined. A bare `--shell` is `--shell=/bin/sh`. What follows `--` stays as it
    is.
    """
    words = list(argv)
    joined: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--":
            return [*joined, word, *words]
        count = _WORDS.get(word)
        if count is not None:
            values, words = words[:count], words[count:]
            if len(values) < count:
                raise InputError(f"{word} needs {count} words: {_usage(word)}")
            joined += [word, WORDS.join(values)]
        else:
            joined.append(f"{_SHELL}={_DEFAULT_SHELL}" if word == _SHELL else word)
    return joined


def _usage(option: str) -> str:
    return "VAR MIN MAX" if _WORDS[option] == _WORDS["-P"] else "VAR VALUES"
