from __future__ import annotations

from pathlib import Path

import pytest

from ensign.builders.sandbox_mounts import usable_memory_bytes

GIB = 2**30


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(f"MemTotal:  {8 * GIB // 1024} kB\nMemFree: 1 kB\n")
    (tmp_path / "proc/self/cgroup").write_text("4:cpu,memory:/a/b\n0::/c/d\n")
    return tmp_path


def limit(root: Path, file: str, text: str) -> None:
    path = root / "sys/fs/cgroup" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_it_is_nine_tenths_of_the_machine_or_of_the_closest_limit(root: Path) -> None:
    assert usable_memory_bytes(root) == int(8 * GIB * 0.9)
    limit(root, "c/d/memory.max", "max\n")
    limit(root, "memory/a/b/memory.limit_in_bytes", "9223372036854771712\n")
    assert usable_memory_bytes(root) == int(8 * GIB * 0.9)
    limit(root, "c/memory.max", f"{4 * GIB}\n")
    assert usable_memory_bytes(root) == int(4 * GIB * 0.9)
    limit(root, "memory/a/memory.limit_in_bytes", f"{2 * GIB}\n")
    assert usable_memory_bytes(root) == int(2 * GIB * 0.9)


def test_where_nothing_is_known_there_is_no_number(tmp_path: Path) -> None:
    assert usable_memory_bytes(tmp_path) == 0
