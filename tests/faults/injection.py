"""Makes the n-th call fail that ensign's own code makes of the system, and counts all of them.

What ensign asks of the system goes through a few functions of the interpreter: `os`, `open`,
`fcntl.flock`, the start of a process or a thread. Each is wrapped here, so that the product needs
no code for it. A call site is the innermost line of ensign's own code on the stack, and what it
does there: `host/files.py:33 write`. Calls below a library that a line of ensign's called belong to
that line.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ensign

_OURS = str(Path(ensign.__file__).parent) + os.sep

# What a call of that kind may meet. MEMORY is Python's own: an allocation that fails.
_READING = ("EIO", "EMFILE", "ENOMEM", "MEMORY")
_MAKING = ("ENOSPC", "EIO", "EACCES", "ENOMEM")
_CHANGING = ("EIO", "EACCES")
KINDS: dict[str, tuple[str, ...]] = {
    "open": _READING,
    "create": ("ENOSPC", "EIO", "EMFILE", "EACCES", "ENOMEM"),
    "read": ("EIO", "MEMORY"),
    "write": ("ENOSPC", "EIO"),
    "close": ("ENOSPC", "EIO"),
    "sync": ("ENOSPC", "EIO"),
    "make": _MAKING,
    "rename": _MAKING,
    "remove": _CHANGING,
    "change": _CHANGING,
    "list": _READING,
    "look": ("EIO", "EACCES", "ENOMEM"),
    "lock": ("ENOLCK", "EIO"),
    "pipe": ("EMFILE",),
    "fork": ("EAGAIN", "ENOMEM"),
    "thread": ("EAGAIN",),
}
_CALLS = {
    "make": ("mkdir", "symlink", "link", "mkfifo"),
    "rename": ("rename", "replace"),
    "remove": ("unlink", "remove", "rmdir"),
    "change": ("utime", "chmod", "fchmod", "chown", "fchown", "setxattr"),
    "sync": ("fsync", "fdatasync"),
    "write": ("write", "pwrite", "ftruncate", "truncate", "sendfile", "copy_file_range"),
    "read": ("read", "pread"),
    "list": ("listdir", "scandir"),
    "look": ("stat", "lstat", "readlink", "statvfs"),
    "pipe": ("pipe", "pipe2", "dup", "memfd_create"),
}


_STARTS_OF_THREADS = ("_start_joinable_thread", "_start_new_thread")  # since Python 3.13; before


@dataclass(frozen=True, slots=True)
class Fault:
    """Which call fails: the `nth` of a site, or of all sites (`site` is empty); 1 is the first.

    `lasting`: those after it fail as well, as on a disk that stays full.
    """

    site: str = ""
    nth: int = 1
    kind: str = ""
    lasting: bool = False


@dataclass
class Injector:
    """Counts calls, makes one of them fail, and writes where into a file of lines of JSON."""

    fault: Fault | None
    log: int
    counts: dict[str, int] = field(default_factory=dict)
    total: int = 0
    struck: bool = False
    lock: Any = field(default_factory=threading.RLock)

    def hit(self, operation: str, path: object = None) -> None:
        """A call of that kind; raises where it is to fail, with the path as the system does."""
        site = _site(operation)
        if site is None:
            return
        with self.lock:
            self.total += 1
            count = self.counts[site] = self.counts.get(site, 0) + 1
            kind = self._kind(site, operation, count)
            if kind is None:
                return
            if not self.struck:
                _raw_write(self.log, _line({"struck": site, "kind": kind, "nth": self.total}))
            self.struck = True
        raise _error(kind, path)

    def _kind(self, site: str, operation: str, count: int) -> str | None:
        fault = self.fault
        if fault is None:
            return None
        kind = fault.kind or KINDS[operation][fault.nth % len(KINDS[operation])]
        if self.struck:
            return kind if fault.lasting and fault.kind in KINDS[operation] else None
        number = count if fault.site == site else self.total
        if number != fault.nth or fault.site not in ("", site):
            return None
        return kind if kind in KINDS[operation] else KINDS[operation][0]

    def finish(self) -> None:
        """Write how often each site was met."""
        _raw_write(self.log, _line({"total": self.total, "counts": self.counts}))


_raw_write = os.write


def _line(said: object) -> bytes:
    return json.dumps(said).encode() + b"\n"


def _error(kind: str, path: object) -> BaseException:
    if kind == "MEMORY":
        return MemoryError()
    number = getattr(errno, kind)
    named = (path,) if isinstance(path, (str, bytes, os.PathLike)) else ()
    return OSError(number, os.strerror(number), *named)


def _site(operation: str) -> str | None:
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_OURS):
            return f"{name[len(_OURS) :]}:{frame.f_lineno} {operation}"
        if "importlib" in name:
            return None
        frame = frame.f_back  # type: ignore[assignment]
    return None


def install(injector: Injector) -> None:
    """Wraps what this process calls of the system, for good."""
    hit = injector.hit

    def wrapped(function: Callable[..., Any], operation: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            hit(operation, args[0] if args else None)
            return function(*args, **named)

        for group in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            if function in group:
                group.add(call)
        return call

    for operation, names in _CALLS.items():
        for name in names:
            if hasattr(os, name):
                setattr(os, name, wrapped(getattr(os, name), operation))
    _wrap_opening(hit)
    fcntl.flock = wrapped(fcntl.flock, "lock")
    subprocess._fork_exec = wrapped(subprocess._fork_exec, "fork")  # type: ignore[attr-defined]
    name = next(each for each in _STARTS_OF_THREADS if hasattr(threading, each))
    start = getattr(threading, name)

    def start_thread(*args: Any, **named: Any) -> Any:
        try:
            hit("thread")
        except OSError:
            raise RuntimeError("can't start new thread") from None
        return start(*args, **named)

    setattr(threading, name, start_thread)


def _wrap_opening(hit: Callable[..., None]) -> None:
    os_open, fstat = os.open, os.fstat

    def open_descriptor(path: Any, flags: int, *args: Any, **named: Any) -> int:
        hit("create" if flags & os.O_CREAT else "open", path)
        return os_open(path, flags, *args, **named)

    class CountedFile(io.FileIO):
        def __init__(self, file: Any, mode: str, closefd: bool = True, opener: Any = None) -> None:  # noqa: FBT001, FBT002
            if not isinstance(file, int):
                hit("open" if mode == "r" else "create", file)
            super().__init__(file, mode, closefd, opener)
            self.counts = stat.S_ISREG(fstat(self.fileno()).st_mode)

        def _count(self, operation: str) -> None:
            if self.counts:
                hit(operation)

        def write(self, data: Any) -> int:
            self._count("write")
            return super().write(data)

        def readinto(self, buffer: Any) -> int:
            self._count("read")
            return super().readinto(buffer)

        def readall(self) -> bytes:
            self._count("read")
            return super().readall()

        def read(self, size: int | None = -1) -> bytes:
            self._count("read")
            return super().read(-1 if size is None else size)

        def truncate(self, size: int | None = None) -> int:
            self._count("write")
            return super().truncate(size)

        def close(self) -> None:
            was_open = not self.closed
            super().close()
            if was_open and self.mode != "rb":
                self._count("close")

    def open_file(  # noqa: PLR0913  # as Python has it
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,  # noqa: FBT001, FBT002
        opener: Any = None,
    ) -> Any:
        plain = mode.replace("t", "").replace("b", "")
        raw = CountedFile(file, plain, closefd, opener)
        try:
            if buffering == 0:
                return raw
            size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
            kind: Any = io.BufferedReader if plain == "r" else io.BufferedWriter
            buffered = (io.BufferedRandom if "+" in plain else kind)(raw, size)
            if "b" in mode:
                return buffered
            text = io.TextIOWrapper(buffered, encoding, errors, newline, buffering == 1)
            text.mode = mode  # type: ignore[misc]
        except BaseException:
            raw.close()
            raise
        return text

    os.open = open_descriptor
    builtins.open = io.open = open_file
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        raw = CountedFile(stream.fileno(), "w", False)  # noqa: FBT003
        text = io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, stream.errors)
        text.mode = "w"  # type: ignore[misc]
        setattr(sys, name, text)
