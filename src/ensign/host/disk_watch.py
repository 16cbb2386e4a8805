"""Watching what a command writes, so that it cannot fill the disk."""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
    """Bytes on disk below folders that change meanwhile; what vanishes or is closed counts 0."""
    return sum(_used_below(str(folder)) for folder in folders)


def _used_below(folder: str) -> int:
    total = 0
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return 0
    for entry in entries:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        total += status.st_blocks * 512
        if stat.S_ISDIR(status.st_mode):
            total += _used_below(entry.path)
    return total


class DiskWatch:
    """Looks again and again in a thread of its own; without a limit it does nothing."""

    def __init__(self, limit: DiskLimit | None) -> None:
        self._limit = limit
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
        if used_bytes(limit.folders) - limit.before_bytes >= limit.size_bytes:
            self._exceeded.set()
        return self._exceeded.is_set()
