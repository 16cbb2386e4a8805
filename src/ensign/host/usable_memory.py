"""How much memory programs may use here: the machine's, or less in a control group or container."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_SHARE = 0.9
_TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB", re.MULTILINE)


def usable_memory_bytes(root: Path = Path("/")) -> int:
    """Of that 90 %, so that the rest of the machine goes on; 0 where nothing is known."""
    return int(min(_limits(root), default=0) * _SHARE)


def _limits(root: Path) -> Iterator[int]:
    with suppress(OSError):
        total = _TOTAL.search((root / "proc/meminfo").read_text(encoding="ascii"))
        if total is not None:
            yield int(total[1]) * 1024
    groups = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield from _limits_of(groups, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _limits_of(groups / "memory", path, "memory.limit_in_bytes")


def _limits_of(hierarchy: Path, path: str, name: str) -> Iterator[int]:
    """Of a group and all around it."""
    group = hierarchy / path.strip("/")
    for folder in (group, *group.parents):
        if not folder.is_relative_to(hierarchy):
            return
        with suppress(OSError, ValueError):
            yield int((folder / name).read_text(encoding="ascii"))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
