"""Options of several words, or with a value that may be missing, which typer cannot declare. Pure.

`-L VAR VALUES` and `-P VAR MIN MAX` have a fixed number of words; they become one, joined. A bare
`--shell` is `--shell=/bin/sh`. Nothing depends on what the words look like.
"""

from __future__ import annotations

from collections.abc import Sequence

from ensign.model.errors import InputError

_JOINED = "\x1f"
_WORDS = {"-P": 3, "--parameter-scan": 3, "-L": 2, "--parameter-list": 2}
_SHELL, _DEFAULT_SHELL = "--shell", "/bin/sh"


def plain_options(argv: Sequence[str]) -> list[str]:
    """The command line with one word for each option's value. InputError where words are missing.

    Only `compare` has such options; what follows `--` stays as it is.
    """
    words = list(argv)
    if words[:1] != ["compare"]:
        return words
    found: list[str] = []
    while words:
        word = words.pop(0)
        if word == "--":
            return [*found, word, *words]
        count = _WORDS.get(word)
        if count is not None:
            values, words = words[:count], words[count:]
            if len(values) < count:
                raise InputError(f"{word} needs {count} words: {_usage(word)}")
            found += [word, _JOINED.join(values)]
        else:
            found.append(f"{_SHELL}={_DEFAULT_SHELL}" if word == _SHELL else word)
    return found


def words_of(value: str) -> tuple[str, ...]:
    """The words that `plain_options` joined."""
    return tuple(value.split(_JOINED))


def _usage(option: str) -> str:
    return "VAR MIN MAX" if _WORDS[option] == _WORDS["-P"] else "VAR VALUES"
