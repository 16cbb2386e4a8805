"""Carrying out a command of ensign in a folder of its own, and all that is to be known of its end."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from faults.injection import Fault
from faults.surroundings import descendants, groups_below, new_group, remaining

_DEADLINE_S = 150.0
_TESTS = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended; `status` is None where its deadline came first. `left` is what it left."""

    status: int | None
    out: str
    err: str
    took_s: float
    injected: tuple[dict[str, Any], ...] = ()
    left: tuple[str, ...] = ()

    @property
    def struck(self) -> dict[str, Any] | None:
        """Where a fault was injected."""
        return next((each for each in self.injected if "struck" in each), None)

    @property
    def counts(self) -> dict[str, int]:
        """How often each call site was met."""
        return next((each["counts"] for each in self.injected if "counts" in each), {})


@dataclass(frozen=True, slots=True)
class Running:
    """A command under way: its process, and that of which everything of it is a descendant."""

    pid: int
    root: int


@dataclass
class Launcher:
    """Starts commands of ensign from a process that has its libraries already."""

    user: int | None = None
    group: Path | None = field(default_factory=new_group)
    _process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        if self.group is not None:
            for folder, _, _ in os.walk(self.group, topdown=False):
                with suppress(OSError):
                    Path(folder).rmdir()

    def run(
        self,
        folder: Path,
        argv: Sequence[str],
        *,
        fault: Fault | None = None,
        counted: bool = False,
        meter: dict[str, Any] | None = None,
        meanwhile: Callable[[Running], None] = lambda _: None,
        **env: str,
    ) -> Done:
        """Carry out one command to its end; `meanwhile` is called when it was started."""
        logs = folder.parent / f"{folder.name}.said"
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir()
        if self.user is not None:
            os.chown(logs, self.user, self.user)
        call = {
            "argv": list(argv), "folder": str(folder), "env": environment(folder) | env,
            "out": str(logs / "out"), "err": str(logs / "err"), "log": str(logs / "log"),
            "fault": asdict(fault) if fault else {} if counted else None,
            "meter": meter, "group": None if self.group is None else str(self.group), "user": self.user,
        }  # fmt: skip
        process = self._started()
        began = time.monotonic()
        pid = self._ask(process, call)
        meanwhile(Running(pid, process.pid))
        said = self._answer(process, _DEADLINE_S)
        took_s = time.monotonic() - began
        left = [*remaining(process.pid), *groups_below(self.group)]
        if said is None:
            left = [f"hung: {each}" for each in descendants(process.pid).values()]
            self._stop()
        log = logs / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        return Done(
            None if said is None else int(said["status"]),
            (logs / "out").read_text(errors="replace"),
            (logs / "err").read_text(errors="replace"),
            round(took_s, 2),
            tuple(json.loads(line) for line in lines),
            tuple(left),
        )

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("launcher.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": str(_TESTS)},
                start_new_session=True,
            )
        return self._process

    def _ask(self, process: subprocess.Popen[str], call: dict[str, Any]) -> int:
        assert process.stdin is not None
        process.stdin.write(json.dumps(call) + "\n")
        process.stdin.flush()
        answer = self._answer(process, _DEADLINE_S)
        assert answer is not None, "the launcher does not answer"
        return int(answer["pid"])

    def _answer(self, process: subprocess.Popen[str], within_s: float) -> dict[str, Any] | None:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], within_s)
        if not ready:
            return None
        line = process.stdout.readline()
        assert line, "the launcher ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _stop(self) -> None:
        """Ends the launcher and everything below it."""
        process, self._process = self._process, None
        if process is None:
            return
        for _ in range(100):
            living = descendants(process.pid)
            for pid in living:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not living:
                break
            time.sleep(0.05)
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        process.stdout.close()


def environment(folder: Path) -> dict[str, str]:
    """What ensign needs, all of it in the folder."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "ENSIGN_CACHE": str(folder / "cache"),
        "ENSIGN_RACE_LOCK": str(folder / "race.lock"),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "100",
    }


@contextmanager
def new_place(root: Path, user: int | None = None) -> Iterator[Path]:
    """A folder in which a command finds everything that it may change; gone afterwards."""
    root.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=root))
    place.chmod(0o755)
    folder = place / "here"
    for each in (folder, folder / "home", folder / "tmp", folder / "run"):
        each.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(place)


def give_to(user: int | None, folder: Path) -> None:
    """Makes a user the owner of a whole tree."""
    if user is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)
