"""What command lines of compilers say: the recorder's reading, of lines that it saw or did not."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, TypeAdapter

from ensign.meter.questions import ask
from ensign.model.calls import AskedCall, Call, CommandLine, Output

_LINE = TypeAdapter(CommandLine)
_NO_LINE = CommandLine()


class _Parsed(BaseModel):
    line: CommandLine | None
    outputs: tuple[str, ...]


def command_line(said: object) -> CommandLine:
    """The line of a recorded call; one that says nothing where it has none. ValueError."""
    return _NO_LINE if said is None else _LINE.validate_python(said)


def calls_of(executable: Path, asked: Iterable[AskedCall]) -> tuple[Call, ...]:
    """Calls as if they had been recorded when they succeeded, without hashes of what they wrote.

    InternalError where the meter does not answer.
    """
    every = tuple(asked)
    questions = [{"tool": each.tool, "arguments": each.argv[1:]} for each in every]
    answers = ask(executable, "parse", questions, _Parsed)
    return tuple(map(_call, every, answers))


def _call(asked: AskedCall, answer: _Parsed) -> Call:
    # What archivers write is known by what is in it, which nobody saw here.
    names: Sequence[str] = () if answer.line is None else answer.outputs
    paths = (os.path.normpath(str(PurePosixPath(asked.cwd) / name)) for name in names)
    return Call(
        tool=asked.tool,
        program=asked.argv[0],
        argv=asked.argv,
        ran=asked.argv,
        cwd=asked.cwd,
        started_unix_ns=0,
        wall_ns=0,
        exit=0,
        outputs=tuple(Output(path, "", 0) for path in paths),
        line=answer.line or _NO_LINE,
    )
