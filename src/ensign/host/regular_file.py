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
