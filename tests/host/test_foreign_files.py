from __future__ import annotations

import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from ensign.host.disk_watch import held_bytes, used_bytes
from ensign.host.foreign_files import (
    HostileFileError,
    copy_foreign,
    open_foreign_text,
    read_foreign,
    remove_special,
    take_over,
    visit,
)

LONG = "n" * 200


def descend(folder: Path, name: str, levels: int) -> int:
    """A descriptor of a folder so many levels down."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        down = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = down
    return here


@pytest.mark.parametrize(("name", "levels"), [("d", 1500), (LONG, 40)])
def test_trees_deeper_than_paths_and_stacks_are_seen(
    tmp_path: Path, name: str, levels: int
) -> None:
    root = tmp_path / "root"
    (root / "beside").mkdir(parents=True)
    here = descend(root, name, levels)
    try:
        file = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here)
        os.write(file, b"x" * 100_000)
        os.close(file)
        assert sum(1 for _ in visit([root])) == levels + 2
        assert used_bytes([root]) >= 100_000
    finally:
        os.close(here)
        subprocess.run(["rm", "-rf", str(root)], check=True)  # pytest would recurse


def test_only_regular_files_are_read_and_copied(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        ("link", "is a link"), ("zero", "is a link"), ("folder", "is a folder"),
        ("pipe", "is a pipe"), ("none", "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(HostileFileError, match=said):
            copy_foreign(tmp_path / name, tmp_path / "copy", 100)
        with pytest.raises(HostileFileError, match=said):
            read_foreign(tmp_path / name, 100)
    with pytest.raises(HostileFileError, match="7 bytes, more than it may"):
        copy_foreign(tmp_path / "file", tmp_path / "copy", 6)
    assert not (tmp_path / "copy").exists()
    assert read_foreign(tmp_path / "file", 7) == b"content"
    with open_foreign_text(tmp_path / "file") as lines:
        assert list(lines) == ["content"]


def test_a_copy_keeps_no_permission_but_to_be_executed(tmp_path: Path) -> None:
    for number, (mode, kept) in enumerate(((0o6777, 0o755), (0o600, 0o644), (0o400, 0o644))):
        source, copy = tmp_path / f"{number}", tmp_path / f"{number}.copy"
        source.write_bytes(b"x")
        source.chmod(mode)
        os.utime(source, ns=(5, 7))
        assert copy_foreign(source, copy, 10) == 1
        assert stat.S_IMODE(copy.stat().st_mode) == kept
        assert copy.stat().st_mtime_ns == 7


def test_what_is_taken_over_is_ours_and_harmless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    (root / "dark").mkdir(parents=True)
    (root / "dark/program").write_bytes(b"x" * 10)
    (root / "dark/program").chmod(0o4711)
    (root / "link").symlink_to("/etc/shadow")
    os.mkfifo(root / "dark/pipe")
    monkeypatch.chdir(root)  # a socket's path may be too long
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    assert remove_special([root]) == 10
    take_over(root)
    assert {each.base for each in visit([root])} == {"dark", "program", "link"}
    assert stat.S_IMODE((root / "dark/program").stat().st_mode) == 0o755
    assert (root / "link").is_symlink()


def test_deleted_files_count_as_long_as_somebody_has_them_open(tmp_path: Path) -> None:
    path = tmp_path / "folder/file"
    path.parent.mkdir()
    with path.open("wb") as file:
        file.write(b"x" * 100_000)
        file.flush()
        assert held_bytes([path.parent]) == 0
        path.unlink()
        assert held_bytes([path.parent]) >= 100_000
        assert held_bytes([tmp_path / "another"]) == 0
    assert held_bytes([path.parent]) == 0
