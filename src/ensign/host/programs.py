"""Programs on the search path: which there are, what version they say, whether they work."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from errno import ENOENT
from pathlib import Path
from typing import Protocol

from ensign.host.bounded_run import Bounded, run_bounded
from ensign.host.search_path import apart_from, not_tried
from ensign.model.quoting import shortened

_BOUNDS = Bounded(deadline_s=10.0, most_bytes=16 << 20)
_LONGEST_LINE = 500
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

    def not_tried(self, name: str, folders: Sequence[Path]) -> str:
        """Why a compiler that a study names is not asked; empty where it may be."""
        ...

    def apart_from(self, folders: Sequence[Path]) -> Programs:
        """The same without what lies in these folders."""
        ...


class LocalPrograms:
    """This machine's; what lies in the current folder is none, whatever PATH says."""

    def __init__(self, path: str | None = None, folders: Sequence[Path] = ()) -> None:
        self._whole = os.environ.get("PATH", os.defpath) if path is None else path
        self._path = apart_from(self._whole, folders)

    def not_tried(self, name: str, folders: Sequence[Path]) -> str:
        """See `Programs.not_tried`."""
        return not_tried(name, self._whole, folders)

    def apart_from(self, folders: Sequence[Path]) -> Programs:
        """See `Programs.apart_from`."""
        return LocalPrograms(self._whole, folders)

    def find(self, name: str) -> Path | None:
        """See `Programs.find`."""
        found = shutil.which(name, path=self._path)
        return None if found is None else Path(found)

    def matching(self, pattern: str) -> tuple[str, ...]:
        """See `Programs.matching`."""
        wanted = re.compile(pattern)
        found = (names_in(folder) for folder in self._path.split(os.pathsep))
        names = {name for each in found for name in each if wanted.fullmatch(name)}
        return tuple(sorted((name for name in names if self.find(name)), key=_natural))

    def ask(self, argv: Sequence[str]) -> Answer:
        """See `Programs.ask`."""
        program = self.find(argv[0])
        if program is None:
            return Answer(success=False, line=f"{argv[0]}: {os.strerror(ENOENT)}")
        said = run_bounded((str(program), *argv[1:]), self._env(), _BOUNDS)
        first = next((line.strip() for line in said.text.splitlines() if line.strip()), "")
        return Answer(success=said.ok, line=shortened(said.problem or first, _LONGEST_LINE))

    def packages(self) -> frozenset[str]:
        """See `Programs.packages`. Without lists apt knows only what is installed."""
        apt = self.find("apt-cache")
        if apt is None or not any(_APT_LISTS.glob("*Packages*")):
            return frozenset()
        said = run_bounded((str(apt), "pkgnames"), self._env(), _BOUNDS)
        return frozenset() if said.problem else frozenset(said.text.split())

    def _env(self) -> dict[str, str]:
        return {**os.environ, "PATH": self._path, "LC_ALL": "C"}


def names_in(folder: str) -> tuple[str, ...]:
    """What is in a folder of a search path; nothing where there is none that may be read."""
    try:
        return tuple(os.listdir(folder)) if folder else ()  # noqa: PTH208  # names are wanted
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ()


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

    def not_tried(self, name: str, folders: Sequence[Path]) -> str:
        """See `Programs.not_tried`: all may be."""
        del name, folders
        return ""

    def apart_from(self, folders: Sequence[Path]) -> Programs:
        """See `Programs.apart_from`."""
        del folders
        return self


def _natural(name: str) -> list[tuple[int, str]]:
    """`gcc-9` before `gcc-12`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
