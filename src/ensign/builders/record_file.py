"""The file in which `ensign record` keeps a build's calls, and `ensign doctor` finds them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ensign.builders.recorder import call_of
from ensign.host.files import write_atomically
from ensign.host.regular_file import open_sized, read_json, read_regular
from ensign.model.calls import Call
from ensign.model.errors import InputError

RECORD_FILE = ".ensign-record.jsonl"
LARGEST_RECORD_BYTES = 256 << 20
_SCHEMA = 1
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class RecordHeader:
    """The first line of the file: which command was recorded, where, and how it ended.

    `exit` is its exit status. `calls` and `sha256` are of the lines that follow; `kept` of them are
    of earlier builds.
    """

    ensign_record: int
    command: tuple[str, ...]
    folder: str
    ended_unix_s: int
    exit: int
    calls: int
    kept: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """Recorded calls, each with its line of JSON."""

    header: RecordHeader
    calls: tuple[Call, ...]
    lines: tuple[bytes, ...]


_HEADER = TypeAdapter(RecordHeader)


def read_record(path: Path) -> BuildRecord:
    """Read it. InputError where it is damaged, or was written by something else."""
    try:
        data = read_regular(path, LARGEST_RECORD_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    first, _, rest = data.partition(b"\n")
    try:
        header = _HEADER.validate_python(read_json(first))
        lines = tuple(rest.splitlines(keepends=True))
        calls = tuple(call_of(line.decode()) for line in lines)
    except ValidationError:
        raise _damaged(path, "its first line is not what a record begins with") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise _damaged(path, str(error).splitlines()[0] if str(error) else "") from None
    if header.ensign_record != _SCHEMA or hashlib.sha256(rest).hexdigest() != header.sha256:
        raise _damaged(path, "it is cut off, or was changed")
    return BuildRecord(header, calls, lines)


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path} is no whole record: {why}; remove it, and record the build again")


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A command that was recorded: its words, its folder, when it ended and how."""

    command: Sequence[str]
    folder: Path
    ended_unix_s: int
    exit: int


def write_record(path: Path, run: RecordedRun, lines: Iterable[bytes], kept: int = 0) -> None:
    """Write it whole or not at all; the first `kept` lines are of earlier builds."""
    every = tuple(lines)
    data = b"".join(every)
    header = RecordHeader(
        ensign_record=_SCHEMA,
        command=tuple(run.command),
        folder=str(run.folder),
        ended_unix_s=run.ended_unix_s,
        exit=run.exit,
        calls=len(every),
        kept=kept,
        sha256=hashlib.sha256(data).hexdigest(),
    )
    write_atomically(path, json.dumps(asdict(header)).encode() + b"\n" + data)


def still_true(earlier: BuildRecord, now: Sequence[Call]) -> tuple[bytes, ...]:
    """Lines of the earlier record whose files are still there as they were written.

    What is made again by `now` counts no more.
    """
    again = {output.path for call in now for output in call.outputs}
    return tuple(
        line
        for call, line in zip(earlier.calls, earlier.lines, strict=True)
        if call.outputs
        and all(_stands(output.path, output.sha256, again) for output in call.outputs)
    )


def _stands(path: str, sha256: str, again: set[str]) -> bool:
    try:
        if path in again:
            return False
        with open_sized(Path(path)) as file:  # a record may name a pipe, or a device
            digest = hashlib.sha256()
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
            return digest.hexdigest() == sha256
    except (OSError, ValueError):
        return False
