"""Removing a tree of strangers: of any depth, whatever its names and permissions are."""

from __future__ import annotations

import array
import errno
import fcntl
import os
import stat
import time
from pathlib import Path
from typing import Protocol

from ensign.host.directory_cursor import Descent

_ATTEMPTS = 10
_PAUSE_S = 0.02
_MOST_NAMED = 5
_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
_IMMUTABLE, _APPEND_ONLY = 0x10, 0x20
_REFUSED = (errno.EACCES, errno.EPERM)


class TreeRemoval:
    """Removes as much as can be; `left` names some of what could not be, and why.

    It does not follow links, nor leave the file system of the root: what is mounted stays.
    """

    def __init__(self) -> None:
        self.left: list[str] = []
        self._again = False

    def remove(self, root: Path) -> None:
        """Remove a file, a link, or a folder and all below it. Raises nothing."""
        for attempt in range(_ATTEMPTS):
            self.left.clear()
            self._again = False
            if self._once(root) or not self._again:
                return
            # Something that is ending may still write into it.
            time.sleep(_PAUSE_S * attempt)

    def _once(self, root: Path) -> bool:
        try:
            if not stat.S_ISDIR(root.lstat().st_mode):
                root.unlink()
                return True
            _open_up(str(root), None)
            with Descent(root) as place:
                self._below(place)
            root.rmdir()
        except FileNotFoundError:
            return True
        except OSError as error:
            if not self.left:  # else it is said already what keeps it
                self._keep(f"{error.filename or root}: {error.strerror}")
                self._again = self._again or error.errno in (errno.ENOTEMPTY, errno.ESTALE)
            return False
        return True

    def _below(self, place: Descent) -> None:
        """Empty the folder: files at once, then folder by folder, the deepest first."""
        device = os.fstat(place.descriptor).st_dev
        pending = [self._emptied(place)]
        while pending:
            if not pending[-1]:
                pending.pop()
                if pending:
                    name = place.up()
                    self._remove_folder(place, name)
                continue
            name = pending[-1].pop()
            if self._entered(place, name, device):
                pending.append(self._emptied(place))

    def _entered(self, place: Descent, name: str, device: int) -> bool:
        try:
            status = os.stat(name, dir_fd=place.descriptor, follow_symlinks=False)
            if status.st_dev != device:
                self._keep(f"{place.shown(name)}: is mounted there")
                return False
            if status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
                _open_up(name, place.descriptor)
            place.down(name)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._keep(f"{place.shown(name)}: {error.strerror}")
            return False
        return True

    def _emptied(self, place: Descent) -> list[str]:
        """Removes what is no folder; names of the folders."""
        folders = []
        try:
            with os.scandir(place.descriptor) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    else:
                        self._unlink(place, entry.name)
        except OSError as error:
            self._keep(f"{place.shown()}: {error.strerror}")
        return folders

    def _unlink(self, place: Descent, name: str) -> None:
        try:
            _unlocking(os.unlink, place.descriptor, name)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._keep(f"{place.shown(name)}: {error.strerror}")

    def _remove_folder(self, place: Descent, name: str) -> None:
        try:
            _unlocking(os.rmdir, place.descriptor, name)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                self._keep(f"{place.shown(name)}: {error.strerror}")
            elif not self.left:
                self._again = True

    def _keep(self, said: str) -> None:
        if len(self.left) < _MOST_NAMED:
            self.left.append(said)


class _Remove(Protocol):
    def __call__(self, path: str, /, *, dir_fd: int) -> None: ...


def _unlocking(remove: _Remove, folder: int, name: str) -> None:
    """Remove a name; where that is refused, once more without what forbids it. OSError."""
    try:
        remove(name, dir_fd=folder)
    except OSError as error:
        if error.errno not in _REFUSED or not _unlocked(folder, name):
            raise
        remove(name, dir_fd=folder)


def _open_up(name: str, folder: int | None) -> None:
    """Give the owner all permissions of a folder; through a descriptor, so that it is no link's."""
    try:
        descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return
    try:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            # What cannot be opened up cannot be removed either, and shows there.
            os.chmod(f"/proc/self/fd/{descriptor}", stat.S_IRWXU)  # noqa: PTH101
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _unlocked(folder: int, name: str) -> bool:
    """Take away what forbids removing: of the folder itself, and of what is in it."""
    changed = False
    for target, within in ((".", folder), (name, folder)):
        try:
            mode = os.stat(target, dir_fd=within, follow_symlinks=False).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                continue  # opening a device may do something
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            descriptor = os.open(target, flags, dir_fd=within)
        except OSError:
            continue
        try:
            if target == "." and os.fstat(descriptor).st_mode & stat.S_IRWXU != stat.S_IRWXU:
                os.fchmod(descriptor, stat.S_IRWXU)
                changed = True
            held = array.array("l", [0])
            fcntl.ioctl(descriptor, _GET_FLAGS, held)
            if held[0] & (_IMMUTABLE | _APPEND_ONLY):
                held[0] &= ~(_IMMUTABLE | _APPEND_ONLY)
                fcntl.ioctl(descriptor, _SET_FLAGS, held)
                changed = True
        except OSError:
            pass
        finally:
            os.close(descriptor)
    return changed
