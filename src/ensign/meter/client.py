"""The port to `ensign-meter`: a request goes in, records come out.

Both are described in docs/reference/meter-protocol.md.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ensign.host.regular_file import read_json
from ensign.host.search_path import apart_from
from ensign.host.signals import signals_deferred
from ensign.model.errors import CommandFailed, InputError, InternalError, Interrupted

# Not SIGABRT: that is how it ends where no memory is left.
_CRASHES = ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE")
_NOT_LOADED = 127  # by the loader of shared libraries, where it is no static program


def ended_early(status: int, said: str = "") -> CommandFailed | InternalError:
    """The error for an exit status as `subprocess` has it: negative where a signal ended it.

    `said` is what it wrote to standard error.
    """
    name = _name(-status)
    if name in _CRASHES:
        return InternalError(
            f"ensign-meter crashed ({name}); please report it, unless the machine ran out of memory"
        )
    if status < 0:
        return CommandFailed(
            f"ensign-meter was killed by {name}, and everything it ran was ended; if "
            "nobody did that, the machine ran out of memory ('dmesg' tells): run it again"
        )
    if status == _NOT_LOADED:
        return CommandFailed("ensign-meter could not be loaded; what the system refused is above")
    last = f": {said.strip().splitlines()[-1]}" if said.strip() else ""
    return InternalError(f"ensign-meter ended without a message (exit {status}){last}")


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


Json = Mapping[str, object]
Verb = Literal["race", "exec"]

_CHUNK = 4096  # what a pipe takes whole
_MOST_READ = 1 << 16
_LOOK_MS = 1000


class Meter(Protocol):
    """Runs one request; yields its records as they come."""

    def run(self, verb: Verb, request: Json) -> Generator[Json, None, None]:
        """Closing the iterator early ends the run and everything that it started."""
        ...


def find_meter() -> Path:
    """The executable: `$ENSIGN_METER_PROGRAM`, beside this Python, or on PATH.

    `ENSIGN_METER` is another variable: the mark of everything that a meter started. InputError
    where the variable names no program, InternalError where there is none at all.
    """
    named = os.environ.get("ENSIGN_METER_PROGRAM")
    if named and not os.access(named, os.X_OK):
        raise InputError(f"ENSIGN_METER_PROGRAM: {named} is not a program that may be run")
    beside = Path(sys.executable).parent / "ensign-meter"
    on_path = shutil.which("ensign-meter", path=apart_from(os.environ.get("PATH", os.defpath)))
    for path in (named, str(beside), on_path):
        if path and os.access(path, os.X_OK):
            return Path(path)
    raise InternalError("ensign-meter is not installed beside ensign; run 'make setup'")


@dataclass(frozen=True, slots=True)
class Placed:
    """Start of a run: words in front of the meter, its request, and its environment.

    None is the environment of ensign.
    """

    request: Json
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None


class Surroundings(Protocol):
    """In what runs of the meter take place."""

    def placed(self, meter: Path, request: Json) -> AbstractContextManager[Placed]:
        """For one run of this executable; what was made for it goes with the block."""
        ...


class AsItIs:
    """Runs take place where ensign runs."""

    @contextmanager
    def placed(self, meter: Path, request: Json) -> Iterator[Placed]:
        """See `Surroundings.placed`."""
        del meter
        yield Placed(request)


class StoppableMeter(Meter, Protocol):
    """A meter whose runs may be ended from another thread."""

    def interrupt(self, only: Json | None = None) -> None:
        """End all runs under way: their records stop after `end` with status `interrupted`.

        Runs that begin later are Interrupted at once. With `only`, a request given to `run`, end
        the run of that request alone.
        """
        ...


class LocalMeter:
    """Starts the executable in a session of its own, so that Ctrl-C reaches ensign alone.

    The meter ends by itself when its standard input closes, also when ensign is killed.
    """

    def __init__(
        self,
        executable: Path | None = None,
        *,
        end_within_s: float = 10.0,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._executable = executable
        self._end_within_s = end_within_s
        self._surroundings = surroundings or AsItIs()
        self._running: dict[subprocess.Popen[bytes], Json] = {}
        self._lock = threading.Lock()
        self._interrupted = False

    def run(self, verb: Verb, request: Json) -> Generator[Json, None, None]:
        """See `Meter.run`. CommandFailed where it is killed, InternalError where it fails."""
        executable = self._executable or find_meter()
        with self._surroundings.placed(executable, request) as placed:
            process, output = self._start((*placed.argv, str(executable), verb), placed, request)
            try:
                yield from self._records(process, output, confined=bool(placed.argv))
            finally:
                with signals_deferred():
                    with self._lock:
                        self._running.pop(process, None)
                    self._end(process)

    def interrupt(self, only: Json | None = None) -> None:
        """See `StoppableMeter.interrupt`."""
        with self._lock:
            self._interrupted = self._interrupted or only is None
            for process, request in self._running.items():
                if only is None or request is only:
                    _close_input(process)

    def _start(
        self, argv: tuple[str, ...], placed: Placed, asked: Json
    ) -> tuple[subprocess.Popen[bytes], Json]:
        # With the lock: whoever interrupts finds the process, or it is never there.
        with self._lock:
            if self._interrupted:
                raise Interrupted("interrupted")
            with _own_output(placed.request) as (fds, request_with_fd):
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=placed.env,
                    start_new_session=True,
                    pass_fds=fds,
                )
            self._running[process] = asked
        return process, request_with_fd

    def _records(
        self, process: subprocess.Popen[bytes], request: Json, *, confined: bool
    ) -> Iterator[Json]:
        assert process.stdout is not None  # noqa: S101  # it is a pipe
        self._ask(process, json.dumps({**request, "hold": True}).encode() + b"\n")
        ended = False
        for line in self._lines(process):
            record = record_of_line(line)
            ended = ended or record.get("type") == "end"
            yield record
        if not ended:
            status = process.wait()
            if confined:
                # Its programs may end all that is in there, the meter included.
                text = f"the sandbox of the race was ended, or could not be made (exit {status})"
                raise CommandFailed(text)
            raise ended_early(status)

    def _lines(self, process: subprocess.Popen[bytes]) -> Iterator[bytes]:
        """Whole lines of the meter, until it and all that it started have ended.

        What outlives it for long is ended: a sandbox whose maker was killed while it made it waits
        for ever.
        """
        assert process.stdout is not None  # noqa: S101  # it is a pipe
        pipe = process.stdout.fileno()
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        pending = bytearray()
        alone_since_s: float | None = None
        while True:
            if poll.poll(_LOOK_MS):
                data = os.read(pipe, _MOST_READ)
                if not data:
                    break
                pending += data
                if b"\n" in data:
                    *lines, pending = pending.split(b"\n")
                    yield from map(bytes, lines)
            elif alone_since_s is None:
                alone_since_s = time.monotonic() if _has_ended(process) else None
            elif time.monotonic() - alone_since_s > self._end_within_s:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                break

    def _ask(self, process: subprocess.Popen[bytes], text: bytes) -> None:
        """With what is left of the request: who interrupts meanwhile closes the pipe."""
        assert process.stdin is not None  # noqa: S101  # it is a pipe
        written = 0
        while written < len(text):
            with self._lock:
                if process.stdin.closed:
                    raise Interrupted("interrupted")
                try:
                    written += os.write(process.stdin.fileno(), text[written : written + _CHUNK])
                except BrokenPipeError:
                    return  # it ended at once; its records, or their absence, say why

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            _close_input(process)
        try:
            process.wait(self._end_within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def record_of_line(line: bytes) -> Json:
    """One record. InternalError where the meter said something else."""
    try:
        record = read_json(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise InternalError(f"ensign-meter said {line[:80]!r}; run 'make setup'")
    return record


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Without taking notice: its number, and its group's, stay its own."""
    if process.returncode is not None:
        return True
    flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, process.pid, flags) is not None


def _close_input(process: subprocess.Popen[bytes]) -> None:
    """The end for a meter: signals do not come through a sandbox."""
    if process.stdin is not None and not process.stdin.closed:
        with suppress(BrokenPipeError):
            process.stdin.close()


@contextmanager
def _own_output(request: Json) -> Iterator[tuple[tuple[int, ...], Json]]:
    """The request with the number of ensign's own standard output, where programs inherit it."""
    if not _inherits(request):
        yield (), request
        return
    copy = os.dup(sys.stdout.fileno())
    try:
        yield (copy,), {**request, "inherit_fd": copy}
    finally:
        os.close(copy)


def _inherits(said: object) -> bool:
    if isinstance(said, Mapping):
        return said.get("output") == "inherit" or any(map(_inherits, said.values()))
    return isinstance(said, list) and any(map(_inherits, said))
