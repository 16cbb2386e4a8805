"""Trees that no path reaches, made by descriptors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ensign.host.files import remove_tree


@pytest.fixture
def no_deep_tree_left(tmp_path: Path) -> Iterator[None]:
    """Whatever fails: the test runner cannot remove such trees."""
    yield
    remove_tree(tmp_path)


def deep_tree(root: Path, depth: int, name: str = "d") -> Path:
    """A folder in a folder …, and a file in the last of them."""
    root.mkdir(parents=True)
    folder = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=folder)
        inner = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    file = os.open("last", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder)
    os.write(file, b"x" * 5000)
    os.close(file)
    os.close(folder)
    return root
