"""Watching what a command writes, so that it cannot fill the disk."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ensign.host.foreign_files import open_up, visit
from ensign.host.held_files import held_bytes

# What a file takes at least, where all is counted: an empty one has a name and an inode, too.
_LEAST_FILE_BYTES = 4096
_LEAST_PAUSE_S = 0.1
_PAUSES_PER_LOOK = 20  # looking takes at most 5 % of one CPU, however large the trees are


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
    return sum(max(each.status.st_blocks * 512, _LEAST_FILE_BYTES) for each in visit(folders))


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
        """Whether more was written than the limit allows."""
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
        said = sum(map(_size_on_disk, self._files))
        grown = used_bytes(limit.folders) - limit.before_bytes + said
        if grown < limit.size_bytes and self._lost(limit) >= limit.size_bytes:
            # The disk has that much less: it may be in what no walk sees.
            open_up(limit.folders)
            grown = used_bytes(limit.folders) - limit.before_bytes + said
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
    """Of the file system on which folders lie; they lie on one."""
    for folder in folders:
        with suppress(OSError):
            status = os.statvfs(folder)
            return status.f_bfree * status.f_frsize + status.f_ffree * _LEAST_FILE_BYTES
    return 0
