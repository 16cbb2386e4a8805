"""An entry of the cache, and what is recorded of it in its `meta.json`."""

from __future__ import annotations

import hashlib
import json
import secrets
import stat
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from ensign.host.files import (
    file_sha256,
    remove_tree,
    storage_errors,
    tree_entries,
    tree_sha256,
    tree_size_bytes,
    write_atomically,
)
from ensign.host.regular_file import read_json, read_regular
from ensign.model.errors import CommandFailed

Contents = Mapping[str, str]

_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def contents_of(folder: Path, without: Collection[str]) -> dict[str, str]:
    """SHA-256 of each file and tree directly in a folder, by name."""
    return {
        path.name: _sha256(path) for path in sorted(folder.iterdir()) if path.name not in without
    }


def _sha256(path: Path) -> str:
    status = path.lstat()
    if stat.S_ISDIR(status.st_mode):
        return tree_sha256(path)
    # A link in the place of a file is another file, wherever it leads.
    return file_sha256(path) if stat.S_ISREG(status.st_mode) else "neither file nor folder"


def seal_of(said: Mapping[str, object]) -> str:
    """SHA-256 of what is recorded of an entry, its contents among it."""
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def difference(folder: Path, expected: Contents, found: Contents) -> str:
    """The first of what differs, in words; empty where nothing does."""
    for name in sorted({*expected, *found}):
        if name not in found:
            return f"'{name}' is missing"
        if name not in expected:
            return f"'{name}' was added"
        if expected[name] != found[name]:
            return f"'{name}' was changed{_last_written(folder, name)}"
    return ""


def _last_written(folder: Path, name: str) -> str:
    """The likeliest culprit of a tree: a hint, since a hash of a tree does not say which file."""
    if not (folder / name).is_dir():
        return ""
    files = [entry for entry in tree_entries(folder / name) if not entry[1].is_dir()]
    newest = max(files, key=lambda each: each[1].lstat().st_ctime_ns, default=None)
    return "" if newest is None else f" (last written: '{newest[0]}')"


def make_read_only(folder: Path, without: Collection[str]) -> None:
    """Take the right to write from all below a folder; the folder itself can still be moved."""
    for path in sorted(folder.iterdir()):
        if path.name in without:
            continue
        below = [entry for _, entry in tree_entries(path)] if _is_folder(path) else []
        for item in (*reversed(below), path):
            mode = item.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & _WRITE:
                item.chmod(stat.S_IMODE(mode) & ~_WRITE)


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


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
            kept = sorted(self._folder.iterdir(), key=lambda path: path.lstat().st_ctime_ns)
            for old in kept[:-_MOST]:
                remove_tree(old)
        with self._lock:
            self._said.append(
                f"{name} in the cache was not what was put there: {what}; it is made again, and "
                f"what was there is now {target}"
            )

    def said(self) -> tuple[str, ...]:
        """Entries taken since this was asked last, in sentences."""
        with self._lock:
            events, self._said = tuple(self._said), []
        return events


Facts = Mapping[str, object]
F = TypeVar("F")

META = "meta.json"
USED = "used"
OWN_FILES = (META, USED)
_LARGEST_META_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Entry(Generic[F]):
    """Something in the cache. `facts` is what its maker recorded, `folder` where its files are.

    `contents` has the SHA-256 of each file and tree in it, as they were when they were made.
    """

    kind: str
    key: str
    folder: Path
    facts: F
    size_bytes: int
    contents: Contents = field(default_factory=dict)


class CacheChanged(CommandFailed):
    """Something else wrote to an entry between two uses of it; made again, it is as it was."""


@dataclass(frozen=True, slots=True)
class Meta(Generic[F]):
    """Record of an entry; see `Entry`."""

    facts: F
    size_bytes: int
    contents: Contents


def finish(folder: Path, kind: str, key: str, facts: Facts) -> Contents:
    """Make what was put into a folder an entry: read-only, with its hashes on record."""
    size_bytes = tree_size_bytes(folder)
    make_read_only(folder, OWN_FILES)
    contents = contents_of(folder, OWN_FILES)
    seal: dict[str, object] = {
        "kind": kind,
        "key": key,
        "size_bytes": size_bytes,
        "contents": contents,
        "facts": facts,
    }
    text = json.dumps({**seal, "seal": seal_of(seal)}, indent=1, sort_keys=True) + "\n"
    write_atomically(folder / META, text.encode())
    write_atomically(folder / USED, b"")
    return contents


def read_meta(folder: Path, read: Callable[[Facts], F]) -> Meta[F] | None:
    """Record of an entry; None where that is damaged, or `read` raises ValueError."""
    try:
        content = _content(folder)
        if content.pop("seal") != seal_of(content):
            return None
        return Meta(read(content["facts"]), int(content["size_bytes"]), content["contents"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def size_of(folder: Path) -> int:
    """The size in bytes that is on record. OSError, ValueError, KeyError, TypeError."""
    return int(_content(folder)["size_bytes"])


def _content(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = read_json(
        read_regular(folder / META, _LARGEST_META_BYTES, follow=False)
    )
    return content
