"""Placeholders in a study: which of them a text uses, and which nobody there knows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ensign.model import placeholders
from ensign.model.study_problems import Problem, Where, suggestion


def uses(texts: Iterable[str], *names: str) -> bool:
    """Whether a text has one of these placeholders."""
    return any(name in placeholders.names_in(text) for text in texts for name in names)


def unknown(argv: Sequence[str], where: Where, allowed: Sequence[str]) -> Iterator[Problem]:
    """The placeholders of a command that are not allowed there; `where` leads to the command."""
    for index, text in enumerate(argv):
        yield from unknown_in_text(text, (*where, index), allowed)


def unknown_in_env(env: dict[str, str], where: Where, allowed: Sequence[str]) -> Iterator[Problem]:
    """The same of the values of an environment."""
    for name, text in env.items():
        yield from unknown_in_text(text, (*where, name), allowed)


def unknown_in_text(text: str, where: Where, allowed: Sequence[str]) -> Iterator[Problem]:
    """The same of one text."""
    key = next(str(step) for step in reversed(where) if isinstance(step, str))
    for name in placeholders.names_in(text):
        if name not in allowed:
            near = suggestion(name, allowed).replace("'", "{", 1).replace("'", "}", 1)
            known = "is not known here" if name in placeholders.RESERVED else "is unknown"
            yield Problem(where, f"'{key}': placeholder {{{name}}} {known}{near}")
