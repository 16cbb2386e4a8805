"""Files and trees of files: written whole or not at all, hashed, copied, locked."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ensign.host.storage import DISK_FULL, storage_errors
from ensign.host.tree_copy import copy_tree, tree_sha256, tree_size_bytes
from ensign.host.tree_removal import TreeRemoval
from ensign.host.tree_walk import walk
from ensign.model.errors import InputError

__all__ = [
    "DISK_FULL", "check_writable", "copy_tree", "file_sha256", "is_file", "is_folder", "locked",
    "remove_tree", "storage_errors", "tree_entries", "tree_sha256", "tree_size_bytes", "try_lock",
    "write_atomically",
]  # fmt: skip

_LONGEST_PATH_BYTES = 4095


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file so that it has its old content or the new, whatever happens meanwhile.

    StorageFailed where it cannot be written; no temporary file is left then.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    with storage_errors(path):
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync_folder(path.parent)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def check_writable(path: Path) -> None:
    """InputError where a file could not be written, so that this shows before hours of work."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise InputError(f"cannot write {path}: the folder {folder} does not exist")
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a folder")
    if not os.access(folder, os.W_OK):
        raise InputError(f"cannot write {path}: writing to {folder} is not permitted")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_entries(root: Path, exclude: Sequence[str] = ()) -> Iterator[tuple[str, Path]]:
    """Everything below a folder, in a fixed order, as relative name and path.

    `exclude` has glob patterns; one without a slash is matched against each last component, one
    with a slash against the whole relative name, with or without a slash before it. What is below
    an excluded folder is left out, and so is what has a path that no call takes, being too long.
    OSError, whose `filename` can be shown, where a folder cannot be read.
    """
    longest = _LONGEST_PATH_BYTES - len(os.fsencode(root))
    for entry in walk(root, exclude, on_error=_unless_too_long):
        name = entry.name
        if len(os.fsencode(name)) < longest:
            yield name, root / name


def _unless_too_long(error: OSError) -> None:
    if error.errno != errno.ENAMETOOLONG:
        raise error


def is_file(path: Path) -> bool:
    """True if there is such a file; a word that is too long for a name is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """As `is_file`, of folders."""
    try:
        return path.is_dir()
    except OSError:
        return False


def remove_tree(root: Path) -> tuple[str, ...]:
    """Remove a folder and all below it, also where a build took away its own permissions.

    Any depth, any name; links are not followed. What could not be removed, in a few lines, each
    with the reason: `PATH: REASON`. Raises nothing.
    """
    removal = TreeRemoval()
    removal.remove(root)
    return tuple(removal.left)


def try_lock(path: Path, *, shared: bool) -> int | None:
    """Lock a file or folder for as long as the descriptor returned is open; None if another has it.

    The lock ends with the process that holds it, also when it is killed.
    """
    # Of a stranger's pipe or link it would wait for somebody, or lock something else.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags)
    try:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for, and hold, the lock of a file, which is made where it is missing."""
    with storage_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
