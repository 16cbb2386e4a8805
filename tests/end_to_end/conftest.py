"""The real program, as a user calls it: a real meter, real compilers, real servers.

Whatever a test does to it, afterwards none of its processes may run or stand still, and no control
group or scratch folder may be left.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from end_to_end.small_study import MARK, write_study
from ensign.cli.main import run_command_line
from ensign.meter.client import LocalMeter
from found_compilers import compilers_found_once, found_compilers
from unwrapped import unwrapped

__all__ = ["compilers_found_once", "found_compilers"]  # fixtures

SOURCES = Path(__file__).parent / "programs"
_CALL = "from ensign.cli.main import main; main()"
_GROUP = re.compile(r"ensign-(\d+)-[0-9a-f]{16}")
# For tests that are about something else than time: a second or two on an idle machine, and as
# long as it takes on a busy one.
SOON = ("--budget", "20s", "--precision", "60%")
_NEIGHBORS_S = 10.0
_PATIENCE_S = 120.0  # for a slow machine under load; nothing is measured by it


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Standard output without its wrapping."""
        return unwrapped(self.out)

    @property
    def complaint(self) -> str:
        """The line of ensign's own on standard error; fails where there is not exactly one."""
        assert "Traceback" not in self.err, self.err
        lines = [line for line in self.err.splitlines() if line.startswith("ensign: ")]
        assert len(lines) == 1, self.err
        return lines[0]


def wait_for(
    happened: Callable[[], bool], what: str, running: subprocess.Popen[str] | None = None
) -> None:
    """Until it happened; in vain at once where the program that is to do it has ended."""
    give_up = time.monotonic() + _PATIENCE_S
    while not happened():
        ended = running is not None and running.poll() is not None
        assert not ended or happened(), f"{what}: it ended before that"
        assert time.monotonic() < give_up, what
        time.sleep(0.02)


def _in_detail(argv: Sequence[str]) -> list[str]:
    told = argv[:1] and argv[0] in ("compare", "explain", "run", "report")
    return [argv[0], "--details", *argv[1:]] if told else list(argv)


