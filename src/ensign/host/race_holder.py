"""Who holds the race lock, as the file says it: the words of a stranger, and perhaps stale.

They are read with bounds, made visible, and believed only where a process bears them out: process
numbers mean nothing in another PID namespace, and are used again.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ensign.host.json_text import read_json
from ensign.model.quoting import shortened, visible

_MOST_BYTES = 4096
_MOST_CHARACTERS = 200
_LARGEST_PID = 2**22
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}")
_NAMESPACE = re.compile(r"(pid:\[[0-9]{1,20}\])?")
_START = 19  # among the fields behind the name in /proc/PID/stat


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds the lock: `since` is a local time for people.

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
    """What this process says of itself in the file."""
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:_MOST_CHARACTERS]
    pid = os.getpid()
    said = {
        "pid": pid,
        "command": command,
        "since": time.strftime("%H:%M:%S"),
        "started": _started(pid),
        "namespace": _namespace(),
    }
    return json.dumps(said)


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
        said = read_json(os.pread(descriptor, _MOST_BYTES, 0))
        pid, started, namespace = said["pid"], said["started"], said["namespace"]
        command, since = str(said["command"]), str(said["since"])
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
    """Whether it is this process, or one that it was started by."""
    found, pid = {os.getpid()}, os.getppid()
    while pid >= 1 and pid not in found:
        found.add(pid)
        fields = _stat(pid)
        pid = int(fields[1]) if fields else 0
    return holder.pid in found


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
