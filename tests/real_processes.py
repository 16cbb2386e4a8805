"""Runs commands plainly, for tests that need real compilers but not the meter's guardian."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from typing import IO

from ensign.host.processes import Outcome, ProcessRequest, read_tail
from ensign.model.errors import Interrupted
from faults.surroundings import descendants


class PlainProcesses:
    def __init__(self) -> None:
        self.requests: list[ProcessRequest] = []
        self._stopped = threading.Event()
        self._lock = threading.Lock()

    def run(self, request: ProcessRequest) -> Outcome:
        if self._stopped.is_set():
            raise Interrupted("interrupted")
        with self._lock:
            self.requests.append(request)
        if request.log is None:
            return self._finish(request, subprocess.PIPE)
        with request.log.open("ab") as log:
            return self._finish(request, log)

    def interrupt(self) -> None:
        self._stopped.set()

    def _finish(self, request: ProcessRequest, out: int | IO[bytes]) -> Outcome:
        deadline_s = None if request.deadline_ns is None else request.deadline_ns / 1e9
        err: int | IO[bytes] = subprocess.PIPE if request.log is None else subprocess.STDOUT
        stdin = None if request.stdin is None else request.stdin.open("rb")
        stdout = None if request.stdout is None else request.stdout.open("wb")
        if stdout is not None:
            err, out = (err if request.log is None else out), stdout
        try:
            process = subprocess.Popen(
                request.argv,
                env=dict(request.env),
                cwd=request.cwd,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=out,
                stderr=err,
            )
            printed, complained = _awaited(process, deadline_s)
        except FileNotFoundError as error:
            return Outcome(None, None, "not-found", tail=str(error))
        except subprocess.TimeoutExpired:
            return Outcome(None, 9, "deadline")
        finally:
            for file in (stdin, stdout):
                if file is not None:
                    file.close()
        if self._stopped.is_set():
            raise Interrupted("interrupted")
        said = printed.decode(errors="replace")[-2000:]
        tail = said + complained.decode(errors="replace")[-2000:]
        if request.log is not None:
            tail = read_tail(request.log)
        if process.returncode < 0:
            return Outcome(None, -process.returncode, "exited", wall_ns=1, tail=tail)
        return Outcome(process.returncode, None, "exited", wall_ns=1, tail=tail, stdout=said)


def _awaited(process: subprocess.Popen[bytes], deadline_s: float | None) -> tuple[bytes, bytes]:
    """What it printed; at its deadline all below it ends, too: sandboxes would go on alone."""
    with process:
        try:
            out, err = process.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            for pid in (process.pid, *descendants(process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            raise
    return out or b"", err or b""


class WithoutNamespaces(PlainProcesses):
    def run(self, request: ProcessRequest) -> Outcome:
        if request.argv[0].endswith("bwrap"):
            return Outcome(1, None, "exited", tail="bwrap: No permissions to create namespace\n")
        return super().run(request)
