"""Programs on the search path: which there are, what version they say, whether they work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

_DEADLINE_S = 10.0
_APT_LISTS = Path("/var/lib/apt/lists")


@dataclass(frozen=True, slots=True)
class Answer:
    """How a short command ended: whether it succeeded, and its first line that is not empty."""

    success: bool
    line: str


class Programs(Protocol):
    """The search path and short commands."""

    def find(self, name: str) -> Path | None:
        """The program of that name (or path), or None."""
        ...

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Names on the search path that match a whole regular expression, in natural order."""
        ...

    def ask(self, argv: Sequence[str]) -> Answer:
        """Run a command that ends by itself; not successful if it is missing or too slow."""
        ...

    def packages(self) -> frozenset[str]:
        """Names of the packages that can be installed; empty where that is not known."""
        ...


class LocalPrograms:
    """This machine's."""

    def __init__(self, path: str | None = None) -> None:
        self._path = os.environ.get("PATH", os.defpath) if path is None else path

    def find(self, name: str) -> Path | None:
        """See `Programs.find`."""
        found = shutil.which(name, path=self._path)
        return None if found is None else Path(found)

    def matching(self, pattern: str) -> tuple[str, ...]:
        """See `Programs.matching`."""
        wanted = re.compile(pattern)
        names: set[str] = set()
        for folder in self._path.split(os.pathsep):
            names.update(name for name in names_in(folder) if wanted.fullmatch(name))
        return tuple(sorted((name for name in names if self.find(name)), key=_natural))

    def ask(self, argv: Sequence[str]) -> Answer:
        """See `Programs.ask`."""
        try:
            done = _run(argv)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Answer(success=False, line=str(error))
        lines = done.stdout.decode(errors="replace").splitlines()
        first = next((line.strip() for line in lines if line.strip()), "")
        return Answer(success=done.returncode == 0, line=first)

    def packages(self) -> frozenset[str]:
        """See `Programs.packages`. Without lists apt knows only what is installed."""
        apt = self.find("apt-cache")
        if apt is None or not any(_APT_LISTS.glob("*Packages*")):
            return frozenset()
        try:
            done = _run((str(apt), "pkgnames"))
        except (OSError, subprocess.TimeoutExpired):
            return frozenset()
        return frozenset(done.stdout.decode(errors="replace").split())


def _run(argv: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_DEADLINE_S,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )


@dataclass(frozen=True, slots=True)
class FakePrograms:
    """Answers by name; a command is answered by the name of its program."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    known_packages: frozenset[str] = frozenset()

    def find(self, name: str) -> Path | None:
        """See `Programs.find`."""
        return Path("/usr/bin") / name if name in self.answers else None

    def matching(self, pattern: str) -> tuple[str, ...]:
        """See `Programs.matching`."""
        names = (name for name in self.answers if re.fullmatch(pattern, name))
        return tuple(sorted(names, key=_natural))

    def ask(self, argv: Sequence[str]) -> Answer:
        """See `Programs.ask`."""
        name = Path(argv[0]).name
        return self.answers.get(name, Answer(success=False, line=f"{name}: not found"))

    def packages(self) -> frozenset[str]:
        """See `Programs.packages`."""
        return self.known_packages


def names_in(folder: str) -> list[str]:
    """Names of what is in a folder of a search path; none where it cannot be read."""
    try:
        return os.listdir(folder) if folder else []  # noqa: PTH208  # names alone are quick
    except OSError:
        return []


def _natural(name: str) -> list[tuple[int, str]]:
    """`gcc-9` before `gcc-12`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
