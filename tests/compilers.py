"""Compilers of this machine, which hundreds of tests look at: their files are hashed once."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from ensign.host.files import file_sha256


def hash_once(patch: pytest.MonkeyPatch) -> None:
    """A file that is still as it was has the hash that it had."""
    for module in ("find", "rust"):
        patch.setattr(f"ensign.toolchains.{module}.file_sha256", _sha256)


def _sha256(path: Path) -> str:
    found = os.stat(path)  # noqa: PTH116  # a path may be a view into a root
    return _sha256_of(path, found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)


@cache
def _sha256_of(path: Path, *_: int) -> str:
    return file_sha256(path)
