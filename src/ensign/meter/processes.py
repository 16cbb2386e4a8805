"""Commands run through `ensign-meter exec`: nothing they start outlives ensign, however it ends."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterable
from pathlib import Path

from ensign.host.disk_watch import DiskWatch
from ensign.host.processes import Outcome, ProcessRequest, Reason, read_tail
from ensign.meter.client import Json, StoppableMeter
from ensign.model.errors import InternalError, Interrupted


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
        watch = DiskWatch(request.disk)
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
        if request.log is None:
            return self._records(self._as_json(request, None), watch)
        # The meter empties the files it writes; the log holds earlier commands too.
        part = request.log.with_name(f"{request.log.name}.part")
        try:
            return self._records(self._as_json(request, str(part)), watch)
        finally:
            if part.exists():
                with part.open("rb") as new, request.log.open("ab") as log:
                    shutil.copyfileobj(new, log)
                part.unlink()

    def _records(self, request: Json, watch: DiskWatch) -> tuple[Json, ...]:
        with watch.calling(lambda: self._meter.interrupt(request)):
            return tuple(self._meter.run("exec", request))

    def _as_json(self, request: ProcessRequest, log: str | None) -> Json:
        return {
            "schema": 1,
            "scratch": None if self._scratch is None else str(self._scratch),
            "process": {
                "argv": list(request.argv),
                "env": dict(request.env),
                "clear_env": True,
                "cwd": None if request.cwd is None else str(request.cwd),
                "stdin": None if request.stdin is None else str(request.stdin),
                "stdout": log if request.stdout is None else str(request.stdout),
                "stderr": log,
                "deadline_ns": request.deadline_ns,
                "limits": request.limits.as_json(),
            },
        }


def _outcome(request: ProcessRequest, records: Iterable[Json]) -> Outcome:
    outcome: Json = {}
    error: Json = {}
    left: list[str] = []
    for record in records:
        if record.get("type") == "outcome":
            outcome = record
        elif record.get("type") == "error":
            error = record
        elif record.get("type") == "warning":
            left += _strings(record, "ended")
    if error.get("code") in ("not-found", "not-executable"):
        return Outcome(None, None, "not-found", tail=_text(error, "text"))
    if not outcome:
        what = _text(error, "text") or "no outcome was reported"
        raise InternalError(f"ensign-meter could not run '{request.argv[0]}': {what}")
    reason: Reason = "exited"
    if outcome.get("reason") == "deadline":
        reason = "deadline"
    elif outcome.get("reason") != "exited":
        reason = "ended"
    stdout = _text(outcome, "stdout_tail")
    tail = stdout + _text(outcome, "stderr_tail")
    return Outcome(
        exit=_integer(outcome, "exit"),
        signal=_integer(outcome, "signal"),
        reason=reason,
        user_ns=_integer(outcome, "user_ns") or 0,
        system_ns=_integer(outcome, "system_ns") or 0,
        wall_ns=_integer(outcome, "active_wall_ns") or 0,
        peak_memory_bytes=_integer(outcome, "peak_memory_bytes") or 0,
        tail=tail if request.log is None else read_tail(request.log),
        stdout=stdout,
        left_running=tuple(dict.fromkeys(left)),
    )


def _strings(record: Json, key: str) -> list[str]:
    value = record.get(key)
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _text(record: Json, key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _integer(record: Json, key: str) -> int | None:
    value = record.get(key)
    return value if isinstance(value, int) else None