@dataclass
class Ensign:
    """Runs ensign in a folder of the test.

    `start` starts the program. A plain call runs the same command line in this process, where the
    libraries are loaded already. Both ask for all details; `brief` is what a user sees who does
    not.
    """

    folder: Path
    capfd: pytest.CaptureFixture[str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    others: frozenset[Path] = field(default_factory=lambda: frozenset(_dead_groups()))

    @property
    def mark(self) -> str:
        """What the environment of every process of ours has (builds have it from `write_study`)."""
        return f"{MARK}={self.folder}"

    def start(self, *argv: str, **env: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*self.command, *_in_detail(argv)],
            cwd=self.folder,
            env={**self.environment, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def __call__(self, *argv: str, **env: str) -> Done:
        return self.brief(*_in_detail(argv), **env)

    def brief(self, *argv: str, **env: str) -> Done:
        """The command line as it is."""
        self.capfd.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name, value in {**self.environment, **env}.items():
                patch.setenv(name, value)
            status = run_command_line(list(argv))
        out, err = self.capfd.readouterr()
        return Done(status, out, err)

    def end(self, process: subprocess.Popen[str]) -> Done:
        out, err = process.communicate(timeout=300)
        return Done(process.returncode, out, err)

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-c", _CALL]

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "COLUMNS": "80",
            "TMPDIR": str(self.scratch),
            "ENSIGN_CACHE": str(self.folder / "cache"),
            MARK: str(self.folder),
        }

    @property
    def scratch(self) -> Path:
        return self.folder / "scratch"

    def processes(self) -> dict[int, str]:
        """Our processes that still exist, with their command lines."""
        return {
            pid: command for pid, environment, command in _processes() if self.mark in environment
        }

    def meters(self, process: subprocess.Popen[str]) -> list[int]:
        """Guardian and worker of that ensign's meter, as far as they are there now."""
        guardians = _children(process.pid)
        return guardians + [pid for each in guardians for pid in _children(each)]

    def kill_meter(self, process: subprocess.Popen[str], victim: str) -> None:
        """Kills guardian or worker until ensign ends: between two races there is none to kill."""
        index = ("guardian", "worker").index(victim)
        while process.poll() is None:
            meters = self.meters(process)
            with suppress(ProcessLookupError, IndexError):
                os.kill(meters[index], signal.SIGKILL)
            time.sleep(0.02)

    def nothing_left(self) -> None:
        """A group may be that of a neighbor who was killed: at the end the next run removes it.

        That a run leaves none itself is tested by the meter, which knows its own groups.
        """
        give_up = time.monotonic() + _PATIENCE_S
        while (found := self.leftovers()) and time.monotonic() < give_up:
            if time.monotonic() > give_up - _PATIENCE_S + _NEIGHBORS_S:
                list(LocalMeter().run("exec", {"schema": 1, "process": {"argv": ["true"]}}))
            time.sleep(0.02)
        assert found == []

    def leftovers(self) -> list[str]:
        found = [f"process {pid}: {command}" for pid, command in self.processes().items()]
        found += [f"control group {path}" for path in _dead_groups() if path not in self.others]
        found += [f"scratch {path}" for path in self.scratch.iterdir()]
        return found


def _processes() -> Iterator[tuple[int, list[str], str]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            environment = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
            words = (entry / "cmdline").read_bytes().decode(errors="replace").rstrip("\0")
        except OSError:
            continue
        if words:
            yield int(entry.name), environment, words.replace("\0", " ")


def _children(pid: int) -> list[int]:
    """Children of a process, none of one that has ended meanwhile."""
    found: list[int] = []
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += [int(word) for word in (thread / "children").read_text().split()]
    return found


def _dead_groups() -> list[Path]:
    """Groups whose maker is gone; those of other runs on this machine are none of ours."""
    found = []
    for folder in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")):
        for place, names, _ in os.walk(folder):  # which does not mind that groups come and go
            for name in names:
                match = _GROUP.fullmatch(name)
                if match is not None and not Path(f"/proc/{int(match[1])}").exists():
                    found.append(Path(place) / name)
    return found


@pytest.fixture
def ensign(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Ensign]:
    here = Ensign(tmp_path, capfd)
    here.scratch.mkdir()
    yield here
    try:
        here.nothing_left()
    finally:
        for pid in here.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for process in here.started:
            process.communicate()


@dataclass(frozen=True)
class Programs:
    """Compiled once for all tests: programs of two costs, servers of two costs, their load."""

    cheap: str
    dear: str
    server: str
    dear_server: str
    load: str
    threads: str


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    folder = tmp_path_factory.mktemp("programs")

    def built(name: str, source: str, work: int) -> str:
        path = folder / name
        argv = ["gcc-12", "-O1", f"-DWORK={work}", "-pthread", "-o", str(path)]
        subprocess.run([*argv, str(SOURCES / source)], check=True)
        return str(path)

    return Programs(
        cheap=built("cheap", "spin.c", 1),
        dear=built("dear", "spin.c", 2),
        server=built("server", "server.c", 100),
        dear_server=built("dear-server", "server.c", 300),
        load=built("load", "load.c", 0),
        threads=built("threads", "threads.c", 0),
    )


class Line:
    """Runs a command line in this process; what it complained about, in one line."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, command_line: str) -> str:
        self._capfd.readouterr()
        status = run_command_line(shlex.split(command_line))
        captured = self._capfd.readouterr()
        assert status == 2, captured.err
        assert captured.err.count("\n") == 1, captured.err
        assert captured.err.startswith("ensign: ")
        assert captured.out == ""
        return captured.err


@pytest.fixture
def complaint(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Line:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENSIGN_CACHE", str(tmp_path / "cache"))
    return Line(capfd)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("finished")


@pytest.fixture
def measured(finished: Path, ensign: Ensign) -> Path:
    """A small study that was run to its end, in the folder of the test."""
    if not (finished / "study.toml").exists():
        write_study(ensign.folder)
        done = ensign("run", "study.toml")
        assert done.status == 0, done.err
        shutil.copytree(ensign.folder, finished, dirs_exist_ok=True)
    shutil.copytree(finished, ensign.folder, dirs_exist_ok=True)
    return ensign.folder / "study.toml"
