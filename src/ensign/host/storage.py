"""Messages for the system's refusals to write, or to give a descriptor or memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ensign.model.errors import StorageFailed
from ensign.model.quoting import visible
from ensign.model.units import format_size

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_COMPLAINTS = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
_NOTHING_BYTES, _GIVEN_BACK_BYTES = 4096, 64 << 20
_REFUSED = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EIO, errno.ELOOP,
     errno.ENAMETOOLONG, errno.EFBIG, errno.ESTALE, errno.ENODEV, errno.ENXIO}
)  # fmt: skip
_SHORT = {
    errno.EMFILE: "too many files are open; raise the limit ('ulimit -n')",
    errno.ENFILE: "too many files are open on this machine",
    errno.ENOMEM: "there is not enough memory; end other programs, or give it more",
    errno.EAGAIN: "no more processes may be started; raise the limit ('ulimit -u')",
}


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn the system's refusal to write into a StorageFailed that says what to do."""
    try:
        yield
    except OSError as error:
        failed = storage_failure(error, path)
        if failed is None:
            raise
        raise failed from error


def storage_failure(error: OSError, path: Path | None = None) -> StorageFailed | None:
    """The error for the user where the machine lacks something, or None where it is another.

    `path` is what was to be written; without it the path that the error itself names.
    """
    named = path if path is not None else _named(error)
    what = "cannot write" if named is None else f"cannot write {visible(str(named))}"
    if error.errno in DISK_FULL:
        return StorageFailed(f"{what}: {_full(error, named)}")
    if error.errno in _SHORT:
        return StorageFailed(f"{what}: {_SHORT[error.errno]}")
    if error.errno in _REFUSED and named is not None:
        return StorageFailed(f"{what}: {error.strerror}")
    return None


def full_file_system(path: Path, said: str = "") -> str:
    """Says which file system is full, if the one that a path is on is; else "".

    `said` is what a program wrote that failed: where it complains of no space, a little of it may
    have been given back since.
    """
    complains = any(complaint in said for complaint in _COMPLAINTS)
    try:
        free = os.statvfs(_existing(path))
    except OSError:
        return ""
    least_bytes = _GIVEN_BACK_BYTES if complains else _NOTHING_BYTES
    lacks_space = free.f_blocks and free.f_bavail * free.f_frsize < least_bytes
    lacks_files = free.f_files and free.f_favail == 0
    return _full(OSError(errno.ENOSPC, ""), path) if lacks_space or lacks_files else ""


def _named(error: OSError) -> Path | None:
    # Of two names, as of renaming, the second is the one that is written.
    name = error.filename2 or error.filename
    return Path(os.fsdecode(name)) if isinstance(name, str | bytes) else None


def _full(error: OSError, path: Path | None) -> str:
    if error.errno == errno.EDQUOT:
        return "the disk is full (your quota is used up); make space there"
    if path is None:
        return "the disk is full; make space there"
    mount = _mount_of(path)
    advice = "make space there ('ensign clean' empties ensign's own cache)"
    try:
        free = os.statvfs(mount)
    except OSError:
        return f"the disk is full; {advice}"
    size = f", {format_size(free.f_blocks * free.f_frsize)}" if free.f_blocks else ""
    lack = " can hold no more files" if free.f_files and not free.f_favail else " is full"
    return f"the disk is full (file system {visible(str(mount))}{size},{lack}); {advice}"


def _existing(path: Path) -> Path:
    existing = path.absolute()
    while not os.path.lexists(existing) and existing != existing.parent:
        existing = existing.parent
    return existing


def _mount_of(path: Path) -> Path:
    existing = _existing(path)
    try:
        device = existing.stat().st_dev
        while existing != existing.parent and existing.parent.stat().st_dev == device:
            existing = existing.parent
    except OSError:
        pass
    return existing
