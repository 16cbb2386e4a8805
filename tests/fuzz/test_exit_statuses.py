"""The command line says in a line or two what is wrong with a file; an internal error it never is.

Each file of the corpus, and damage of it, is given to the commands that read such files.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ensign.cli.main import run_command_line
from ensign.experiment.compare.options import read_drive
from ensign.experiment.study_file import read_study
from ensign.model.errors import InputError
from fuzz.check import corpus_of
from fuzz.mutate import mutated
from fuzz.targets import TARGETS

WRONG_INPUT = 2
MOST_LINES = 2
MOST_STUDY_LINES = 10  # one for each mistake


def inputs(name: str, mutations: int) -> Iterator[bytes]:
    seeds = list(corpus_of(TARGETS[name]).values())
    yield from seeds
    for number in range(mutations):
        yield mutated(seeds[number % len(seeds)], TARGETS[name].kind, seeds, number)


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENSIGN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


class Said:
    """Carries out a command line, and looks at what it says."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *argv: str, most_lines: int = MOST_LINES) -> int:
        status = run_command_line(list(argv))
        said = self._capsys.readouterr()
        assert status in (0, 1, WRONG_INPUT), (argv, status, said.err)
        assert "Traceback" not in said.err
        if status == WRONG_INPUT:
            assert 1 <= len(said.err.splitlines()) <= most_lines, said.err
        return status


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    return Said(capsys)


@pytest.mark.parametrize(
    ("name", "file"),
    [("elf", "program"), ("object", "x.o"), ("archive", "libx.a"), ("doctor", "program")],
)
def test_doctor(name: str, file: str, tmp_path: Path, said: Said) -> None:
    path = tmp_path / file
    for data in inputs(name, 60):
        path.write_bytes(data)
        said("doctor", str(path))


def test_evidence_of_others(tmp_path: Path, said: Said) -> None:
    path, good = tmp_path / "b.zip", tmp_path / "good.zip"
    good.write_bytes(corpus_of(TARGETS["report"])["study.zip"])
    for data in inputs("report", 60):
        path.write_bytes(data)
        said("report", str(path))
        said("report", str(path), "--json", "-")
        said("diff-studies", str(path), str(good))
        said("merge", str(path), str(good))
        said("unbundle", str(path), str(tmp_path / "again"))
        shutil.rmtree(tmp_path / "again", ignore_errors=True)


def test_studies(tmp_path: Path, said: Said) -> None:
    path = tmp_path / "study.toml"
    refused = 0
    for data in inputs("study", 60):
        path.write_bytes(data)
        try:
            read_study(path)
        except InputError:
            refused += 1
            for command in ("plan", "run", "report", "bundle"):
                assert said(command, str(path), most_lines=MOST_STUDY_LINES) == WRONG_INPUT
    assert refused > 20


def test_drives(tmp_path: Path, said: Said) -> None:
    path = tmp_path / "drive.toml"
    refused = 0
    for data in inputs("drive-file", 60):
        path.write_bytes(data)
        try:
            read_drive(path)
        except InputError:
            refused += 1
            assert said("compare", "--drive", str(path), "a {port}", "b {port}") == WRONG_INPUT
    assert refused > 20
