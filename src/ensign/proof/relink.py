"""Doing a recorded link once more, only for the linker's map. Pure, but for the file read."""

from __future__ import annotations

from pathlib import Path

from ensign.host.foreign_files import HostileFileError, read_foreign
from ensign.model.calls import Call
from ensign.proof.flags import lto_of

_LONGEST_MAP_BYTES = 2**30
_LONGEST_NS = 20 * 10**9
MAP, _OUTPUT = "link.map", "relinked"


def command_for_map(call: Call | None, folder: str) -> tuple[str, ...]:
    """The command that writes a map of that link into `folder`; empty where it is not worth it.

    A link with LTO generates all code again and its map shows no archive members, so it is left
    alone, and so is one without archives, or one that took long.
    """
    if call is None or call.wall_ns > _LONGEST_NS or lto_of(call.ran):
        return ()
    if not any(word.is_library for word in call.line.inputs):
        return ()
    words = (*call.words_without_output(), "-o", f"{folder}/{_OUTPUT}")
    return ("env", "-C", call.cwd, call.program, *words, f"-Wl,-Map={folder}/{MAP}")


def read_map(folder: Path) -> str | None:
    """The map that the command wrote; None if there is none."""
    try:
        return read_foreign(folder / MAP, _LONGEST_MAP_BYTES).decode(errors="replace")
    except HostileFileError:
        return None
