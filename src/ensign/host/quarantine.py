"""Where entries of the cache go that are not what was put there."""

from __future__ import annotations

import secrets
import threading
from contextlib import suppress
from pathlib import Path

from ensign.host.files import remove_tree, storage_errors

_MOST = 8
_NAME_CHARACTERS = 40


class Quarantine:
    """Keeps the last few of them for whoever wants to know what happened, and says so once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._said: list[str] = []
        self._lock = threading.Lock()

    def take(self, entry: Path, what: str) -> None:
        """Move an entry in, `what` says why; the oldest ones are removed. StorageFailed."""
        name = entry.name[:_NAME_CHARACTERS]
        target = self._folder / f"{name}-{secrets.token_hex(4)}"
        with storage_errors(self._folder):
            self._folder.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # another ensign was first
                entry.rename(target)
            kept = sorted(self._folder.iterdir(), key=lambda each: each.lstat().st_ctime_ns)
            for old in kept[:-_MOST]:
                remove_tree(old)
        with self._lock:
            self._said.append(
                f"{name} in the cache was not what was put there: {what}; it is made again, and "
                f"what was there is now {target}"
            )

    def said(self) -> tuple[str, ...]:
        """What was taken since this was asked last, in sentences."""
        with self._lock:
            said, self._said = tuple(self._said), []
        return said
