"""The folder of a shipment: written whole where it is new, and nobody's files overwritten."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from ensign.host.files import remove_tree, storage_errors, write_atomically
from ensign.model.errors import InputError
from ensign.model.shipment import ShippedFile
from ensign.ship import patch, script

PAGE = "pull-request.md"
_NAMES = (patch.NAME, script.NAME, script.FILES, PAGE)


def check_folder(folder: Path, *, force: bool) -> None:
    """InputError where a shipment would overwrite something, or cannot be written there."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"'{folder}' is a file; name a folder")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"'{folder}' cannot be made: there is no '{folder.absolute().parent}'")
    there = [name for name in _NAMES if (folder / name).exists()]
    if there and not force:
        raise InputError(
            f"'{folder}' has {', '.join(there)} already; --force overwrites, "
            "-o names another folder"
        )


def write_folder(folder: Path, files: Sequence[ShippedFile]) -> None:
    """Write all files: a new folder in one step, in one that is there file by file.

    What an earlier shipment left there is removed first. StorageFailed where it cannot be written.
    """
    with storage_errors(folder):
        if folder.exists():
            for name in _NAMES:
                _remove(folder / name)
            _write(folder, files)
            return
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.part")
        part.mkdir()
        try:
            _write(part, files)
            part.rename(folder)
        except BaseException:
            remove_tree(part)
            raise


def _write(folder: Path, files: Sequence[ShippedFile]) -> None:
    for each in files:
        path = folder / each.name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, each.content, mode=0o755 if each.executable else 0o644)


def _remove(path: Path) -> None:
    if path.is_dir():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)
