from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ensign.host.files import (
    copy_tree,
    locked,
    remove_tree,
    tree_sha256,
    tree_size_bytes,
    try_lock,
    write_atomically,
)
from ensign.model.errors import StorageFailed


def make_tree(root: Path) -> Path:
    (root / "src").mkdir(parents=True)
    (root / "src/main.c").write_text("int main(void) { return 0; }\n")
    (root / "configure").write_text("#!/bin/sh\n")
    (root / "configure").chmod(0o755)
    (root / "link").symlink_to("src/main.c")
    return root


def test_a_full_disk_is_named_and_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "lock.json"
    write_atomically(target, b"old")

    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(StorageFailed, match=r"lock\.json: the disk is full"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["lock.json"]


def test_the_hash_sees_content_names_links_and_programs_but_not_times(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "a")
    hashes = [tree_sha256(tree)]
    os.utime(tree / "src/main.c", (0, 0))
    (tree / "src/main.c").chmod(0o600)
    assert tree_sha256(tree) == hashes[0]
    (tree / "src/main.c").write_text("int main(void) { return 1; }\n")
    hashes.append(tree_sha256(tree))
    (tree / "configure").chmod(0o644)
    hashes.append(tree_sha256(tree))
    (tree / "link").unlink()
    (tree / "link").symlink_to("configure")
    hashes.append(tree_sha256(tree))
    (tree / "configure").rename(tree / "autogen")
    hashes.append(tree_sha256(tree))
    assert len(set(hashes)) == len(hashes)


def test_excluded_folders_and_names_are_left_out(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "a")
    plain = tree_sha256(tree)
    (tree / ".git").mkdir()
    (tree / ".git/HEAD").write_text("ref")
    (tree / "src/main.o").write_text("o")
    assert tree_sha256(tree) != plain
    assert tree_sha256(tree, [".git", "*.o"]) == plain
    assert tree_sha256(tree, [".git/", "src/*.o"]) == plain


def test_a_copy_is_equal_has_its_own_inodes_and_keeps_times(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "a")
    os.utime(tree / "src/main.c", (1, 1_000_000_000))
    os.utime(tree / "src", (1, 1_000_000_001))
    copy_tree(tree, tmp_path / "b")
    assert tree_sha256(tmp_path / "b") == tree_sha256(tree)
    assert (tmp_path / "b/src/main.c").stat().st_mtime == 1_000_000_000
    assert (tmp_path / "b/src").stat().st_mtime == 1_000_000_001
    assert (tmp_path / "b/src/main.c").stat().st_ino != (tree / "src/main.c").stat().st_ino
    assert (tmp_path / "b/link").is_symlink()


def test_hard_links_count_once_and_are_copied_apart(tmp_path: Path) -> None:
    tree = tmp_path / "a"
    tree.mkdir()
    (tree / "one").write_bytes(b"x" * 65536)
    before = tree_size_bytes(tree)
    os.link(tree / "one", tree / "two")
    assert tree_size_bytes(tree) == before
    copy_tree(tree, tmp_path / "b")
    (tmp_path / "b/one").write_bytes(b"y")
    assert (tmp_path / "b/two").read_bytes() == b"x" * 65536


def test_a_tree_without_permissions_is_removed(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "a")
    (tree / "src").chmod(0o500)
    tree.chmod(0o500)
    remove_tree(tree)
    assert not tree.exists()


def test_a_shared_lock_keeps_the_exclusive_one_out(tmp_path: Path) -> None:
    first = try_lock(tmp_path, shared=True)
    second = try_lock(tmp_path, shared=True)
    assert first is not None
    assert second is not None
    assert try_lock(tmp_path, shared=False) is None
    os.close(first)
    os.close(second)
    third = try_lock(tmp_path, shared=False)
    assert third is not None
    os.close(third)


def test_a_lock_file_is_held_inside_the_block_only(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locked(path):
        assert try_lock(path, shared=True) is None
    again = try_lock(path, shared=False)
    assert again is not None
    os.close(again)
