from __future__ import annotations

import threading
from pathlib import Path

from ensign.host.disk_watch import DiskLimit, DiskWatch, used_bytes


def test_used_bytes_counts_what_is_on_disk_below_all_folders(tmp_path: Path) -> None:
    (tmp_path / "a/deep").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    empty = used_bytes([tmp_path])
    (tmp_path / "a/deep/file").write_bytes(b"x" * 100_000)
    (tmp_path / "b/link").symlink_to(tmp_path / "a/deep/file")
    with (tmp_path / "b/sparse").open("wb") as sparse:
        sparse.truncate(10**9)
    assert 100_000 <= used_bytes([tmp_path]) - empty < 200_000
    assert used_bytes([tmp_path / "a", tmp_path / "b"]) <= used_bytes([tmp_path])
    assert used_bytes([tmp_path / "none"]) == 0


def test_the_end_is_called_when_the_folders_have_grown(tmp_path: Path) -> None:
    limit = DiskLimit((tmp_path,), 50_000, used_bytes([tmp_path]))
    watch = DiskWatch(limit)
    called = threading.Event()
    with watch.calling(called.set):
        (tmp_path / "one").write_bytes(b"x" * 30_000)
        assert not watch.exceeded
        (tmp_path / "two").write_bytes(b"x" * 30_000)
        assert called.wait(120)
    assert watch.exceeded


def test_a_last_look_finds_what_was_written_at_the_end(tmp_path: Path) -> None:
    watch = DiskWatch(DiskLimit((tmp_path,), 4096, used_bytes([tmp_path])))
    with watch.calling(lambda: None):
        (tmp_path / "file").write_bytes(b"x" * 4096)
    assert watch.exceeded


def test_without_a_limit_or_below_it_nothing_happens(tmp_path: Path) -> None:
    for limit in (None, DiskLimit((tmp_path,), 10**6, 0)):
        watch = DiskWatch(limit)
        with watch.calling(lambda: None):
            (tmp_path / "file").write_bytes(b"x" * 4096)
        assert not watch.exceeded
