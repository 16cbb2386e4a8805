"""Commands run through `ensign-meter exec`: nothing they start outlives ensign, however it ends."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable
from pathlib import Path

from ensign.host.disk_watch import DiskWatch
from ensign.host.processes import Outcome, ProcessRequest, Reason, read_tail
from ensign.host.signals import signals_deferred
from ensign.meter.client import Json, StoppableMeter
from ensign.meter.records import ended_of
from ensign.meter.requests import ExecRequest, ProcessSpec, exec_json
from ensign.model.errors import CommandFailed, InternalError, Interrupted

_NOT_STARTED = ("not-found", "not-executable")
_REASONS: dict[str, Reason] = {
    "exited": "exited",
    "deadline": "deadline",
    "disk": "disk",
    "memory": "memory",
    "processes": "processes",
}


class MeterProcesses:
    """Runs commands under the meter's guardian."""

    def __init__(self, meter: StoppableMeter, scratch: Path | None = None) -> None:
        self._meter = meter
        self._scratch = scratch
        self._stopped = threading.Event()

    def run(self, request: ProcessRequest) -> Outcome:
        """See `Processes.run`. InternalError where the meter itself fails."""
        if self._stopped.is_set():
            raise Interrupted("interrupted")
        files = (_part(request.log), request.stdout)
        watch = DiskWatch(request.disk, filter(None, files))
        records = self._run(request, watch)
        if self._stopped.is_set():
            raise Interrupted("interrupted")
        if watch.exceeded:
            tail = "" if request.log is None else read_tail(request.log)
            return Outcome(None, None, "disk", tail=tail)
        return _outcome(request, records)

    def interrupt(self) -> None:
        """See `Processes.interrupt`."""
        self._stopped.set()
        self._meter.interrupt()

    def _run(self, request: ProcessRequest, watch: DiskWatch) -> tuple[Json, ...]:
        part = _part(request.log)
        if request.log is None or part is None:
            return self._records(self._as_json(request, None), watch)
        # The meter empties the files it writes; the log holds earlier commands too.
        try:
            return self._records(self._as_json(request, str(part)), watch)
        finally:
            if part.exists():
                with signals_deferred(), part.open("rb") as new, request.log.open("ab") as log:
                    shutil.copyfileobj(new, log)
                part.unlink()

    def _records(self, request: Json, watch: DiskWatch) -> tuple[Json, ...]:
        with watch.calling(lambda: self._meter.interrupt(request)):
            return tuple(self._meter.run("exec", request))

    def _as_json(self, request: ProcessRequest, log: str | None) -> Json:
        process = ProcessSpec(
            argv=request.argv,
            env=tuple(request.env.items()),
            clear_env=True,
            cwd=_text(request.cwd),
            stdin=_text(request.stdin),
            stdout=log if request.stdout is None else str(request.stdout),
            stderr=log,
            deadline_ns=request.deadline_ns,
            limits=request.limits,
        )
        return exec_json(ExecRequest(process, scratch=_text(self._scratch)))


def _part(log: Path | None) -> Path | None:
    return None if log is None else log.with_name(f"{log.name}.part")


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _outcome(request: ProcessRequest, records: Iterable[Json]) -> Outcome:
    ended = ended_of(records)
    error, line = ended.error, ended.outcome
    if error is not None and error.code in _NOT_STARTED:
        return Outcome(None, None, "not-found", tail=error.text)
    if line is None:
        what = "no outcome was reported" if error is None else error.text
        refused = error is not None and error.code != "internal"
        kind = CommandFailed if refused else InternalError
        raise kind(f"ensign-meter could not run '{request.argv[0]}': {what}")
    return Outcome(
        exit=line.exit,
        signal=line.signal,
        reason=_REASONS.get(line.reason, "ended"),
        user_ns=line.user_ns,
        system_ns=line.system_ns,
        wall_ns=line.active_wall_ns,
        peak_memory_bytes=line.peak_memory_bytes,
        tail=line.stdout_tail + line.stderr_tail if request.log is None else read_tail(request.log),
        stdout=line.stdout_tail,
        left_running=ended.left_running,
        limits_met=line.limits_met,
    )
