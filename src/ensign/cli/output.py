"""Standard output and standard error: the one place where text goes to a terminal.

What others wrote (names, output, messages) is shown there, never obeyed: characters that a terminal
takes for commands become visible. A reader that went away (`| head`) is no error, a full disk is.
Where standard error cannot be written there is nobody to tell, and the exit status says it all.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import TextIO

from ensign.host.storage import DISK_FULL
from ensign.model.errors import StorageFailed
from ensign.model.quoting import visible, visible_lines

_COLOR = re.compile(r"(\x1b\[[0-9;]*m)")
_CLEAR_LINE = "\r\x1b[K"


def say(text: str) -> None:
    """Writes a result to standard output, at once."""
    write(sys.stdout, text)


def say_in_color(text: str) -> None:
    """As `say`, of a page whose colors are our own: whoever made it showed those of others."""
    parts = _COLOR.split(text)
    shown = (part if at % 2 else visible_lines(part) for at, part in enumerate(parts))
    _send(sys.stdout, "".join(shown))


def complain(text: str) -> None:
    """Writes a line for the user to standard error, if that can be."""
    write(sys.stderr, f"ensign: {text}\n")


def rewrite(stream: TextIO, text: str) -> None:
    """Writes one line in the place of the last, without ending it."""
    _send(stream, f"{_CLEAR_LINE}{visible(text)}")


def _in_letters_of(stream: TextIO, text: str) -> str:
    """The text, with a question mark for each character that the stream's encoding lacks."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def write(stream: TextIO, text: str) -> None:
    """Writes at once; nowhere, from when the stream's reader has gone away, or its disk is full.

    StorageFailed where standard output cannot be written; complaints are lost then.
    """
    _send(stream, visible_lines(text))


def _send(stream: TextIO, text: str) -> None:
    try:
        stream.write(_in_letters_of(stream, text))
        stream.flush()
    except BrokenPipeError:
        _give_up(stream)
    except OSError as error:
        _give_up(stream)
        if stream is sys.stdout:
            why = error.strerror
            if error.errno in DISK_FULL:
                why = "the disk is full; make space where it goes, or send it elsewhere"
            raise StorageFailed(f"cannot write standard output: {why}") from error


def settle() -> None:
    """Before Python ends: what cannot be written must not change the exit status."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _give_up(stream)


def _give_up(stream: TextIO) -> None:
    """Drops what is buffered: it must not fail again when Python ends."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
