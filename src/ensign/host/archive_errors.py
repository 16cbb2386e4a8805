"""What Python's readers of zip and tar raise at damaged archives: whatever they stumble over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ensign.model.errors import EnsignError, InputError


@contextmanager
def archive_errors(said: str) -> Iterator[None]:
    """Whatever is raised is an InputError that says so much, save what ensign itself raises."""
    try:
        yield
    except (EnsignError, MemoryError):
        raise
    except Exception as error:
        why = str(error).split("\n", 1)[0][:200] or type(error).__name__
        raise InputError(f"{said} ({why})") from error
