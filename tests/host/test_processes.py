from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path

import pytest

from ensign.host.disk_watch import DiskLimit
from ensign.host.processes import ProcessLimits, ProcessRequest, read_tail
from ensign.meter.client import Json, Verb
from ensign.meter.processes import MeterProcesses
from ensign.model.errors import CommandFailed, Interrupted
from fakes import FakeMeter

OUTCOME: Json = {
    "type": "outcome", "role": "command", "exit": 0, "signal": None, "reason": "exited",
    "user_ns": 5, "system_ns": 6, "active_wall_ns": 7, "peak_memory_bytes": 8,
    "stdout_tail": "out\n", "stderr_tail": "err\n", "unknown": 1,
}  # fmt: skip


def test_a_request_reaches_the_meter_with_nothing_inherited(tmp_path: Path) -> None:
    meter = FakeMeter([[{"type": "start"}, OUTCOME, {"type": "end", "status": "complete"}]])
    log = tmp_path / "log"
    log.write_text("from the log\n")
    outcome = MeterProcesses(meter, tmp_path).run(
        ProcessRequest(
            ("make", "-j1"), {"LC_ALL": "C"}, tmp_path, log, 10**9, ProcessLimits(file_bytes=4)
        )
    )
    verb, request = meter.requests[0]
    assert verb == "exec"
    assert request["process"] == {
        "argv": ["make", "-j1"], "env": {"LC_ALL": "C"}, "clear_env": True, "cwd": str(tmp_path),
        "stdin": None, "stdout": f"{log}.part", "stderr": f"{log}.part",
        "deadline_ns": 10**9, "limits": {"file_bytes": 4}, "cpus": None, "ignore_failure": False,
        "output": "pipe", "digest": False,
    }  # fmt: skip
    assert outcome.ok
    assert (outcome.user_ns, outcome.system_ns, outcome.wall_ns) == (5, 6, 7)
    assert outcome.tail == "from the log\n"


class WritingMeter(FakeMeter):
    """Writes to the file that it is told, as the meter does: from its start."""

    def run(self, verb: Verb, request: Json) -> Generator[Json]:
        process = request["process"]
        assert isinstance(process, dict)
        Path(process["stdout"]).write_text("\x1b[34mCC\x1b[0m main.o\n")
        yield from super().run(verb, request)


def test_logs_of_commands_follow_each_other(tmp_path: Path) -> None:
    processes = MeterProcesses(WritingMeter([[OUTCOME], [OUTCOME]]))
    log = tmp_path / "log"
    log.write_text("$ make\n")
    processes.run(ProcessRequest(("make",), log=log))
    outcome = processes.run(ProcessRequest(("make",), log=log))
    assert outcome.tail == "$ make\nCC main.o\nCC main.o\n"
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_deadline_is_not_a_success_though_the_status_was_0() -> None:
    meter = FakeMeter([[{**OUTCOME, "reason": "deadline"}]])
    outcome = MeterProcesses(meter).run(ProcessRequest(("sleep",)))
    assert not outcome.ok
    assert outcome.describe() == "timed out"
    assert outcome.tail == "out\nerr\n"


def test_a_program_that_is_not_there_is_an_outcome() -> None:
    meter = FakeMeter([[{"type": "error", "code": "not-found", "text": "no gcc-99"}]])
    outcome = MeterProcesses(meter).run(ProcessRequest(("gcc-99",)))
    assert outcome.reason == "not-found"
    assert outcome.tail == "no gcc-99"


def test_an_answer_without_outcome_is_the_meters_fault() -> None:
    meter = FakeMeter([[{"type": "error", "code": "system", "text": "no more cgroups"}]])
    with pytest.raises(CommandFailed, match="'make': no more cgroups"):
        MeterProcesses(meter).run(ProcessRequest(("make",)))


def test_after_an_interrupt_nothing_more_starts() -> None:
    meter = FakeMeter([[OUTCOME]])
    processes = MeterProcesses(meter)
    processes.interrupt()
    with pytest.raises(Interrupted):
        processes.run(ProcessRequest(("make",)))
    assert meter.interrupted
    assert meter.requests == []


def test_the_tail_of_a_log_starts_with_a_whole_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    assert read_tail(log, 20) == "line 98\nline 99\n"
    assert read_tail(tmp_path / "none") == ""


def test_what_a_command_left_running_is_named_once_and_without_numbers() -> None:
    def warning(code: str, *ended: str) -> Json:
        return {"type": "warning", "code": code, "text": "said", "ended": list(ended)}

    meter = FakeMeter(
        [
            [
                warning("left-running", "sleep", "my tool"),
                warning("left-running", "sleep"),
                warning("escape", "daemon"),
                {"type": "warning", "code": "escape", "text": "it was found again"},
                OUTCOME,
            ]
        ]
    )
    outcome = MeterProcesses(meter).run(ProcessRequest(("make",)))
    assert outcome.left_running == ("sleep", "my tool", "daemon")
    assert outcome.ok


class FillingMeter(FakeMeter):
    """Writes until it is told to end that request, as a command does that fills the disk."""

    def run(self, verb: Verb, request: Json) -> Generator[Json]:
        self.requests.append((verb, request))
        process = request["process"]
        assert isinstance(process, dict)
        folder = Path(process["cwd"])
        give_up = time.monotonic() + 120
        while request not in self.ended and time.monotonic() < give_up:
            with (folder / "file").open("ab") as file:
                file.write(b"x" * 10_000)
            time.sleep(0.001)
        yield {"type": "end", "status": "interrupted"}


def test_a_command_that_writes_too_much_is_ended_by_itself(tmp_path: Path) -> None:
    meter = FillingMeter([])
    disk = DiskLimit((tmp_path,), 10**6, 0)
    outcome = MeterProcesses(meter).run(ProcessRequest(("dd",), cwd=tmp_path, disk=disk))
    assert outcome.reason == "disk"
    assert not outcome.ok
    assert outcome.describe() == "wrote more than it may, and was stopped"
    assert meter.ended == [meter.requests[0][1]]
    assert not meter.interrupted


def test_standard_output_may_be_kept_out_of_the_log(tmp_path: Path) -> None:
    meter = FakeMeter([[OUTCOME]])
    request = ProcessRequest(
        ("prog",), log=tmp_path / "log", stdin=tmp_path / "in", stdout=tmp_path / "out"
    )
    MeterProcesses(meter).run(request)
    process = meter.requests[0][1]["process"]
    assert isinstance(process, dict)
    assert process["stdin"] == str(tmp_path / "in")
    assert process["stdout"] == str(tmp_path / "out")
    assert process["stderr"] == str(tmp_path / "log.part")
