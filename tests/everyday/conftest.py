"""Programs of the everyday shapes: `one` does the work once, `three` three times."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from end_to_end.conftest import Ensign, ensign
from found_compilers import compilers_found_once, found_compilers

__all__ = ["compilers_found_once", "ensign", "found_compilers"]

PROGRAMS = Path(__file__).parent / "programs"
ROUNDS = "5000000"


@dataclass(frozen=True)
class Shapes:
    one: str
    three: str

    def pair(self, words: str) -> tuple[str, str]:
        """The two command lines, the baseline first."""
        return f"{self.one} {words}", f"{self.three} {words}"


def built(source: str, target: Path, *options: str) -> Path:
    """A program or library of `programs/`, compiled plainly."""
    target.parent.mkdir(parents=True, exist_ok=True)
    argv = ["gcc-12", "-O1", "-pthread", *options, "-o", str(target), str(PROGRAMS / source)]
    subprocess.run([*argv, *(word for word in options if word.startswith("-l"))], check=True)
    return target


def _of(source: str, folder: Path) -> Shapes:
    one = built(source, folder / "one", "-DWORK=1")
    three = built(source, folder / "three", "-DWORK=3")
    return Shapes(str(one), str(three))


@pytest.fixture(scope="session")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Shapes:
    return _of("shapes.c", tmp_path_factory.mktemp("shapes"))


@pytest.fixture(scope="session")
def timers(tmp_path_factory: pytest.TempPathFactory) -> Shapes:
    return _of("timers.c", tmp_path_factory.mktemp("timers"))


@pytest.fixture
def here(ensign: Ensign) -> Path:  # the fixture
    return ensign.folder
