"""Files whose end is not where it was said to be."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import pytest

from ensign.host.regular_file import open_sized


def test_a_file_that_grows_ends_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"first")
    with open_sized(path) as file:
        path.write_bytes(b"first, and more of it")
        assert file.read() == b"first"
        assert file.read() == b""
        assert file.seek(-2, os.SEEK_END) == 3
        assert file.read(100) == b"st"
        assert file.seek(100) == 100
        assert file.read() == b""
        with pytest.raises(OSError, match="Invalid"):
            file.seek(-6, os.SEEK_END)


def test_libraries_read_from_it_as_from_any_file(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one", "x" * 100_000)
        archive.writestr("two", "y")
    with open_sized(path) as file, zipfile.ZipFile(file) as read:
        assert read.read("one") == b"x" * 100_000
        assert read.read("two") == b"y"
    with open_sized(path) as file:
        assert io.BytesIO(file.read()).getvalue() == path.read_bytes()


@pytest.mark.parametrize(
    "name", ["/proc/self/maps", "/proc/kmsg", "/sys/kernel/mm/transparent_hugepage/enabled"]
)
def test_what_the_kernel_makes_up_is_no_file(name: str) -> None:
    if Path(name).exists():
        with pytest.raises(OSError, match="not a regular file"):
            open_sized(Path(name))


def test_the_program_of_a_process_is_one() -> None:
    with open_sized(Path("/proc/self/exe")) as file:
        assert file.read(4) == b"\x7fELF"
