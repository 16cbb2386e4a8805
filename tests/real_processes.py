"""Runs commands plainly, for tests that need real compilers but not the meter's guardian."""

from __future__ import annotations

import subprocess
import threading
from typing import IO

from ensign.host.processes import Outcome, ProcessRequest, read_tail
from ensign.model.errors import Interrupted


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
            done = subprocess.run(
                request.argv,
                env=dict(request.env),
                cwd=request.cwd,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=out,
                stderr=err,
                timeout=deadline_s,
                check=False,
            )
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
        said = (done.stdout or b"").decode(errors="replace")[-2000:]
        tail = said + (done.stderr or b"").decode(errors="replace")[-2000:]
        if request.log is not None:
            tail = read_tail(request.log)
        if done.returncode < 0:
            return Outcome(None, -done.returncode, "exited", wall_ns=1, tail=tail)
        return Outcome(done.returncode, None, "exited", wall_ns=1, tail=tail, stdout=said)


class WithoutNamespaces(PlainProcesses):
    def run(self, request: ProcessRequest) -> Outcome:
        if request.argv[0].endswith("bwrap"):
            return Outcome(1, None, "exited", tail="bwrap: No permissions to create namespace\n")
        return super().run(request)
