"""Reading files of strangers: regular ones only, and no more of them than is wanted."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_regular(path: Path, *, follow: bool = True) -> int:
    """A descriptor for reading. OSError where it is a pipe, a device or anything else but a file.

    Nothing waits, as opening a pipe would; `follow` says whether the last name may be a link.
    """
    descriptor = os.open(path, _FLAGS if follow else _FLAGS | os.O_NOFOLLOW)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular(path: Path, most_bytes: int, *, follow: bool = True) -> bytes:
    """The beginning of a file, of at most so many bytes. OSError as `open_regular`."""
    with os.fdopen(open_regular(path, follow=follow), "rb") as file:
        return file.read(most_bytes)
