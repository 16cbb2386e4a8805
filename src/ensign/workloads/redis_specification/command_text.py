"""The text of a memtier command, taken apart as memtier does, in the words of a drive. Pure.

Source: arbitrary_command::split_command_to_args() of memtier's config_types.cpp, which follows
Redis' sdssplitargs(), and redis_protocol::format_arbitrary_command() of its protocol.cpp.
"""

from __future__ import annotations

import string

_KEY, _DATA = "__key__", "__data__"
_ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "b": b"\b", "a": b"\a"}
_HEX_DIGITS = 2


class BadCommand(ValueError):
    """A command that memtier would not accept, or that a drive cannot say."""


def drive_words(text: str) -> list[str]:
    """The arguments of a command with a drive's placeholders. BadCommand where it has none.

    As in memtier, the first `__key__` of an argument is a key, and `__data__` is a whole argument.
    """
    words = [_word(argument) for argument in split_command(text)]
    if not words or not words[0]:
        raise BadCommand("an empty command")
    return words


def split_command(text: str) -> list[bytes]:
    """The arguments of a command as bytes."""
    arguments: list[bytes] = []
    place = 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        argument, place = _argument(text, place)
        arguments.append(argument)
    return arguments


def _argument(text: str, place: int) -> tuple[bytes, int]:
    found = b""
    while place < len(text) and not text[place].isspace():
        if text[place] in "\"'":
            part, place = _quoted(text, place)
            if place < len(text) and not text[place].isspace():
                raise BadCommand(f"a quote ends inside a word: {text[:40]}")
            return found + part, place
        found += text[place].encode()
        place += 1
    return found, place


def _quoted(text: str, place: int) -> tuple[bytes, int]:
    quote, place = text[place], place + 1
    found = b""
    while place < len(text):
        letter, following = text[place], text[place + 1 : place + 2]
        if letter == quote:
            return found, place + 1
        if letter == "\\" and quote == '"' and following:
            part, place = _escaped(text, place + 1)
            found += part
        elif letter == "\\" and following == quote:
            found, place = found + quote.encode(), place + 2
        else:
            found, place = found + letter.encode(), place + 1
    raise BadCommand(f"a quote is left open: {text[:40]}")


def _escaped(text: str, place: int) -> tuple[bytes, int]:
    """What stands after a backslash between double quotes."""
    digits = text[place + 1 : place + 1 + _HEX_DIGITS]
    whole = len(digits) == _HEX_DIGITS and set(digits) <= set(string.hexdigits)
    if text[place] == "x" and whole:
        return bytes.fromhex(digits), place + 1 + _HEX_DIGITS
    return _ESCAPES.get(text[place], text[place].encode()), place + 1


def _word(argument: bytes) -> str:
    try:
        text = argument.decode()
    except UnicodeDecodeError:
        return f"{{hex:{argument.hex()}}}"
    if "\0" in text:
        return f"{{hex:{argument.hex()}}}"
    if text == _DATA:
        return "{data}"
    if _DATA in text:
        raise BadCommand(f"{_DATA} inside a longer word: {text[:40]}")
    return text.replace(_KEY, "{key}", 1)
