"""Commands of a build, and what stands for the placeholders in them. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from ensign.model.errors import InputError

Commands = tuple[tuple[str, ...], ...]
OF_VARIANT = ("cflags", "ldflags", "allocator")

_PLACEHOLDER = re.compile(r"\{(\{[a-z_]+\})\}|(?<!\$)\{([a-z_]+)\}")


def filled_all(
    commands: Iterable[Sequence[str]], values: Mapping[str, str], where: str
) -> Commands:
    """Fill the placeholders of all commands; see `filled`."""
    return tuple(tuple(filled(word, values, where) for word in argv) for argv in commands)


def filled(text: str, values: Mapping[str, str], where: str) -> str:
    """Fill placeholders, but `{jobs}`; `{{name}}` is the text `{name}`.

    InputError, naming `where`, for one that does not exist.
    """

    def replace(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1]
        name = match[2]
        if name == "jobs":
            return match[0]
        if name == "cxx" and not values.get(name):
            raise InputError(f"{where} uses {{cxx}}, but this compiler's C++ driver is missing")
        if name in values:
            return values[name]
        if name in OF_VARIANT:
            raise InputError(f"{where} uses {{{name}}}, but it is run once for all variants")
        near = difflib.get_close_matches(name, (*values, "jobs"), n=1)
        hint = f"; did you mean {{{near[0]}}}?" if near else ""
        raise InputError(f"{where} has an unknown placeholder {{{name}}}{hint}")

    return _PLACEHOLDER.sub(replace, text)


def with_jobs(commands: Commands, jobs: int) -> Commands:
    """Put the number of parallel jobs into commands."""
    return tuple(tuple(word.replace("{jobs}", str(jobs)) for word in argv) for argv in commands)


def with_folders(commands: Commands, folders: Mapping[str, str]) -> Commands:
    """Put the paths of folders into commands, by placeholders such as `{counts}`."""

    def placed(word: str) -> str:
        for placeholder, path in folders.items():
            word = word.replace(placeholder, path)
        return word

    return tuple(tuple(placed(word) for word in argv) for argv in commands)


def called(argv: tuple[str, ...]) -> str:
    """The program that a command is about, behind `env` and what that sets."""
    rest = argv
    while rest and rest[0] == "env":
        rest = rest[1:]
        while rest and (rest[0].startswith("-") or "=" in rest[0]):
            rest = rest[2:] if rest[0] == "-C" else rest[1:]
    return rest[0] if rest else argv[0]
