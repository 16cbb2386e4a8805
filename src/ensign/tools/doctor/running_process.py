"""A running process, seen from outside: its program, the files mapped into it, its CPU time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ensign.model.errors import InputError

_MAPPED = re.compile(r"[0-9a-f]+-[0-9a-f]+ (\S{4}) [0-9a-f]+ ([0-9a-f]+:[0-9a-f]+) (\d+) +(/.*)")
_DELETED = " (deleted)"
_MOST_BYTES = 64 << 20
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_USER, _SYSTEM = 11, 12  # fields of /proc/PID/stat behind the name


@dataclass(frozen=True, slots=True)
class MappedNow:
    """A file of which code is mapped. `deleted`: another one, or none, has its name by now.

    `path` is its name, `readable` where it can be read from here; None where it cannot.
    """

    path: str
    deleted: bool
    readable: Path | None


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """`program` is what its executable is called, `executable` leads to it, even where deleted."""

    number: int
    program: str
    executable: Path
    deleted: bool
    mapped: tuple[MappedNow, ...]
    user_ticks: int
    system_ticks: int

    @property
    def user_share(self) -> float | None:
        """Share of its CPU time; None in its first second, when it has had too little to tell."""
        total = self.user_ticks + self.system_ticks
        return self.user_ticks / total if total >= _TICKS_PER_SECOND else None

    @property
    def cpu_s(self) -> float:
        """CPU time that it has had, in seconds, as ticks count it."""
        return (self.user_ticks + self.system_ticks) / _TICKS_PER_SECOND


def read_process(number: int, root: Path = Path("/proc")) -> RunningProcess:
    """Look at a process. InputError where there is none, or it may not be looked at."""
    place = root / str(number)
    try:
        name = str((place / "exe").readlink())
        with (place / "maps").open("rb") as file:
            maps = os.fsdecode(file.read(_MOST_BYTES))
        stat = (place / "stat").read_bytes().decode(errors="replace")
    except PermissionError:
        raise InputError(
            f"process {number} may not be looked at: it is another user's, or guarded"
        ) from None
    except FileNotFoundError:
        if place.is_dir():
            raise InputError(f"process {number} is the kernel's own, or has ended") from None
        raise InputError(f"there is no process {number}, nor a file of that name") from None
    except ProcessLookupError:
        raise InputError(f"process {number} has ended") from None
    fields = stat.rpartition(")")[2].split()
    program = name.removesuffix(_DELETED)
    return RunningProcess(
        number=number,
        program=program,
        executable=place / "exe",
        deleted=name.endswith(_DELETED),
        mapped=tuple(
            mapped_file for mapped_file in _mapped(maps, place) if mapped_file.path != program
        ),
        user_ticks=int(fields[_USER]),
        system_ticks=int(fields[_SYSTEM]),
    )


def _mapped(maps: str, place: Path) -> Iterator[MappedNow]:
    seen: set[str] = set()
    for line in maps.splitlines():
        match = _MAPPED.fullmatch(line)
        if match is None or "x" not in match[1] or match[4] in seen:
            continue
        seen.add(match[4])
        path, inode = match[4].removesuffix(_DELETED), int(match[3])
        deleted = match[4].endswith(_DELETED)
        yield MappedNow(path, deleted, None if deleted else _readable(path, inode, place))


def _readable(path: str, inode: int, place: Path) -> Path | None:
    """The file that is mapped: in the process' own root, which may be a container's, or in ours."""
    for file in (Path(f"{place}/root{path}"), Path(path)):
        try:
            if file.stat().st_ino == inode:
                return file
        except OSError:
            continue
    return None
