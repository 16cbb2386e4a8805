from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from ensign.host.programs import Bounded, run_bounded

BOUNDS = Bounded(deadline_s=60, most_bytes=100_000)


def sh(script: str, bounds: Bounded = BOUNDS, given: bytes = b"") -> tuple[bytes, int | None, str]:
    said = run_bounded(("sh", "-c", script), os.environ, bounds, given)
    return said.output, said.status, said.problem


def test_output_errors_status_and_input() -> None:
    assert sh("echo out; echo err >&2; exit 3") == (b"out\nerr\n", 3, "")
    assert sh("cat", given=b"x" * 90_000) == (b"x" * 90_000, 0, "")
    assert sh("exit 0", given=b"x" * 10_000_000) == (b"", 0, "")
    assert sh("kill -9 $$")[1] == -9


def test_a_flood_is_ended_and_kept_short() -> None:
    output, status, problem = sh("yes")
    assert len(output) == BOUNDS.most_bytes
    assert status is None
    assert "printed more than" in problem


def test_what_ends_never_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    script = f"trap '' TERM; sleep 1000 & echo $! > {tmp_path}/pid; wait"
    _, status, problem = sh(script, Bounded(deadline_s=2, most_bytes=100))
    assert status is None
    assert "took longer than 2 s" in problem
    pid = int((tmp_path / "pid").read_text())
    ends_s = time.monotonic() + 60
    while _runs(pid) and time.monotonic() < ends_s:
        time.sleep(0.05)
    assert not _runs(pid)


def test_who_is_left_with_the_output_open_is_not_waited_for() -> None:
    began_s = time.monotonic()
    assert sh("sleep 1000 & echo started")[:2] == (b"started\n", 0)
    assert time.monotonic() - began_s < 50


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    said = run_bounded((str(tmp_path / "absent"),), {}, BOUNDS)
    assert (said.status, said.ok, said.was_ended) == (None, False, False)
    assert "No such file" in said.problem


def test_the_system_s_refusal_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr("subprocess.Popen", refuse)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        run_bounded((sys.executable,), {}, BOUNDS)


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
