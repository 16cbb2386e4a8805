"""One race at a time on a machine: two at once widen each other's intervals twentyfold.

The lock is flock(2) on a file that all users and all containers that share its folder agree on, so
the kernel lets go of it when its holder dies, however it dies. What the file says of the holder is
for people: the lock alone decides. A process below the holder (a study that calls `compare`) does
not wait for it. A file that another user made un-lockable costs a finding, never a hang.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shlex
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ensign.host.regular_file import read_json
from ensign.model.finding_kinds.machine import NO_RACE_LOCK, SHARED_MACHINE
from ensign.model.findings import Finding
from ensign.model.quoting import shortened, visible

_MOST_BYTES = 4096
_MOST_CHARACTERS = 200
_LARGEST_PID = 2**22
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}")
_NAMESPACE = re.compile(r"(pid:\[[0-9]{1,20}\])?")
_START = 19  # among the fields behind the name in /proc/PID/stat


@dataclass(frozen=True, slots=True)
class Holder:
    """Holder of the lock: `since` is a local time for people.

    `pid` is 0 where it did not say, or is in another PID namespace (`elsewhere`).
    """

    pid: int = 0
    command: str = ""
    since: str = ""
    elsewhere: bool = False

    def __str__(self) -> str:
        if not (self.pid or self.elsewhere):
            return "another race, of an unknown owner"
        who = "a race in another container" if self.elsewhere else f"process {self.pid}"
        since = f", racing since {self.since}" if self.since else ""
        return f"{who} ({self.command}){since}"


def own_words() -> str:
    """Entry of this process in the file."""
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:_MOST_CHARACTERS]
    pid = os.getpid()
    owner = {
        "pid": pid,
        "command": command,
        "since": time.strftime("%H:%M:%S"),
        "started": _started(pid),
        "namespace": _namespace(),
    }
    return json.dumps(owner)


def write_words(descriptor: int, text: str) -> None:
    """Only over such words: a file that somebody named by mistake keeps what is in it."""
    # Opened for reading alone it stays as it is: then nobody can be named.
    with suppress(OSError):
        there = os.pread(descriptor, _MOST_BYTES + 1, 0)
        if not there or (len(there) <= _MOST_BYTES and there.startswith(b'{"pid"')):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, text.encode(errors="replace"), 0)


def read_holder(descriptor: int) -> Holder:
    """Whom the file names, where that can be."""
    try:
        owner = read_json(os.pread(descriptor, _MOST_BYTES, 0))
        pid, started, namespace = owner["pid"], owner["started"], owner["namespace"]
        command, since = str(owner["command"]), str(owner["since"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return Holder()
    if type(pid) is not int or not 0 < pid <= _LARGEST_PID:
        return Holder()
    if not isinstance(namespace, str) or not _NAMESPACE.fullmatch(namespace):
        return Holder()
    command = visible(shortened(command, _MOST_CHARACTERS))
    since = since if _TIME.fullmatch(since) else ""
    if namespace != _namespace():
        return Holder(0, command, since, elsewhere=True)
    if started is None or started != _started(pid):
        return Holder()
    return Holder(pid, command, since)


def is_above(holder: Holder) -> bool:
    """True if it is this process, or one that it was started by."""
    pids, pid = {os.getpid()}, os.getppid()
    while pid >= 1 and pid not in pids:
        pids.add(pid)
        fields = _stat(pid)
        pid = int(fields[1]) if fields else 0
    return holder.pid in pids


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    fields = _stat(pid)
    return fields[_START] if len(fields) > _START else None


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; none where there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


__all__ = ["VARIABLE", "Holder", "RaceLock", "default_path"]

VARIABLE = "ENSIGN_RACE_LOCK"
_FOLDERS = (Path("/run/lock"), Path("/tmp"))  # noqa: S108  # the same place for every user
_NAME = "ensign-race.lock"
_LOOK_EVERY_S = 0.2
_UNKNOWN_FOR_S = 1.0
_TELL_EVERY_S = 10.0
_MADE_WITHIN_S = 1.0
_REASONS = {
    errno.ELOOP: "it is a link",
    errno.EISDIR: "it is a folder",
    errno.ENXIO: "it is no regular file",
}


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

    `on_wait` is told for whom it waits, again when that is another one, but not all the time.
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
            descriptor, findings = self._waited(self.path)
        except OSError as error:
            reason = _REASONS.get(error.errno or 0, error.strerror)
            text = f"{self.path} cannot be locked ({reason}): other races are not seen"
            yield (NO_RACE_LOCK.found(f"{text}; {VARIABLE} names another"),)
            return
        ours = findings is None
        try:
            if ours:
                write_words(descriptor, own_words())
            yield findings or ()
        finally:
            if ours:
                write_words(descriptor, "")
            os.close(descriptor)

    def _waited(self, path: Path) -> tuple[int, tuple[Finding, ...] | None]:
        """The open file, and None as soon as it is ours, findings where it goes on without."""
        telling = _Telling(self.on_wait)
        descriptor = _opened(path)
        try:
            while True:
                if not _try(descriptor):
                    findings = self._of_other(read_holder(descriptor), telling)
                    if findings is not None:
                        return descriptor, findings
                    # A blocking flock would not notice that its holder is another one by now.
                    time.sleep(_LOOK_EVERY_S)
                elif _is_still(descriptor, path):
                    return descriptor, None
                else:
                    # Somebody removed it meanwhile: others lock the new one.
                    os.close(descriptor)
                    descriptor = -1
                    descriptor = _opened(path)
        except BaseException:
            if descriptor >= 0:
                os.close(descriptor)
            raise

    def _of_other(self, holder: Holder, telling: _Telling) -> tuple[Finding, ...] | None:
        """Findings where nobody is waited for."""
        if is_above(holder):
            return ()
        if self.share:
            text = (
                f"shared the machine with {holder}: each widens the other's intervals, as "
                "--share-machine allowed"
            )
            return (SHARED_MACHINE.found(text),)
        telling.tell(holder)
        return None


class _Telling:
    """Tells for whom one waits: not who is about to say so, and not ever again whatever it says."""

    def __init__(self, on_wait: Callable[[Holder], None]) -> None:
        self._on_wait = on_wait
        self._told: Holder | None = None
        self._quiet_until_s = time.monotonic() + _UNKNOWN_FOR_S

    def tell(self, holder: Holder) -> None:
        is_known = holder != Holder()
        now_s = time.monotonic()
        first = self._told is None and is_known
        if holder == self._told or (now_s < self._quiet_until_s and not first):
            return
        if self._told is not None and not is_known:
            return
        self._told = holder
        self._quiet_until_s = now_s + _TELL_EVERY_S
        self._on_wait(holder)


def _opened(path: Path) -> int:
    """Another user's file is opened as well; it is made for everybody to write into.

    Not by O_CREAT: kernels forbid that for files of others in a sticky folder.
    """
    flags = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    give_up_s = time.monotonic() + _MADE_WITHIN_S
    while True:
        for mode in (os.O_RDWR, os.O_RDONLY):
            with suppress(FileNotFoundError, PermissionError):
                return _regular(os.open(path, mode | flags))
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o666)
            with suppress(OSError):
                os.fchmod(descriptor, 0o666)
            return descriptor
        # Whoever just made it may still be about to let others in.
        if time.monotonic() > give_up_s:
            return _regular(os.open(path, os.O_RDONLY | flags))
        time.sleep(_LOOK_EVERY_S / 4)


def _regular(descriptor: int) -> int:
    """A file with one name: what is written into it must be nothing else's content."""
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
        return descriptor
    os.close(descriptor)
    linked = stat.S_ISREG(status.st_mode)
    what = "it has other names, too" if linked else "it is no regular file"
    raise OSError(errno.EINVAL, what)


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except OSError:
        return False


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
