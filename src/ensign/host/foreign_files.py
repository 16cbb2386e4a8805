"""Files that foreign programs made: handed to them, and read as if they meant harm.

Nothing here follows a link, opens what is no regular file, or goes down by names: a path may be
longer than the system takes, and a tree deeper than Python's stack.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ensign.host.regular_file import open_regular
from ensign.host.tree_walk import TreeEntry, passed_over, walk


@dataclass(frozen=True, slots=True)
class UnprivilegedUser:
    """User that runs foreign code where root started ensign."""

    uid: int
    gid: int

    def may(self, status: os.stat_result, bits: int) -> bool:
        """True if the permissions of a file or folder have all these bits (of 7) for it."""
        mode = stat.S_IMODE(status.st_mode)
        if status.st_uid == self.uid:
            mode >>= 6
        elif status.st_gid == self.gid:
            mode >>= 3
        return mode & bits == bits


_NO_LINK = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK_BYTES = 2**20
_OWNERS = 0o700


class HostileFileError(OSError):
    """A file is none that may be read; the text says what it is instead."""


def visit(folders: Iterable[Path]) -> Iterator[TreeEntry]:
    """Everything below folders, however deep; a folder before what is in it.

    What vanishes meanwhile, or may not be looked at, is passed over.
    """
    for folder in folders:
        with suppress(OSError):  # it is not there, or somebody moved what is gone through
            yield from walk(folder, on_error=passed_over, longest_bytes=None)


def hand_over(folders: Iterable[Path], user: UnprivilegedUser) -> None:
    """Let a user own folders and all below them: what root put there, theirs to build with."""
    folders = tuple(folders)
    for folder in folders:
        os.chown(folder, user.uid, user.gid, follow_symlinks=False)
    for entry in visit(folders):
        if (entry.status.st_uid, entry.status.st_gid) != (user.uid, user.gid):
            with suppress(OSError):
                _give(entry, user.uid, user.gid)


def _give(entry: TreeEntry, uid: int, gid: int) -> None:
    os.chown(entry.base, uid, gid, dir_fd=entry.place.descriptor, follow_symlinks=False)


def open_up(folders: Iterable[Path]) -> None:
    """Give their owner back the folders that it may not look into itself; ours they must be."""
    for entry in visit(folders):
        mode = entry.status.st_mode
        if stat.S_ISDIR(mode) and mode & _OWNERS != _OWNERS:
            _open_up(entry)


def _open_up(folder: TreeEntry) -> None:
    """Opens a folder by a descriptor: somebody may replace it by a link to one of ours."""
    with suppress(OSError):
        here = os.open(folder.base, os.O_PATH | _NO_LINK, dir_fd=folder.place.descriptor)
        try:
            Path(f"/proc/self/fd/{here}").chmod(stat.S_IMODE(folder.status.st_mode) | _OWNERS)
        finally:
            os.close(here)


def take_over(folder: Path) -> None:
    """Make a folder and all below it ours: readable by everybody, writable by us alone.

    What is neither file, folder nor link is removed.
    """
    own = (os.geteuid(), os.getegid())
    remove_special((folder,))
    os.chown(folder, *own, follow_symlinks=False)
    folder.chmod(0o755)
    for entry in visit((folder,)):
        with suppress(OSError):
            _give(entry, *own)
            if not stat.S_ISLNK(entry.status.st_mode):
                os.chmod(
                    entry.base, _kept_mode(entry.status.st_mode), dir_fd=entry.place.descriptor
                )


def _kept_mode(mode: int) -> int:
    return 0o755 if stat.S_ISDIR(mode) or mode & 0o111 else 0o644


def remove_special(folders: Iterable[Path]) -> int:
    """Remove pipes, sockets and devices: no file that is kept is one, and reading one may hang.

    Folders that their owner may not look into are opened to it. What the regular files seem to
    have, in bytes: whoever reads or copies them gets so many.
    """
    apparent_bytes = 0
    for entry in visit(folders):
        mode = entry.status.st_mode
        if stat.S_ISREG(mode):
            apparent_bytes += entry.status.st_size
        elif stat.S_ISDIR(mode) and mode & _OWNERS != _OWNERS:
            _open_up(entry)
        elif not (stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            with suppress(OSError):
                os.unlink(entry.base, dir_fd=entry.place.descriptor)
    return apparent_bytes


def open_foreign(path: Path, most_bytes: int) -> int:
    """A descriptor of a regular file of at most so many bytes. HostileFileError, OSError."""
    try:
        descriptor = open_regular(path, follow=False)
    except OSError as error:
        raise HostileFileError(f"'{path.name}' {_refusal(path, error)}") from None
    size_bytes = os.fstat(descriptor).st_size
    if size_bytes > most_bytes:
        os.close(descriptor)
        raise HostileFileError(f"'{path.name}' has {size_bytes} bytes, more than it may")
    return descriptor


def _refusal(path: Path, error: OSError) -> str:
    with suppress(OSError):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return "is a link"
        if not stat.S_ISREG(mode):
            return f"is {_kind(mode)}, not a file"
    return f"cannot be read: {error.strerror}"


def read_foreign(path: Path, most_bytes: int) -> bytes:
    """The content of such a file. Errors as `open_foreign`."""
    with os.fdopen(open_foreign(path, most_bytes), "rb") as file:
        return file.read(most_bytes)


def open_foreign_text(path: Path, most_bytes: int = 2**32) -> TextIO:
    """Such a file to read lines from. Errors as `open_foreign`."""
    return os.fdopen(open_foreign(path, most_bytes), "r", errors="replace")


def copy_foreign(source: Path, target: Path, most_bytes: int) -> int:
    """Copy such a file to a new one of ours; its size. Errors as `open_foreign`.

    Its times stay, and whether it may be executed; no other permission does.
    """
    with os.fdopen(open_foreign(source, most_bytes), "rb") as file:
        status = os.fstat(file.fileno())
        with target.open("xb") as copy:
            left = status.st_size
            while left > 0 and (chunk := file.read(min(left, _CHUNK_BYTES))):
                copy.write(chunk)
                left -= len(chunk)
            os.fchmod(copy.fileno(), _kept_mode(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    return status.st_size


def _kind(mode: int) -> str:
    kinds: tuple[tuple[Callable[[int], bool], str], ...] = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISLNK, "a link"),
    )
    return next((name for is_it, name in kinds if is_it(mode)), "a device")
