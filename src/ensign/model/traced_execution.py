"""Observations of one traced execution: files that ran, files that were written, and more."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

_LOADER = re.compile(r"ld-(?:linux|musl|[0-9])|ld[.]so")


@dataclass(frozen=True, slots=True)
class RanFile:
    """One file of one traced execution.

    `path` is relative to the source folder for what the variant built (`built`), else absolute.
    `sha256` is of what gets loaded; empty where it could not be read. `made`: the execution wrote
    it itself. The tasks spent about `cpu_ns` in its code, as far as they were looked at.
    """

    path: str
    sha256: str
    built: bool
    soname: str = ""
    made: bool = False
    cpu_ns: int = 0

    @property
    def names(self) -> frozenset[str]:
        """Names by which a loader may have asked for it."""
        return frozenset((self.path.rpartition("/")[2], self.soname)) - {""}


@dataclass(frozen=True, slots=True)
class RanOnce:
    """One traced execution of a variant; `not_judged` says what was not seen, or is empty."""

    variant: str
    workload: str
    files: tuple[RanFile, ...]
    not_judged: str = ""


@dataclass(frozen=True, slots=True)
class WhatRan:
    """A file that ran, once for all: the workloads and the variants that loaded it.

    `same` says whether it was the same file for all of these variants.
    """

    path: str
    built: bool
    variants: tuple[str, ...]
    workloads: tuple[str, ...]
    same: bool


class Way(StrEnum):
    """The way in which an execution changed a file, or claimed it for itself."""

    OPENED = "opened"
    APPENDED = "appended"
    NAMED = "named"
    REMOVED = "removed"
    LOCKED = "locked"
    BOUND = "bound"


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A file that was mapped for execution, or a script that was executed.

    `sha256` is its identity: of what of an ELF file gets loaded, without the build-id; of any other
    file all bytes. It is empty where the file was gone, or another, when it was to be read.
    `device` (major and minor number) and `inode` are as `/proc/PID/maps` has them.
    """

    path: str
    sha256: str
    device: str = ""
    inode: int = 0


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file (or socket, or key of System V) that another execution may meet under that name."""

    path: str
    ways: frozenset[Way]


@dataclass(frozen=True, slots=True)
class FileTime:
    """CPU time that tasks were found to spend in a file's code; path "" is code in no file."""

    path: str
    cpu_ns: int


@dataclass(frozen=True, slots=True)
class TracedExecution:
    """One execution, unmeasured, followed with all its children.

    `mapped` has each file once, in the order of paths, `written` what lies outside the execution's
    own `{tmp}`. `cpu_clock_reads` counts what the processes asked of their own CPU time,
    `cpu_timers` the timers that they set by it, `children_clock_reads` what they asked of their
    children's, `cpu_limits_reached` how often a limit of it ended or told one of them. `threads` is
    the most that were alive at once. `code_made_at_run_time`: some code that ran is in no file.
    `exit_status` or `signal` is how the program ended. `read` are files and folders that were
    opened to be read alone, outside `{tmp}`; there are more where `read_in_part`.

    `not_judged` says, for people, what was not seen; it is empty where everything was. `followed`
    is False where nothing was seen: the other fields then mean nothing. `samples` is there where
    looks were asked for; what the kernel does for a task is where the task called it. Where it ran
    in a `root` directory, paths are where the files of that are on this machine. `calls` is what
    of the time in `samples` was within each system call (ns), by its name.
    """

    mapped: tuple[MappedFile, ...]
    written: tuple[str, ...]
    cpu_clock_reads: int
    processes: int
    threads: int
    not_judged: str
    followed: bool = True
    ways: tuple[WrittenFile, ...] = ()
    programs: tuple[str, ...] = ()
    cpu_timers: int = 0
    cpu_limits_reached: int = 0
    children_clock_reads: int = 0
    code_made_at_run_time: bool = False
    read: tuple[str, ...] = ()
    read_in_part: bool = False
    exit_status: int | None = None
    signal: int | None = None
    wall_ns: int = 0
    cpu_ns: int = 0
    samples: tuple[FileTime, ...] = ()
    calls: tuple[tuple[str, int], ...] = ()
    root: str = ""

    @property
    def identities(self) -> frozenset[str] | None:
        """The identities of all files that ran; None where one is not known."""
        if self.not_judged or not self.followed:
            return None
        return frozenset(file.sha256 for file in self.mapped)


def nothing_seen(why: str) -> TracedExecution:
    """An execution of which nothing is known, and why."""
    return TracedExecution((), (), 0, 0, 0, why, followed=False)


def is_loader(path: str) -> bool:
    """True of a file that loads programs, by its name."""
    return _LOADER.match(path.rpartition("/")[2]) is not None
