"""Programs on the search path: which there are, what version they say, whether they work."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import ENOENT
from pathlib import Path
from typing import Protocol

from ensign.host.os_errors import refusal
from ensign.host.search_path import apart_from, not_tried
from ensign.model.quoting import shortened

_CHUNK_BYTES = 1 << 16
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Bounded:
    """Limits of a command: its time, and how much of its output is kept."""

    deadline_s: float
    most_bytes: int


@dataclass(frozen=True, slots=True)
class BoundedAnswer:
    """Output of a command, errors with it, and its status (None: it did not end by itself).

    `problem` says why it could not be run, or was ended; what it printed until then is there.
    """

    output: bytes
    status: int | None
    problem: str = ""
    began: bool = True

    @property
    def was_ended(self) -> bool:
        """True if it began, and had to be ended."""
        return bool(self.problem) and self.began

    @property
    def ok(self) -> bool:
        """True if it ended by itself, and well."""
        return self.status == 0 and not self.problem

    @property
    def text(self) -> str:
        """Output as text."""
        return self.output.decode(errors="replace")


def run_bounded(
    argv: Sequence[str],
    env: Mapping[str, str],
    bounds: Bounded,
    given: bytes = b"",
    *,
    with_errors: bool = True,
) -> BoundedAnswer:
    """Run a command with `given` as its input. All that it started in its session ends with it.

    OSError where the system refuses memory, descriptors or processes for it.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if with_errors else subprocess.DEVNULL,
            env=dict(env),
            start_new_session=True,
        )
    except OSError as error:
        if refusal(error) is not None and not isinstance(error, PermissionError):
            raise
        return BoundedAnswer(b"", None, f"{argv[0]}: {error.strerror}", began=False)
    output = bytearray()
    with process:
        try:
            problem = _exchange(process, bounds, given, output)
        finally:
            # With those that it left behind. It is not waited for yet, so that the number is its.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    text = f"{argv[0]} {problem}" if problem else ""
    return BoundedAnswer(bytes(output), None if problem else process.returncode, text)


def _exchange(
    process: subprocess.Popen[bytes], bounds: Bounded, given: bytes, output: bytearray
) -> str:
    """Why it has to be ended; empty where it has ended by itself."""
    assert process.stdin is not None  # noqa: S101  # both are pipes
    assert process.stdout is not None  # noqa: S101
    ends_s = time.monotonic() + bounds.deadline_s
    left, is_open = memoryview(given), True
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        os.set_blocking(process.stdin.fileno(), False)
        selector.register(process.stdin, selectors.EVENT_WRITE)
        while time.monotonic() < ends_s:
            events = selector.select(_LOOK_S) if is_open else []
            if not events and _has_ended(process):
                return ""
            if not is_open:
                time.sleep(_LOOK_S / 10)
            for key, _ in events:
                if key.fileobj is process.stdin:
                    left = _given(process.stdin.fileno(), left)
                    if not left:
                        selector.unregister(process.stdin)
                        process.stdin.close()
                    continue
                data = os.read(process.stdout.fileno(), _CHUNK_BYTES)
                is_open = bool(data)
                output += data[: bounds.most_bytes - len(output) + 1]
                if len(output) > bounds.most_bytes:
                    del output[bounds.most_bytes :]
                    return f"printed more than {bounds.most_bytes} bytes, and was ended"
    return f"took longer than {bounds.deadline_s:g} s, and was ended"


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    options = os.WEXITED | os.WNOWAIT | os.WNOHANG
    return os.waitid(os.P_PID, process.pid, options) is not None


def _given(descriptor: int, left: memoryview) -> memoryview:
    if not left:
        return left
    try:
        return left[os.write(descriptor, left[:_CHUNK_BYTES]) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:
        return memoryview(b"")  # it does not want the rest


_BOUNDS = Bounded(deadline_s=10.0, most_bytes=16 << 20)
_LONGEST_LINE = 500
_APT_LISTS = Path("/var/lib/apt/lists")


@dataclass(frozen=True, slots=True)
class Answer:
    """Outcome of a short command: whether it succeeded, and its first line that is not empty."""

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
        program = shutil.which(name, path=self._path)
        return None if program is None else Path(program)

    def matching(self, pattern: str) -> tuple[str, ...]:
        """See `Programs.matching`."""
        wanted = re.compile(pattern)
        found = (names_in(folder) for folder in self._path.split(os.pathsep))
        names = {name for folder_names in found for name in folder_names if wanted.fullmatch(name)}
        return tuple(sorted((name for name in names if self.find(name)), key=natural))

    def ask(self, argv: Sequence[str]) -> Answer:
        """See `Programs.ask`."""
        program = self.find(argv[0])
        if program is None:
            return Answer(success=False, line=f"{argv[0]}: {os.strerror(ENOENT)}")
        outcome = run_bounded((str(program), *argv[1:]), self._env(), _BOUNDS)
        first = next((line.strip() for line in outcome.text.splitlines() if line.strip()), "")
        return Answer(success=outcome.ok, line=shortened(outcome.problem or first, _LONGEST_LINE))

    def packages(self) -> frozenset[str]:
        """See `Programs.packages`. Without lists apt knows only what is installed."""
        apt = self.find("apt-cache")
        if apt is None or not any(_APT_LISTS.glob("*Packages*")):
            return frozenset()
        outcome = run_bounded((str(apt), "pkgnames"), self._env(), _BOUNDS)
        return frozenset() if outcome.problem else frozenset(outcome.text.split())

    def _env(self) -> dict[str, str]:
        return {**os.environ, "PATH": self._path, "LC_ALL": "C"}


def names_in(folder: str) -> tuple[str, ...]:
    """Content of a folder of a search path; nothing where there is none that may be read."""
    try:
        return tuple(os.listdir(folder)) if folder else ()  # noqa: PTH208  # names are wanted
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ()


def natural(name: str) -> list[tuple[int, str]]:
    """`gcc-9` before `gcc-12`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
