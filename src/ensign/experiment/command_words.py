"""From a command as typed to an argument list. Pure."""

from __future__ import annotations

import re
import shlex

from ensign.model.errors import InputError

_BARE = frozenset("|&;<>()*?~`$\n")
_IN_DOUBLE_QUOTES = frozenset("`$")
_LAST_CPU = 65_535
_LAST_PORT = 65_535


def split_command(text: str, *, shell: str) -> tuple[str, ...]:
    """The argument list of a command; with a `shell` it is handed to `SHELL -c` as it is.

    InputError if it is empty or no text, its quotes are open, or it needs a shell that was not
    asked for.
    """
    if not text.strip():
        raise InputError("a command is empty")
    if any("\udc80" <= character <= "\udcff" for character in text):
        # So Python stands for bytes of the command line that are not UTF-8.
        shown = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        raise InputError(
            f"the command '{shown}' is not UTF-8 text; give the file another name, or a link to it"
        )
    if shell:
        return (shell, "-c", text)
    found = _shell_character(text)
    if found is not None:
        raise InputError(
            f"the command '{text}' contains the shell character '{found}'; "
            "quote it, or pass --shell (or --shell=bash) to run commands by a shell"
        )
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InputError(f"the command '{text}' cannot be split: {error}") from None


def _shell_character(text: str) -> str | None:
    quote = ""
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            if character == quote:
                quote = ""
            elif quote == '"' and character in _IN_DOUBLE_QUOTES:
                return character
        elif character in "'\"":
            quote = character
        elif character in _BARE:
            return character
    return None


def require_group(option: str, pattern: str, number: str) -> None:
    """InputError where a pattern of that option has no group for the number, which looks so."""
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise InputError(
            f"{option} '{pattern}' is not a valid regular expression: {error}"
        ) from None
    if groups < 1:
        raise InputError(f"{option} '{pattern}' needs a group around the number: ({number})")


def parse_cpus(text: str) -> tuple[int, ...]:
    """`1`, `0,2` or `0-3` as CPU numbers. InputError otherwise."""
    cpus: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            cpus += _span(int(first), int(last)) if dash else [int(first)]
    except ValueError:
        cpus = []
    if not cpus or min(cpus) < 0:
        raise InputError(f"'{text}' is not a list of CPUs; write it as 1, 0,2 or 0-3")
    return tuple(dict.fromkeys(cpus))


def parse_ports(text: str) -> tuple[int, int]:
    """`20000-29999` as the first and the last port. InputError otherwise."""
    first, dash, last = text.partition("-")
    if dash and first.isdecimal() and last.isdecimal():
        ports = int(first), int(last)
        if 0 < ports[0] <= ports[1] <= _LAST_PORT:
            return ports
    raise InputError(f"'{text}' is not a range of ports; write it as 20000-29999")


def _span(first: int, last: int) -> range:
    if last > _LAST_CPU:
        raise ValueError
    return range(first, last + 1)
