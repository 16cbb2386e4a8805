"""Takes the records of a build's calls from the recorder, outside of the build's reach.

The recorder runs as the build does, so whoever sends a record is looked at: it is the recorder's
own file that runs, before it is told a word that nobody can guess, and after it has sent that word
with the record; and no other program was executed in between.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ensign.builders import recorder
from ensign.builders.build_context import BuildContext
from ensign.builders.sandboxes import Sandbox
from ensign.builders.stage_runs import StageFailedError
from ensign.builders.stages import Stage
from ensign.model.calls import Call
from ensign.model.errors import InputError

_PATIENCE_S = 60.0
_WAKE_UP_S = 0.2
_BACKLOG = 4096
_CHUNK_BYTES = 1 << 16
_HEADER_BYTES = 512
_CREDENTIALS = struct.Struct("3i")
_STACK = 28 - 3  # field 28 of /proc/PID/stat, counted behind the name


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """The most that a build may have recorded."""

    lines: int = 500_000
    line_bytes: int = 64 << 20
    size_bytes: int = 1 << 30
    patience_s: float = _PATIENCE_S


class RecordDamagedError(Exception):
    """A message that is no record of the recorder's; the text says why."""


@dataclass(frozen=True, slots=True)
class _Image:
    """The program that a process runs: its file, and where its stack begins, new with each."""

    file: tuple[int, int]
    stack: str


class Collector:
    """Listens on a socket, and writes what the recorder sends to a log, a line for each call.

    What is wrong is remembered: from then on nothing is taken, so that every further call fails.
    """

    def __init__(
        self, place: Path, log: Path, recorder: Path, limits: RecordLimits = RecordLimits()
    ) -> None:
        """`place` is the socket, `recorder` the folder with `settings.json` and `recorder`."""
        status = (recorder / "recorder").stat()
        self._recorder = (status.st_dev, status.st_ino)
        self._settings = hashlib.sha256((recorder / "settings.json").read_bytes()).hexdigest()
        self._place, self._log, self._limits = place, log, limits
        self._lines = self._bytes = 0
        self._digest = hashlib.sha256()
        self._damage = ""
        self._ended = threading.Event()

    @property
    def damage(self) -> str:
        """Why the log is not what the recorder sent; empty where it is."""
        if self._damage:
            return self._damage
        try:
            with self._log.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").digest()
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        return "" if digest == self._digest.digest() else "something else wrote to it"

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take what is sent, in a thread, until the end."""
        with socket.socket(socket.AF_UNIX) as listener, self._log.open("wb") as log:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            _bind(listener, self._place)
            listener.listen(_BACKLOG)
            listener.settimeout(_WAKE_UP_S)
            thread = threading.Thread(target=self._take_all, args=(listener, log), daemon=True)
            thread.start()
            try:
                yield
            finally:
                self._ended.set()
                thread.join()
                self._place.unlink(missing_ok=True)

    def _take_all(self, listener: socket.socket, log: IO[bytes]) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError as error:  # out of descriptors, say: no call may go on unrecorded
                self._damage = self._damage or f"it cannot be taken any more: {error.strerror}"
                return
            with connection:
                self._answer(connection, log)

    def _answer(self, connection: socket.socket, log: IO[bytes]) -> None:
        answer = self._damage
        if not answer:
            try:
                self._keep(self._received(connection), log)
            except RecordDamagedError as error:
                answer = self._damage = str(error)
            except TimeoutError:
                answer = self._damage = "a call was never wholly told"
            except MemoryError:
                answer = self._damage = "there is no memory left to take a call"
            except OSError as error:
                # Whoever was there is gone: of a call that is killed nothing is known, or all.
                answer = "" if isinstance(error, ConnectionError) else str(error)
                self._damage = answer
        with suppress(OSError):
            connection.sendall(f"{answer or 'ok'}\n".encode())

    def _received(self, connection: socket.socket) -> bytes:
        """One record of the recorder's. RecordDamagedError, TimeoutError."""
        connection.settimeout(self._limits.patience_s)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        peer = _CREDENTIALS.unpack(raw)[0]
        before = self._image_of(peer)
        word = secrets.token_hex(16)
        connection.sendall(f"{word}\n".encode())
        stream = _Stream(connection, peer)
        header = stream.line()
        match header.split(" "):
            case ["ensign-record", "1", said, settings, length] if said == word:
                size_bytes = int(length) if length.isdecimal() else 0
            case _:
                raise RecordDamagedError("what was sent is no record")
        if settings != self._settings:
            raise RecordDamagedError("the recorder was given other settings")
        if not 0 < size_bytes <= self._limits.line_bytes:
            raise RecordDamagedError(f"a call takes {size_bytes} bytes to tell")
        record = stream.exactly(size_bytes)
        after = self._image_of(peer)
        if (after is None) != (before is None):
            raise RecordDamagedError(f"process {peer} hides, at times: permission denied")
        if after != before:
            raise RecordDamagedError(f"process {peer} became another program while it told a call")
        return record

    def _image_of(self, process: int) -> _Image | None:
        """Program of a process, which is the recorder; None where that cannot be seen."""
        try:
            status = Path(f"/proc/{process}/exe").stat()
            text = Path(f"/proc/{process}/stat").read_text()
        except PermissionError:
            return None
        except (FileNotFoundError, ProcessLookupError):
            raise ConnectionError from None  # it is gone
        image = _Image((status.st_dev, status.st_ino), text.rpartition(")")[2].split()[_STACK])
        if image.file != self._recorder:
            name = text.partition("(")[2].rpartition(")")[0]
            raise RecordDamagedError(f"'{name}', which is not the recorder, told a call")
        return image

    def _keep(self, record: bytes, log: IO[bytes]) -> None:
        if not _is_line(record):
            raise RecordDamagedError("a record is no line of JSON")
        self._lines, self._bytes = self._lines + 1, self._bytes + len(record)
        if self._lines > self._limits.lines or self._bytes > self._limits.size_bytes:
            raise RecordDamagedError(
                f"more than {self._limits.lines:,} calls, or {self._limits.size_bytes:,} bytes"
            )
        log.write(record)
        log.flush()
        self._digest.update(record)


