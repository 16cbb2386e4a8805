"""Temporary folders of this user, below one folder that nobody else can use.

Each is locked for as long as its process lives, so that the next one can tell what was left by one
that was killed: process numbers mean nothing where a folder is shared with a container.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ensign.host.files import remove_tree
from ensign.host.signals import signals_deferred
from ensign.host.storage import storage_errors
from ensign.model.errors import InputError

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
TEMPORARY_NAME = re.compile(r"[a-z]+-[0-9a-f]{16}")
_TRIES = 100
# What flock says on file systems that have no locks, NFS of some servers among them.
_WITHOUT_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EINVAL)


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Lend a folder `PURPOSE-RANDOM`; it is removed at the end, or when the next one is made.

    It lies in `ensign-UID` in `TMPDIR` (else in /tmp), or beside it where somebody else has that
    name. InputError where `TMPDIR` is no folder that can be used, StorageFailed where its disk is
    full.
    """
    base = temporary_base()
    with ExitStack() as stack:
        with signals_deferred(), storage_errors(base):
            folder, descriptor = _made(base, purpose)
            stack.callback(_given_back, base, folder, descriptor)
        _remove_unlocked(folder.parent, folder)
        with storage_errors(folder):
            yield folder


def temporary_base() -> Path:
    """Folder of everybody's temporary files. InputError where `TMPDIR` is no folder."""
    base = Path(os.environ.get("TMPDIR") or "/tmp").absolute()  # noqa: S108  # safely, see above
    if not base.is_dir():
        raise InputError(f"TMPDIR: {base} is no folder; name another one, or leave it out")
    return base


def _given_back(base: Path, folder: Path, descriptor: int) -> None:
    with signals_deferred():
        remove_tree(folder)
        os.close(descriptor)
        if folder.parent != base:
            with suppress(OSError):  # others may be at work there
                folder.parent.rmdir()


def _made(base: Path, purpose: str) -> tuple[Path, int]:
    """A new folder and its lock."""
    for _ in range(_TRIES):
        folder = _folder_of_user(base) / f"{purpose}-{secrets.token_hex(8)}"
        # Somebody may have removed the empty folder above it, or taken it for a leftover.
        with suppress(FileNotFoundError), ExitStack() as unused:
            folder.mkdir(0o700)
            unused.callback(_remove_empty, folder)
            descriptor = _kept(folder)
            if descriptor is not None:
                unused.pop_all()
                return folder, descriptor
    raise InputError(f"TMPDIR: no folder can be kept in {base}")


def _kept(folder: Path) -> int | None:
    """Its lock; where folders cannot be locked, nobody finds it unlocked either."""
    try:
        return _lock(folder)
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise
        return os.open(folder, _OPEN)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _folder_of_user(base: Path) -> Path:
    folder = base / f"ensign-{os.geteuid()}"
    with suppress(FileExistsError):
        folder.mkdir(0o700)
    descriptor = _own(folder)
    if descriptor is None:
        return base
    try:
        # Programs of another user may have their way through to what is theirs.
        through = stat.S_IMODE(os.fstat(descriptor).st_mode) & (stat.S_IXGRP | stat.S_IXOTH)
        os.fchmod(descriptor, 0o700 | through)
    finally:
        os.close(descriptor)
    return folder


def _own(folder: Path, *, anybodys: bool = False) -> int | None:
    """An open folder, no link to one, of this user (or of anybody); others are not opened.

    OSError where the system refuses to look.
    """
    with suppress(FileNotFoundError, PermissionError, NotADirectoryError):
        named = folder.lstat()
        if stat.S_ISDIR(named.st_mode) and (anybodys or named.st_uid == os.geteuid()):
            return os.open(folder, _OPEN)
    return None


def _lock(folder: Path, *, anybodys: bool = False) -> int | None:
    """The lock of a folder of this user (or of anybody).

    None where somebody else has it, or it is another one by now. OSError where folders cannot be
    locked.
    """
    descriptor = _own(folder, anybodys=anybodys)
    if descriptor is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_still = os.path.samestat(os.fstat(descriptor), folder.lstat())
    except (BlockingIOError, FileNotFoundError):
        is_still = False
    except BaseException:
        os.close(descriptor)
        raise
    if not is_still:
        os.close(descriptor)
        return None
    return descriptor


def _remove_unlocked(parent: Path, besides: Path) -> None:
    """Removes what killed processes of this user left; in a shared folder nothing is looked for."""
    if parent.name != f"ensign-{os.geteuid()}":
        return
    for left in parent.iterdir():
        if left == besides or not TEMPORARY_NAME.fullmatch(left.name):
            continue
        with suppress(OSError):
            # Nobody else can have made it; it may have been given to whom programs run as.
            descriptor = _lock(left, anybodys=True)
            if descriptor is None:
                continue
            try:
                remove_tree(left)
            finally:
                os.close(descriptor)
