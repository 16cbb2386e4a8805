"""Short commands that ensign itself runs: bounded in time and in output, with all they start."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ensign.host.os_errors import refusal

_CHUNK_BYTES = 1 << 16
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Bounded:
    """How long a command may take, and how much of what it prints is kept."""

    deadline_s: float
    most_bytes: int


@dataclass(frozen=True, slots=True)
class BoundedAnswer:
    """What a command printed, errors with it, and its status (None: it did not end by itself).

    `problem` says why it could not be run, or was ended; what it printed until then is there.
    """

    output: bytes
    status: int | None
    problem: str = ""
    began: bool = True

    @property
    def was_ended(self) -> bool:
        """Whether it began, and had to be ended."""
        return bool(self.problem) and self.began

    @property
    def ok(self) -> bool:
        """Whether it ended by itself, and well."""
        return self.status == 0 and not self.problem

    @property
    def text(self) -> str:
        """What it printed."""
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
    said = f"{argv[0]} {problem}" if problem else ""
    return BoundedAnswer(bytes(output), None if problem else process.returncode, said)


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