class _Stream:
    """Bytes of one process; those of another that has the same connection are refused."""

    def __init__(self, connection: socket.socket, process: int) -> None:
        self._connection = connection
        self._process = process
        self._data = bytearray()

    def line(self) -> str:
        """Up to the end of a line. RecordDamagedError where it is long."""
        while b"\n" not in self._data:
            if len(self._data) > _HEADER_BYTES:
                raise RecordDamagedError("what was sent is no record")
            self._more()
        line, _, self._data = self._data.partition(b"\n")
        return line.decode("ascii", "replace")

    def exactly(self, size_bytes: int) -> bytes:
        """So many bytes."""
        while len(self._data) < size_bytes:
            self._more()
        if len(self._data) > size_bytes:
            raise RecordDamagedError("more was sent than a record")
        return bytes(self._data)

    def _more(self) -> None:
        space = socket.CMSG_SPACE(_CREDENTIALS.size)
        data, messages, _, _ = self._connection.recvmsg(_CHUNK_BYTES, space)
        if not data:
            raise ConnectionError
        for level, kind, content in messages:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                sender = _CREDENTIALS.unpack(content[: _CREDENTIALS.size])[0]
                if sender != self._process:
                    raise RecordDamagedError("another process than the recorder told a call")
        self._data += data


def _is_line(record: bytes) -> bool:
    if not record.endswith(b"\n") or record.count(b"\n") != 1:
        return False
    try:
        return isinstance(json.loads(record), dict)
    except (ValueError, RecursionError):
        return False


def _bind(listener: socket.socket, place: Path) -> None:
    """A socket's address is short, its path may be long: it is named by the folder it lies in."""
    folder = os.open(place.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener.bind(f"/proc/self/fd/{folder}/{place.name}")
    finally:
        os.close(folder)
    place.chmod(0o666)  # builds may run as another user


class CallLog:
    """The calls so far. Without a collector there are none."""

    def __init__(self, path: Path, collector: Collector | None) -> None:
        self.path = path
        self._collector = collector

    def calls(self, skip: int = 0) -> tuple[Call, ...]:
        """Those after the first `skip`. StageFailedError where the build forged or damaged one."""
        self.require_sound()
        try:
            return recorder.read_calls(self.path, skip)
        except InputError:
            raise _damaged("a call lacks what every call has") from None

    def require_sound(self) -> None:
        """StageFailedError where what was recorded is not what the recorder sent."""
        damage = "" if self._collector is None else self._collector.damage
        if damage:
            raise _damaged(damage)


def _damaged(why: str) -> StageFailedError:
    return StageFailedError(f"the build's record is damaged: {why}")


@contextmanager
def recorded(stage: Stage, sandbox: Sandbox, build_context: BuildContext) -> Iterator[CallLog]:
    """Record what the commands of a stage call, if there is a recorder.

    A stage that failed because its record was damaged fails for that reason.
    """
    if build_context.meter is None:
        yield CallLog(sandbox.cwd / recorder.CALLS, None)
        return
    set_up_recorder(stage, sandbox, build_context, records=True)
    with build_context.cache.temporary() as folder:
        log = folder / recorder.CALLS
        collector = Collector(sandbox.recorder / recorder.SOCKET, log, sandbox.recorder)
        call_log = CallLog(log, collector)
        with collector.listening():
            try:
                yield call_log
            except StageFailedError as failed:
                failed.calls = call_log.calls()
                raise
            call_log.require_sound()


def set_up_recorder(
    stage: Stage, sandbox: Sandbox, build_context: BuildContext, *, records: bool = False
) -> None:
    """Put the recorder where the commands of a stage find it, if there is one.

    Unless it `records`, it only runs what the stage's programs are.
    """
    if build_context.meter is None:
        return
    place = recorder.Place(sandbox.recorder, build_context.sandboxes.recorder_path)
    keeping = recorder.Keeping(records=records, confined=bool(sandbox.argv))
    recorder.set_up(place, build_context.meter, stage.recorded, stage.changes, keeping)
