"""Running one command to its end: a request goes in, an outcome comes out.

Every command of a build goes through here; `ensign.meter.processes` runs it under the meter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from ensign.host.disk_watch import DiskLimit

Reason = Literal["exited", "deadline", "disk", "ended", "memory", "not-found", "processes"]

TAIL_BYTES = 2000

_COLOR = re.compile(r"\x1b\[[0-9;]*[mK]")


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Resource limits; None is no limit.

    Each process has those of the first group for itself, but `processes`, which counts all of its
    user. Those of a tree are of all its processes together: their number (threads count), and
    their memory.
    """

    file_bytes: int | None = None
    address_space_bytes: int | None = None
    open_files: int | None = None
    cpu_s: int | None = None
    processes: int | None = None
    tree_processes: int | None = None
    tree_memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessRequest:
    """One command. `env` is the whole environment, nothing is inherited.

    `log` takes standard output and standard error together, and is appended to. Without it the
    last `TAIL_BYTES` of each come back in the outcome. `stdin` is a file to read, `stdout` one that
    is written anew and kept out of the log. `deadline_ns` is wall time. With `disk`, all that is
    below some folders may grow by so much together; beyond it the command is ended.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    log: Path | None = None
    deadline_ns: int | None = None
    limits: ProcessLimits = ProcessLimits()
    disk: DiskLimit | None = None
    stdin: Path | None = None
    stdout: Path | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a command: `exit` or `signal` is set, neither if it never ran.

    Times count the whole process tree; `wall_ns` is from start to end. `tail` holds the last
    bytes of the log, or of standard output and error where there was no log. `left_running` names
    the background processes that it left behind, which were ended. `limits_met` are limits of the
    tree that were met while it ran (`memory`, `processes`), also where it went on.
    """

    exit: int | None
    signal: int | None
    reason: Reason
    user_ns: int = 0
    system_ns: int = 0
    wall_ns: int = 0
    peak_memory_bytes: int = 0
    tail: str = ""
    stdout: str = ""
    left_running: tuple[str, ...] = ()
    limits_met: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if it ended by itself with status 0."""
        return self.reason == "exited" and self.exit == 0

    def describe(self) -> str:
        """Outcome in a few words: `ended with status 2`."""
        if self.reason != "exited":
            return _ENDS[self.reason]
        if self.signal is not None:
            return f"died of signal {self.signal}"
        # A shell or a sandbox around it passes a signal on as this status.
        number = (self.exit or 0) - _BY_SIGNAL
        by = f" (as by signal {number})" if 0 < number <= _LAST_SIGNAL else ""
        return f"ended with status {self.exit}{by}"


_ENDS: Mapping[Reason, str] = {
    "deadline": "timed out",
    "disk": "wrote more than it may, and was stopped",
    "ended": "was ended",
    "memory": "exceeded its memory limit and was killed",
    "not-found": "was not found",
    "processes": "failed when it had as many processes as it may",
}
_BY_SIGNAL = 128
_LAST_SIGNAL = 64


class Processes(Protocol):
    """Runs commands; may be used from several threads at once."""

    def run(self, request: ProcessRequest) -> Outcome:
        """Run to the end. Interrupted if `interrupt` was called before or meanwhile."""
        ...

    def interrupt(self) -> None:
        """End everything that runs, and refuse what comes later."""
        ...


def read_tail(log: Path, size_bytes: int = TAIL_BYTES) -> str:
    """Return the last whole lines of a log without colors; empty if there is no log."""
    try:
        with log.open("rb") as file:
            start = max(0, file.seek(0, 2) - size_bytes)
            file.seek(start)
            data = file.read(size_bytes)
    except FileNotFoundError:
        return ""
    if start and b"\n" in data:
        data = data.split(b"\n", 1)[1]
    return without_colors(data.decode(errors="replace"))


def without_colors(text: str) -> str:
    """A text without the sequences by which programs color it for a terminal."""
    return _COLOR.sub("", text)
