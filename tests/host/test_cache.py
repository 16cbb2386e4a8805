from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from ensign.host.cache import Cache, cache_folder, key_of
from ensign.model.errors import InputError, StorageFailed
from fakes import FakeClock

KIB = 1024


def fill_with(size_bytes: int) -> Callable[[Path], Mapping[str, object]]:
    def fill(folder: Path) -> dict[str, object]:
        (folder / "data").write_bytes(b"x" * size_bytes)
        return {"made": size_bytes}

    return fill


def make(cache: Cache, key: str, size_bytes: int = 64 * KIB) -> None:
    cache.make("program", key, fill_with(size_bytes))


def test_what_was_made_is_found_with_its_facts(tmp_path: Path) -> None:
    with Cache(tmp_path) as cache:
        assert cache.get("program", "k") is None
        make(cache, "k", 5)
    with Cache(tmp_path) as cache:
        entry = cache.get("program", "k")
        assert entry is not None
        assert entry.facts == {"made": 5}
        assert (entry.folder / "data").read_bytes() == b"xxxxx"


def test_a_failed_fill_leaves_nothing(tmp_path: Path) -> None:
    def fill(folder: Path) -> dict[str, object]:
        (folder / "half").write_text("half")
        raise ValueError("no")

    with Cache(tmp_path) as cache:
        with pytest.raises(ValueError, match="no"):
            cache.make("program", "k", fill)
        assert cache.get("program", "k") is None
        assert list((tmp_path / "temporary").iterdir()) == []


def test_the_least_recently_used_go_first_and_those_in_use_stay(tmp_path: Path) -> None:
    clock = FakeClock(start_unix_s=1e9)
    for key in ("a", "b", "c", "d"):
        with Cache(tmp_path, clock=clock) as cache:
            make(cache, key)
        clock.advance_ns(10**9)
    with Cache(tmp_path, clock=clock) as cache:
        assert cache.get("program", "a") is not None
    clock.advance_ns(10**9)
    user = Cache(tmp_path, clock=clock)
    assert user.get("program", "b") is not None
    with Cache(tmp_path, clock=clock, limit_bytes=150 * KIB):
        pass
    left = {path.name for path in (tmp_path / "entries").iterdir()}
    assert left == {"program-a", "program-b"}
    user.close()


def test_cleaning_spares_what_is_in_use_and_what_is_young(tmp_path: Path) -> None:
    clock = FakeClock(start_unix_s=1e9)
    with Cache(tmp_path, clock=clock) as cache:
        make(cache, "old")
        clock.advance_ns(100 * 10**9)
        make(cache, "young")
    with Cache(tmp_path, clock=clock) as cache:
        assert cache.clean(older_than_s=50) >= 64 * KIB
        assert cache.get("program", "old") is None
        assert cache.get("program", "young") is not None
        assert cache.clean() == 0
    with Cache(tmp_path, clock=clock) as cache:
        assert cache.clean() >= 64 * KIB
        assert cache.size_bytes() == 0


def test_of_two_makers_of_one_entry_the_first_wins(tmp_path: Path) -> None:
    with Cache(tmp_path) as one, Cache(tmp_path) as two:

        def slow(folder: Path) -> dict[str, object]:
            make(two, "k", 3)
            (folder / "data").write_text("mine")
            return {"made": "mine"}

        entry = one.make("program", "k", slow)
        assert entry.facts == {"made": 3}
        assert (entry.folder / "data").read_text() == "xxx"


def test_the_folders_of_a_killed_process_are_swept_those_of_a_live_one_not(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from ensign.host.cache import Cache\n"
        "with Cache(Path(sys.argv[1])).temporary() as work:\n"
        "    (work / 'half').write_text('half'); os._exit(9)\n"
    )
    with Cache(tmp_path) as live, live.temporary() as mine:
        subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
        assert len(list((tmp_path / "temporary").iterdir())) == 2
        Cache(tmp_path).close()
        assert list((tmp_path / "temporary").iterdir()) == [mine]


def test_keys_do_not_depend_on_the_order_of_names() -> None:
    assert key_of({"a": 1, "b": [2]}) == key_of({"b": [2], "a": 1})
    assert key_of({"a": 1}) != key_of({"a": "1"})


def test_the_folder_can_be_chosen(tmp_path: Path) -> None:
    assert cache_folder({"ENSIGN_CACHE": str(tmp_path)}) == tmp_path
    assert cache_folder({}).name == "ensign"


@pytest.mark.parametrize("place", ["file", "file/below", "/proc/ensign", "x" * 300])
def test_an_impossible_folder_is_the_users_to_change(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match=r"cannot use the cache folder .*ENSIGN_CACHE=FOLDER"):
        Cache(tmp_path / place)


def test_a_folder_that_is_not_writable_is_the_users_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # root may write anywhere
    with pytest.raises(InputError, match="Permission denied"):
        Cache(tmp_path)


def test_a_full_disk_is_no_fault_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StorageFailed, match="disk is full"):
        Cache(tmp_path / "new")


def test_reading_facts_is_no_use_of_an_entry(tmp_path: Path) -> None:
    clock = FakeClock()
    with Cache(tmp_path, clock=clock) as cache:
        assert cache.facts("program", "key") is None
        make(cache, "key")
        used = tmp_path / "entries/program-key/used"
    before_ns = used.stat().st_mtime_ns
    clock.advance_ns(10**11)
    with Cache(tmp_path, clock=clock) as cache:
        assert cache.facts("program", "key") == {"made": 64 * KIB}
        assert used.stat().st_mtime_ns == before_ns
        assert cache.clean() > 0
        assert cache.facts("program", "key") is None


def test_small_facts_are_remembered(tmp_path: Path) -> None:
    with Cache(tmp_path) as cache:
        assert cache.recall("q") is None
        cache.remember("q", "yes")
    with Cache(tmp_path) as cache:
        assert cache.recall("q") == "yes"
