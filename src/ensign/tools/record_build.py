"""`ensign record`: somebody's own build, where it stands, with its compiler calls recorded."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ensign.builders import recorder
from ensign.builders.collector import Collector
from ensign.builders.record_file import (
    RECORD_FILE,
    RecordedRun,
    read_record,
    still_true,
    write_record,
)
from ensign.builders.recorder import Recorded
from ensign.experiment.ports import Ports
from ensign.host.cache import cache_folder
from ensign.host.files import check_writable, file_sha256, remove_tree
from ensign.host.storage import storage_errors
from ensign.host.temporary import temporary_folder
from ensign.meter.client import find_meter
from ensign.model.calls import Call
from ensign.model.errors import CommandFailed, InputError

_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_FROM_TERMINALS = (signal.SIGINT, signal.SIGQUIT)
_BY_SIGNAL = 128  # as shells tell it


@dataclass(frozen=True, slots=True)
class WatchedBuild:
    """Outcome: the command's exit status (128 and the signal's number where one ended it).

    `calls` are those of this build, `kept` is how many of an earlier one still hold.
    """

    exit: int
    calls: tuple[Call, ...]
    kept: int
    file: Path

    @property
    def compiled(self) -> int:
        """Calls that compiled something."""
        drivers = (call for call in self.calls if call.is_compiler or call.is_rust)
        return sum(bool(call.line.sources and not _asks_only(call)) for call in drivers)

    @property
    def built_nothing(self) -> bool:
        """True if Cargo found that all was there: it asked rustc for its version and no more."""
        return bool(self.calls) and all(map(_asks_only, self.calls))

    @property
    def linked(self) -> int:
        """Calls that linked something."""
        # The linker that rustc calls wrote the same file.
        by_rust = {
            output.path for call in self.calls if _rust_linked(call) for output in call.outputs
        }
        drivers = (call for call in self.calls if call.has_linked)
        others = sum(not any(output.path in by_rust for output in call.outputs) for call in drivers)
        return others + sum(map(_rust_linked, self.calls))


def watch_build(command: Sequence[str], output: Path | None, ports: Ports) -> WatchedBuild:
    """Run a command as it is, unconfined, and write down what it called.

    InputError where there is no such program, or the record cannot be written; CommandFailed where
    the record was damaged while the command succeeded.
    """
    output = Path(RECORD_FILE) if output is None else output
    check_writable(output)
    env = ports.env
    path = env.get("PATH", os.defpath)
    programs = recorder.programs_on_path(path)
    meter = find_meter()
    links = _links(meter, programs, cache_folder(env))
    bin_folder = links / "bin"
    with temporary_folder("record") as folder:
        log = folder / recorder.CALLS
        more = recorder.listen_at(folder, links, programs)
        collector = Collector(folder / recorder.SOCKET, log, folder)
        with collector.listening():
            front = {"PATH": f"{bin_folder}:{path}", **_of_cargo(bin_folder, env)}
            status = _run(command, {**env, **more, **front})
        if collector.damage:
            raise CommandFailed(
                f"nothing was recorded, for the record is damaged: {collector.damage}; "
                f"the command ended with status {status}"
            )
        calls = recorder.read_calls(log)
        lines = tuple(log.read_bytes().splitlines(keepends=True))
    kept = _kept(output, calls)
    ended = RecordedRun(command, Path.cwd(), int(ports.clock.unix_s()), status)
    write_record(output.absolute(), ended, (*kept, *lines), len(kept))
    return WatchedBuild(status, calls, len(kept), output)


def _of_cargo(links: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Rustup puts a folder of its own in front of PATH for Cargo, which heeds this."""
    rustc = links / "rustc"
    return {"RUSTC": str(rustc)} if rustc.is_symlink() and "RUSTC" not in env else {}


def _asks_only(call: Call) -> bool:
    """Cargo asks rustc for its names of files, and for its options."""
    return call.is_rust and not call.outputs and call.exit == 0


def _rust_linked(call: Call) -> bool:
    return call.is_rust and call.exit == 0 and call.line.links


def _kept(output: Path, calls: Sequence[Call]) -> tuple[bytes, ...]:
    """Calls of an earlier record that still hold: a build that goes on compiles a part only."""
    with suppress(InputError):
        if output.exists():
            return still_true(read_record(output), calls)
    return ()


def _links(meter: Path, programs: Sequence[Recorded], cache: Path) -> Path:
    """The folder of links under the programs' names; it stays, since build systems keep its paths.

    Where nobody records, they run the programs.
    """
    text = repr((file_sha256(meter), [(program.name, program.program) for program in programs]))
    folder = cache / "recorders" / hashlib.sha256(text.encode()).hexdigest()[:16]
    if folder.exists():
        return folder
    with storage_errors(cache):
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = folder.with_name(f"{folder.name}.{os.getpid()}")
        remove_tree(made)
        nothing = recorder.Keeping(records=False, confined=False)
        place = recorder.Place(made, str(made))
        recorder.set_up(place, meter, programs, recorder.NO_CHANGES, nothing)
        try:
            made.rename(folder)
        except OSError:  # another one was quicker
            remove_tree(made)
            if not folder.exists():
                raise
    return folder


def _run(command: Sequence[str], env: Mapping[str, str]) -> int:
    with _signals_passed_on() as heir:
        try:
            process = subprocess.Popen(command, env=env)
        except FileNotFoundError:
            raise InputError(f"there is no program '{command[0]}'") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"cannot run '{command[0]}': {why}") from None
        heir.go_to(process)
        status = process.wait()
    return status if status >= 0 else _BY_SIGNAL - status


class _Heir:
    """Receiver of signals sent to this process: the command, once it has been started."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    def go_to(self, process: subprocess.Popen[bytes]) -> None:
        """Pass signals on to this process, first those that came while it was started."""
        self._process = process
        while self._early:
            self._send(process, self._early.pop(0))

    def __call__(self, number: int, frame: FrameType | None) -> None:
        del frame
        if number in _FROM_TERMINALS and _at_terminal():
            return
        if self._process is None:
            self._early.append(number)
        else:
            self._send(self._process, number)

    @staticmethod
    def _send(process: subprocess.Popen[bytes], number: int) -> None:
        with suppress(ProcessLookupError):
            process.send_signal(number)


@contextmanager
def _signals_passed_on() -> Iterator[_Heir]:
    """Signals to this process go to the command, which decides what they mean.

    From before its start: else a signal of that moment would end this process and not the build.
    """
    heir = _Heir()
    heeded = (*_PASSED_ON, *_FROM_TERMINALS)
    before = {number: signal.getsignal(number) for number in heeded}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, heir)
    try:
        yield heir
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _at_terminal() -> bool:
    """True if a terminal's keys reach the command, too: it is in the foreground with this one."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
