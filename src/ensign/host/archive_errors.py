"""What Python's readers of zip and tar raise at damaged archives: whatever they stumble over."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from ensign.model.errors import EnsignError, InputError

_SHORTAGES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO})


def is_shortage(error: Exception) -> bool:
    """Whether it says nothing of the file, but that the system lacks something or a disk fails."""
    return isinstance(error, OSError) and error.errno in _SHORTAGES


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
        if is_shortage(error):
            raise
        why = str(error).split("\n", 1)[0][:200] or type(error).__name__
        raise InputError(f"{said} ({why})") from error
