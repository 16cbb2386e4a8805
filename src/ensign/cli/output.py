"""Standard output and standard error; a reader that went away (`| head`) is no error."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def say(text: str) -> None:
    """Writes a result to standard output, at once."""
    write(sys.stdout, text)


def complain(text: str) -> None:
    """Writes a line for the user to standard error."""
    write(sys.stderr, f"ensign: {text}\n")


def _in_letters_of(stream: TextIO, text: str) -> str:
    """What the stream's encoding lacks becomes a question mark."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)


def write(stream: TextIO, text: str) -> None:
    """Writes at once; nowhere, from when the stream's reader has gone away."""
    try:
        stream.write(_in_letters_of(stream, text))
        stream.flush()
    except BrokenPipeError:
        # What is still buffered must not fail again when Python ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
