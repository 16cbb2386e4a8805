"""Trees of strangers hashed, copied and measured, without following a link or reading a device."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ensign.host.directory_cursor import Descent
from ensign.host.storage import storage_errors
from ensign.host.tree_walk import TreeEntry, passed_over, walk
from ensign.model.errors import InputError
from ensign.model.quoting import visible
from ensign.model.units import format_size

_CHUNK_BYTES = 1 << 20
_PERMISSIONS = 0o777  # never set-user-id: what is copied is of strangers
_OWNER = 0o700
_SPARSE_FROM_BYTES = 1 << 30
_SPARSE = 100  # a file of holes says that it is so many times as large as what it takes


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """Limits of a tree; hashing or copying more of it would have no end."""

    entries: int = 5_000_000
    size_bytes: int = 64 << 30


class _Account:
    """Adds up what was met, against the limits."""

    def __init__(self, root: Path, limits: TreeLimits) -> None:
        self._root = root
        self._limits = limits
        self._entries = 0
        self._size_bytes = 0

    def add(self, entry: TreeEntry) -> None:
        """InputError beyond a limit."""
        self._entries += 1
        if stat.S_ISREG(entry.status.st_mode):
            size = entry.status.st_size
            self._size_bytes += size
            if size > _SPARSE_FROM_BYTES and entry.status.st_blocks * 512 * _SPARSE < size:
                shown = visible(entry.place.shown(entry.base))
                raise InputError(
                    f"{shown} says that it has {format_size(size)}, nearly all of it holes; "
                    "remove it, or leave it out of the source"
                )
        if self._entries > self._limits.entries:
            raise InputError(f"{self._root} holds more than {self._limits.entries:,} files")
        if self._size_bytes > self._limits.size_bytes:
            most = format_size(self._limits.size_bytes)
            raise InputError(f"{self._root} holds more than {most}")


def tree_sha256(root: Path, exclude: Sequence[str] = (), limits: TreeLimits = TreeLimits()) -> str:
    """SHA-256 over names, kinds, contents, link targets and the executable bit of a tree.

    Times and owners do not count, nor do the other permission bits, which depend on the umask of
    whoever unpacked it. Sockets, pipes and devices do not: nobody copies them. InputError where
    something cannot be read, or beyond the limits.
    """
    digest = hashlib.sha256()
    account = _Account(root, limits)
    with _readable(root):
        for entry in walk(root, exclude):
            account.add(entry)
            content = _content(entry)
            for part in () if content is None else (os.fsencode(entry.name), *content):
                digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _content(entry: TreeEntry) -> tuple[bytes, bytes] | None:
    mode = entry.status.st_mode
    if stat.S_ISLNK(mode):
        return b"link", os.fsencode(entry.target())
    if stat.S_ISDIR(mode):
        return b"folder", b""
    if not stat.S_ISREG(mode):
        return None
    digest = hashlib.sha256()
    with _opened(entry) as descriptor:
        for chunk in _chunks(descriptor, entry):
            digest.update(chunk)
    kind = b"program" if mode & stat.S_IXUSR else b"file"
    return kind, digest.hexdigest().encode()


def copy_tree(
    source: Path, target: Path, exclude: Sequence[str] = (), limits: TreeLimits = TreeLimits()
) -> None:
    """Copy a tree into a new folder: links stay links, times stay, files get their own inodes.

    Whoever copies may write to the copy, also where the original is read-only. Sockets, pipes and
    devices are left out, and so are set-user-id bits and extended attributes.
    InputError where something cannot be read or beyond the limits, StorageFailed where it cannot
    be written.
    """
    account = _Account(source, limits)
    with storage_errors(target):
        target.mkdir(parents=True)
        place = Descent(target)
    with place, _readable(source):
        above = [source.stat()]  # of the folders that are being filled
        for entry in walk(source, exclude):
            account.add(entry)
            while len(above) > entry.depth + 1:
                _finished(place, above.pop())
                place.up()
            _copied(entry, place)
            if entry.is_folder:
                above.append(entry.status)
        while above:
            _finished(place, above.pop())
            if above:
                place.up()


def _copied(entry: TreeEntry, place: Descent) -> None:
    mode, folder, base = entry.status.st_mode, place.descriptor, entry.base
    if stat.S_ISLNK(mode):
        target = entry.target()
        with _writing(place, base):
            os.symlink(target, base, dir_fd=folder)
    elif stat.S_ISDIR(mode):
        with _writing(place, base):
            os.mkdir(base, _OWNER, dir_fd=folder)
            place.down(base)
    elif stat.S_ISREG(mode):
        with _opened(entry) as reading, _writing(place, base):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            writing = os.open(base, flags, 0o600, dir_fd=folder)
            try:
                for chunk in _chunks(reading, entry):
                    _write_all(writing, chunk)
                os.fchmod(writing, mode & _PERMISSIONS | stat.S_IWUSR)
                os.utime(writing, ns=(entry.status.st_atime_ns, entry.status.st_mtime_ns))
            finally:
                os.close(writing)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _finished(place: Descent, status: os.stat_result) -> None:
    """Give a filled folder its times; its owner can always go into it."""
    with _writing(place, ""):
        os.fchmod(place.descriptor, status.st_mode & _PERMISSIONS | _OWNER)
        os.utime(place.descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))


def tree_size_bytes(root: Path) -> int:
    """Return the bytes that a tree takes on disk; a file with several names counts once.

    What cannot be looked at counts nothing.
    """
    seen: set[tuple[int, int]] = set()
    total = 0
    try:
        for entry in walk(root, on_error=passed_over):
            status = entry.status
            if status.st_nlink > 1 and not entry.is_folder:
                identity = status.st_dev, status.st_ino
                if identity in seen:
                    continue
                seen.add(identity)
            total += status.st_blocks * 512
    except OSError:
        pass  # moved meanwhile: what was seen
    return total


@contextmanager
def _opened(entry: TreeEntry) -> Iterator[int]:
    descriptor = entry.open()
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _chunks(descriptor: int, entry: TreeEntry) -> Iterator[bytes]:
    """The content, of as many bytes as the file had; one that grows for ever is not followed."""
    left = entry.status.st_size
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        left -= len(chunk)
        if left < 0:
            raise OSError(errno.ESTALE, "grew meanwhile", entry.place.shown(entry.base))
        yield chunk


@contextmanager
def _writing(place: Descent, base: str) -> Iterator[None]:
    shown = Path(visible(place.shown(base)))
    with storage_errors(shown):
        yield


@contextmanager
def _readable(root: Path) -> Iterator[None]:
    """Errors of reading as InputError; those of writing are StorageFailed before they come here."""
    try:
        yield
    except OSError as error:
        where = visible(str(error.filename or root))
        raise InputError(f"cannot read {where}: {error.strerror}") from error
