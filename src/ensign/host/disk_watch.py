"""Watching what a command writes, so that it cannot fill the disk."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ensign.host.foreign_files import open_up, visit

# What a file takes at least, where all is counted: an empty one has a name and an inode, too.
_LEAST_FILE_BYTES = 4096
_LEAST_PAUSE_S = 0.1
_PAUSES_PER_LOOK = 20  # looking takes at most 5 % of one CPU, however large the trees are
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class DiskLimit:
    """All that is below these folders may grow by `size_bytes` while a command runs.

    `before_bytes` is what was there before; what is above it counts, also from earlier commands.
    """

    folders: tuple[Path, ...]
    size_bytes: int
    before_bytes: int


def used_bytes(folders: Iterable[Path]) -> int:
    """Bytes on disk below folders that change meanwhile; what vanishes or is closed counts 0.

    Each file and folder counts 4 KiB at least.
    """
    return sum(max(entry.status.st_blocks * 512, _LEAST_FILE_BYTES) for entry in visit(folders))


class DiskWatch:
    """Looks again and again in a thread of its own; without a limit it does nothing.

    `files` elsewhere count as well: what a command says may fill a disk, too.
    """

    def __init__(self, limit: DiskLimit | None, files: Iterable[Path] = ()) -> None:
        self._limit = limit
        self._files = tuple(files)
        self._free_bytes = _free_bytes(() if limit is None else limit.folders)
        self._exceeded = threading.Event()
        self._over = threading.Event()

    @property
    def exceeded(self) -> bool:
        """True if more was written than the limit allows."""
        return self._exceeded.is_set()

    @contextmanager
    def calling(self, end: Callable[[], None]) -> Iterator[None]:
        """Watch while the block runs; call `end` when the limit is exceeded.

        A last look follows the block: a file at its own limit ends a command before this does.
        """
        limit = self._limit
        if limit is None:
            yield
            return
        thread = threading.Thread(target=self._watch, args=(limit, end), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()
            self._look(limit)

    def _watch(self, limit: DiskLimit, end: Callable[[], None]) -> None:
        pause_s = _LEAST_PAUSE_S
        while not self._over.wait(pause_s):
            started_s = time.monotonic()
            if self._look(limit):
                end()
            pause_s = max(_LEAST_PAUSE_S, _PAUSES_PER_LOOK * (time.monotonic() - started_s))

    def _look(self, limit: DiskLimit) -> bool:
        size_bytes = sum(map(_size_on_disk, self._files))
        grown = used_bytes(limit.folders) - limit.before_bytes + size_bytes
        if grown < limit.size_bytes and self._lost(limit) >= limit.size_bytes:
            # The disk has that much less: it may be in what no walk sees.
            open_up(limit.folders)
            grown = used_bytes(limit.folders) - limit.before_bytes + size_bytes
            grown += held_bytes(limit.folders)
        if grown >= limit.size_bytes:
            self._exceeded.set()
        return self._exceeded.is_set()

    def _lost(self, limit: DiskLimit) -> int:
        return self._free_bytes - _free_bytes(limit.folders)


def _size_on_disk(file: Path) -> int:
    try:
        return file.lstat().st_blocks * 512
    except OSError:
        return 0


def _free_bytes(folders: Iterable[Path]) -> int:
    """Free space of the file system on which folders lie; they lie on one."""
    for folder in folders:
        with suppress(OSError):
            status = os.statvfs(folder)
            return status.f_bfree * status.f_frsize + status.f_ffree * _LEAST_FILE_BYTES
    return 0


def held_bytes(folders: Iterable[Path]) -> int:
    """Bytes on disk of deleted files that processes of these folders have open or mapped.

    Those are the ones that see one of them as a mount of theirs, or had a file below it. Of what is
    mapped but not open the length of the mapping counts.
    """
    folders = tuple(folders)
    held: dict[tuple[int, int], int] = {}
    for process in _processes():
        mounted = _sees(process, folders)
        for path, status in _open_files(process):
            if status.st_nlink == 0 and (mounted or _lies_in(path, folders)):
                held[status.st_dev, status.st_ino] = status.st_blocks * 512
        for path, device, inode, length in _mapped(process):
            if mounted or _lies_in(path, folders):
                held.setdefault((device, inode), length)
    return sum(held.values())


def _processes() -> Iterator[Path]:
    with suppress(OSError):
        for name in os.listdir(_PROC):  # noqa: PTH208  # names alone are quick
            if name.isdigit():
                yield _PROC / name


def _sees(process: Path, folders: tuple[Path, ...]) -> bool:
    try:
        mounts = (process / "mountinfo").read_bytes()
    except OSError:
        return False
    ends = (os.fsencode(f"/{folder.parent.name}/{folder.name} ") for folder in folders)
    return any(end in mounts for end in ends)


def _open_files(process: Path) -> Iterator[tuple[str, os.stat_result]]:
    with suppress(OSError):
        for name in os.listdir(process / "fd"):  # noqa: PTH208
            link = process / "fd" / name
            with suppress(OSError):
                status = link.stat()
                if stat.S_ISREG(status.st_mode):
                    yield str(link.readlink()), status


def _mapped(process: Path) -> Iterator[tuple[str, int, int, int]]:
    with suppress(OSError, ValueError):
        for line in (process / "maps").read_text(errors="replace").splitlines():
            if not line.endswith(" (deleted)"):
                continue
            addresses, _, _, device, inode, path = line.split(maxsplit=5)
            first, last = (int(word, 16) for word in addresses.split("-"))
            major, minor = (int(word, 16) for word in device.split(":"))
            if major:  # shared memory has none
                yield path, os.makedev(major, minor), int(inode), last - first


def _lies_in(path: str, folders: tuple[Path, ...]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)
