"""A folder for one run, named and locked as the meter's are: what we leave, a later run removes."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ensign.host.files import remove_tree, storage_errors

_OWN = 0o700


@contextmanager
def leased_folder() -> Iterator[Path]:
    """A folder of mode 0700 below the user's folder in TMPDIR; it goes with the block.

    StorageFailed where none can be made.
    """
    parent = _of_user(Path(tempfile.gettempdir()).resolve())
    name = f"ensign-meter-{os.getpid():07}-{secrets.token_hex(8)}"
    folder = parent / name
    with storage_errors(folder):
        folder.mkdir(mode=_OWN)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # where folders cannot be locked, nobody takes it for a leftover
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield folder
    finally:
        remove_tree(folder)
        os.close(lock)
        with suppress(OSError):
            if parent.name == _name_of_user():
                parent.rmdir()


def _of_user(temporary: Path) -> Path:
    """`ensign-UID` there, as the meter makes it; where somebody else has that name, not that."""
    own = temporary / _name_of_user()
    with suppress(OSError):
        own.mkdir(mode=_OWN)
    try:
        status = own.lstat()
    except OSError:
        return temporary
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return own if is_ours and not status.st_mode & 0o022 else temporary


def _name_of_user() -> str:
    return f"ensign-{os.geteuid()}"
