"""Reading files of strangers: regular ones only, and no more of them than is wanted."""

from __future__ import annotations

import errno
import io
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from ensign.host.os_errors import shortage_behind
from ensign.model.errors import EnsignError, InputError
from ensign.model.quoting import visible


@contextmanager
def archive_errors(said: str) -> Iterator[None]:
    """Whatever is raised is an InputError that says so much.

    But not what ensign itself raises, nor that the system has no more files or memory to give. (A
    MemoryError is the archive's: it may ask for any.)
    """
    try:
        yield
    except EnsignError:
        raise
    except Exception as error:
        refused = shortage_behind(error)
        if isinstance(refused, OSError):
            raise refused from None
        why = str(error).split("\n", 1)[0][:200] or type(error).__name__
        raise InputError(f"{said} ({why})") from error


_LONGEST_INTEGER = 20


def read_json(text: str | bytes) -> Any:
    """Value of a JSON text.

    ValueError where it is none, nests too deeply, or has numbers that no file of ensign has: those
    beyond 64 bits, and decimals that are infinite.
    """
    try:
        return json.loads(text, parse_int=_integer, parse_float=_decimal)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_INTEGER:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _decimal(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is too large")
    return number


_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# Their files say that they are regular, but reading one may wait, never end, or do something.
_KERNELS = ("/proc", "/sys", "/sys/fs/cgroup", "/sys/kernel/debug", "/sys/kernel/tracing")


def open_regular(path: Path, *, follow: bool = True) -> int:
    """A descriptor for reading. OSError where it is a pipe, a device or anything else but a file.

    What the kernel makes up (in /proc, /sys) is none either; `/proc/PID/exe` leads to one.

    Nothing waits, as opening a pipe would; `follow` says whether the last name may be a link.
    """
    descriptor = os.open(path, _FLAGS if follow else _FLAGS | os.O_NOFOLLOW)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and not _is_the_kernels(status.st_dev):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular(path: Path, most_bytes: int, *, follow: bool = True) -> bytes:
    """The beginning of a file, of at most so many bytes. OSError as `open_regular`."""
    with os.fdopen(open_regular(path, follow=follow), "rb") as file:
        return file.read(most_bytes)


def _is_the_kernels(device: int) -> bool:
    for folder in _KERNELS:
        with suppress(OSError):
            if Path(folder).stat().st_dev == device:
                return True
    return False


class _Sized(io.RawIOBase):
    """A file up to the size that it has now: one that grows may have no other end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._size_bytes = os.fstat(descriptor).st_size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size_bytes}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._at = start + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer)[: max(0, self._size_bytes - self._at)]
        read = os.preadv(self._descriptor, [view], self._at)
        self._at += read
        return read

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


def open_sized(path: Path) -> IO[bytes]:
    """A regular file for libraries that read to its end. OSError as `open_regular`."""
    return io.BufferedReader(_Sized(open_regular(path)))


_MOST_NEIGHBORS = 10_000
_LARGEST_BYTES = 10 * 2**20


def read_text(path: Path, *, largest_bytes: int = _LARGEST_BYTES) -> str:
    """The text of a UTF-8 file, without a byte order mark.

    InputError, without the path, where it is missing, a folder, unreadable, too large, not UTF-8
    or empty.
    """
    try:
        data = read_regular(path, largest_bytes + 1)
    except FileNotFoundError:
        raise InputError(f"there is no such file{_neighbors(path)}") from None
    except IsADirectoryError:
        raise InputError(f"is a folder; name a file in it{_neighbors(path / 'x')}") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}") from None
    if len(data) > largest_bytes:
        raise InputError(f"is larger than {largest_bytes // 2**20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"is not UTF-8 text (line {line}); save it as UTF-8") from None
    if not text.strip():
        raise InputError("is empty")
    return text


def _neighbors(path: Path) -> str:
    try:
        with os.scandir(path.parent) as entries:
            names = (entry.name for entry in islice(entries, _MOST_NEIGHBORS))
            studies = sorted(name for name in names if name.endswith(".toml"))[:3]
    except OSError:
        return ""
    return f"; nearby: {', '.join(map(visible, studies))}" if studies else ""
