"""What a command may leave behind: processes, control groups, mounts, temporary files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GROUPS = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
_ENDING_S = 5.0


def descendants(pid: int) -> dict[int, str]:
    """The living processes below one, with their command lines; found by parentage alone."""
    found: dict[int, str] = {}
    ahead = list(_children(pid))
    while ahead:
        child = ahead.pop()
        ahead += _children(child)
        with suppress(OSError):
            state = Path(f"/proc/{child}/stat").read_text(errors="replace").rpartition(")")[2]
            if state.split()[0] not in "ZX":
                words = Path(f"/proc/{child}/cmdline").read_bytes().decode(errors="replace")
                found[child] = words.replace("\0", " ").strip()
    return found


def _children(pid: int) -> Iterator[int]:
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            yield from map(int, thread.read_text().split())


def remaining(pid: int, within_s: float = _ENDING_S) -> list[str]:
    """The processes below one that do not end within that time."""
    give_up = time.monotonic() + within_s
    while (found := descendants(pid)) and time.monotonic() < give_up:
        time.sleep(0.02)
    return [f"process {number}: {words[:200]}" for number, words in found.items()]


def new_group() -> Path | None:
    """A control group of our own, so that those made in it are told from those of others."""
    for folder in _GROUPS:
        if (folder / "cgroup.procs").exists():
            group = folder / f"faults-{os.getpid()}"
            with suppress(OSError):
                group.mkdir(exist_ok=True)
                return group
    return None


def groups_below(group: Path | None) -> list[str]:
    """The control groups in ours."""
    if group is None:
        return []
    return [f"control group {each.name}" for each in group.iterdir() if each.is_dir()]


def mounts() -> frozenset[str]:
    """All mounts that this process sees, by their place."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return frozenset(line.split()[4] for line in lines)


def temporary_files(folder: Path) -> list[str]:
    """What is temporary in a folder of `Place`, and still there."""
    found = [*folder.glob("tmp/*"), *folder.glob("cache/temporary/*"), *folder.rglob(".*.part")]
    found += folder.glob("run/ensign*/**/ensign-meter-*")
    return [f"file {path.relative_to(folder)}" for path in found]
