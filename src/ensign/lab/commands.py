"""From a command as typed to an argument list. Pure."""

from __future__ import annotations

import shlex

from ensign.model.errors import InputError

_BARE = frozenset("|&;<>()*?~`$\n")
_IN_DOUBLE_QUOTES = frozenset("`$")


def split_command(text: str, *, shell: bool) -> tuple[str, ...]:
    """The argument list of a command; with `shell` it is handed to `/bin/sh -c` as it is.

    InputError if it is empty, its quotes are open, or it needs a shell that was not asked for.
    """
    if not text.strip():
        raise InputError("a command is empty")
    if shell:
        return ("/bin/sh", "-c", text)
    found = _shell_character(text)
    if found is not None:
        raise InputError(
            f"the command '{text}' contains the shell character '{found}'; "
            "quote it, or pass --shell to run commands by /bin/sh"
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


def parse_cpus(text: str) -> tuple[int, ...]:
    """`1`, `0,2` or `0-3` as CPU numbers. InputError otherwise."""
    cpus: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            cpus += range(int(first), int(last) + 1) if dash else [int(first)]
    except ValueError:
        cpus = []
    if not cpus or min(cpus) < 0:
        raise InputError(f"'{text}' is not a list of CPUs; write it as 1, 0,2 or 0-3")
    return tuple(dict.fromkeys(cpus))
