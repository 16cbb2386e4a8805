"""What a finished cache entry holds, by hash: recorded when it is made, compared before it is used.

Times of files tell nothing here. Whoever may write a file may set its modification time back; the
change time only the kernel sets, but a page that was mapped before is written without it.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

from ensign.host.files import file_sha256, tree_entries, tree_sha256

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
    files = [each for each in tree_entries(folder / name) if not each[1].is_dir()]
    newest = max(files, key=lambda each: each[1].lstat().st_ctime_ns, default=None)
    return "" if newest is None else f" (last written: '{newest[0]}')"


def make_read_only(folder: Path, without: Collection[str]) -> None:
    """Take the right to write from all below a folder; the folder itself can still be moved."""
    for path in sorted(folder.iterdir()):
        if path.name in without:
            continue
        below = [each for _, each in tree_entries(path)] if _is_folder(path) else []
        for each in (*reversed(below), path):
            mode = each.lstat().st_mode
            if not stat.S_ISLNK(mode) and mode & _WRITE:
                each.chmod(stat.S_IMODE(mode) & ~_WRITE)


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)
