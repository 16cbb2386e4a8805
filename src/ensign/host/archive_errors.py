"""What Python's readers of zip and tar raise at damaged archives: whatever they stumble over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ensign.host.os_errors import shortage_behind
from ensign.model.errors import EnsignError, InputError


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
