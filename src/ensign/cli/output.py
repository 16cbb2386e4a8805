"""Standard output and standard error; a reader that went away (`| head`) is no error.

Where standard error cannot be written there is nobody to tell, and the exit status says it all.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO


def say(text: str) -> None:
    """Writes a result to standard output, at once."""
    write(sys.stdout, text)


def complain(text: str) -> None:
    """Writes a line for the user to standard error, if that can be."""
    with suppress(OSError):
        write(sys.stderr, f"ensign: {text}\n")


def _in_letters_of(stream: TextIO, text: str) -> str:
    """What the stream's encoding lacks becomes a question mark."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def write(stream: TextIO, text: str) -> None:
    """Writes at once; nowhere, from when the stream's reader has gone away, or its disk is full."""
    try:
        stream.write(_in_letters_of(stream, text))
        stream.flush()
    except BrokenPipeError:
        _give_up(stream)
    except OSError:
        _give_up(stream)
        raise


def settle() -> None:
    """Before Python ends: what cannot be written must not change the exit status."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _give_up(stream)


def _give_up(stream: TextIO) -> None:
    """What is still buffered must not fail again when Python ends."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
