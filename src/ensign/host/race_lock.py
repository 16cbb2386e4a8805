"""One race at a time on a machine: two at once widen each other's intervals twentyfold.

The lock is flock(2) on a file that all users agree on, so the kernel lets go of it when its holder
dies, however it dies. What the file says of the holder is for people, and may be stale: the lock
alone decides. A process below the holder (a study that calls `compare`) does not wait for it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ensign.host.json_text import read_json
from ensign.model.finding_kinds.machine import NO_RACE_LOCK, SHARED_MACHINE
from ensign.model.findings import Finding

VARIABLE = "ENSIGN_RACE_LOCK"
_FOLDERS = (Path("/run/lock"), Path("/tmp"))  # noqa: S108  # the same place for every user
_NAME = "ensign-race.lock"
_MOST_BYTES = 4096
_MOST_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock: `since` is a local time for people; pid 0 where it did not say."""

    pid: int = 0
    command: str = ""
    since: str = ""

    def __str__(self) -> str:
        if not self.pid:
            return "another race, of an unknown owner"
        return f"process {self.pid} ({self.command}), racing since {self.since}"


def default_path(environment_value: str | None) -> Path:
    """The file: that of the variable, else one in the first fixed folder that is everybody's."""
    if environment_value:
        return Path(environment_value)
    for folder in _FOLDERS:
        with suppress(OSError):
            if folder.stat().st_mode & stat.S_IWOTH:
                return folder / _NAME
    return _FOLDERS[-1] / _NAME


@dataclass(frozen=True, slots=True)
class RaceLock:
    """`path` None is no lock at all. With `share` nobody is waited for, and the result says so.

    `on_wait` is told for whom it waits, again whenever that is another one.
    """

    path: Path | None = None
    share: bool = False
    on_wait: Callable[[Holder], None] = print

    @contextmanager
    def held(self) -> Iterator[tuple[Finding, ...]]:
        """Waits for the machine, keeps it for the block; what the result must say of it.

        Ctrl-C ends the waiting.
        """
        if self.path is None:
            yield ()
            return
        try:
            descriptor = _opened(self.path)
        except OSError as error:
            text = f"{self.path} cannot be locked ({error.strerror}): other races are not seen"
            yield (NO_RACE_LOCK.found(f"{text}; {VARIABLE} names another"),)
            return
        ours = False
        try:
            findings = self._waited(descriptor)
            ours = findings is None
            if ours:
                _write(descriptor, _words())
            yield findings or ()
        finally:
            if ours:
                _write(descriptor, "")
            os.close(descriptor)

    def _waited(self, descriptor: int) -> tuple[Finding, ...] | None:
        """None as soon as it is ours; findings where it goes on without."""
        told: Holder | None = None
        while not _try(descriptor):
            holder = _holder(descriptor)
            if holder.pid in _ancestors():
                return ()
            if self.share:
                text = (
                    f"shared the machine with {holder}: each widens the other's intervals, as "
                    "--share-machine allowed"
                )
                return (SHARED_MACHINE.found(text),)
            if holder != told:
                self.on_wait(holder)
                told = holder
            # A blocking flock would not notice that its holder is another one by now.
            time.sleep(0.2)
        return None


def _opened(path: Path) -> int:
    """Another user's file is opened as well; it is made for everybody to write into."""
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    for mode in (os.O_RDWR, os.O_RDONLY):
        with suppress(FileNotFoundError, PermissionError):
            return os.open(path, mode | flags)
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o666)
        with suppress(OSError):
            os.fchmod(descriptor, 0o666)
        return descriptor
    return os.open(path, os.O_RDONLY | flags)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _words() -> str:
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:_MOST_CHARACTERS]
    said = {"pid": os.getpid(), "command": command, "since": time.strftime("%H:%M:%S")}
    return json.dumps(said)


def _write(descriptor: int, text: str) -> None:
    # Opened for reading alone it stays as it is: then nobody can be named.
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def _holder(descriptor: int) -> Holder:
    try:
        said = read_json(os.pread(descriptor, _MOST_BYTES, 0))
        holder = Holder(int(said["pid"]), str(said["command"]), str(said["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Holder()
    return holder if Path(f"/proc/{holder.pid}").exists() else Holder()


def _ancestors() -> set[int]:
    """This process and those above it."""
    found, pid = {os.getpid()}, os.getppid()
    while pid > 1 and pid not in found:
        found.add(pid)
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        pid = int(text.rpartition(")")[2].split()[1])
    return found
