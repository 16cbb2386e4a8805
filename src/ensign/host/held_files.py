"""Files that were deleted, and take their place on disk as long as somebody has them open."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")


def held_bytes(folders: Iterable[Path]) -> int:
    """Bytes on disk of deleted files that processes of these folders have open or mapped.

    Those are the ones that see one of them as a mount of theirs, or had a file below it. Of what is
    mapped but not open the length of the mapping counts.
    """
    folders = tuple(folders)
    held: dict[tuple[int, int], int] = {}
    for process in _processes():
        mounted = _sees(process, folders)
        for path, status in _open_files(process):
            if status.st_nlink == 0 and (mounted or _lies_in(path, folders)):
                held[status.st_dev, status.st_ino] = status.st_blocks * 512
        for path, device, inode, length in _mapped(process):
            if mounted or _lies_in(path, folders):
                held.setdefault((device, inode), length)
    return sum(held.values())


def _processes() -> Iterator[Path]:
    with suppress(OSError):
        for name in os.listdir(_PROC):  # noqa: PTH208  # names alone are quick
            if name.isdigit():
                yield _PROC / name


def _sees(process: Path, folders: tuple[Path, ...]) -> bool:
    try:
        mounts = (process / "mountinfo").read_bytes()
    except OSError:
        return False
    ends = (os.fsencode(f"/{each.parent.name}/{each.name} ") for each in folders)
    return any(end in mounts for end in ends)


def _open_files(process: Path) -> Iterator[tuple[str, os.stat_result]]:
    with suppress(OSError):
        for name in os.listdir(process / "fd"):  # noqa: PTH208
            link = process / "fd" / name
            with suppress(OSError):
                status = link.stat()
                if stat.S_ISREG(status.st_mode):
                    yield str(link.readlink()), status


def _mapped(process: Path) -> Iterator[tuple[str, int, int, int]]:
    with suppress(OSError, ValueError):
        for line in (process / "maps").read_text(errors="replace").splitlines():
            if not line.endswith(" (deleted)"):
                continue
            addresses, _, _, device, inode, path = line.split(maxsplit=5)
            first, last = (int(each, 16) for each in addresses.split("-"))
            major, minor = (int(each, 16) for each in device.split(":"))
            if major:  # shared memory has none
                yield path, os.makedev(major, minor), int(inode), last - first


def _lies_in(path: str, folders: tuple[Path, ...]) -> bool:
    return any(path.startswith(f"{each}/") for each in folders)
