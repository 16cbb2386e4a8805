from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from ensign.meter.client import LocalMeter, find_meter
from ensign.model.errors import CommandFailed, InputError, Interrupted


def executable(path: Path) -> Path:
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The meter beside this Python."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return executable(tmp_path / "ensign-meter")


def test_the_users_own_meter_comes_first(
    tmp_path: Path, beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = executable(tmp_path / "own-meter")
    monkeypatch.delenv("ENSIGN_METER_PROGRAM", raising=False)
    assert find_meter() == beside
    monkeypatch.setenv("ENSIGN_METER_PROGRAM", str(own))
    assert find_meter() == own


def test_the_mark_of_a_meters_children_names_no_program(
    tmp_path: Path, beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ENSIGN_METER_PROGRAM", raising=False)
    monkeypatch.setenv("ENSIGN_METER", str(executable(tmp_path / "1234-5678")))
    assert find_meter() == beside


def test_a_users_own_meter_that_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENSIGN_METER_PROGRAM", str(tmp_path / "none"))
    with pytest.raises(InputError, match="ENSIGN_METER_PROGRAM"):
        find_meter()


def test_what_begins_after_an_interrupt_never_starts(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = executable(tmp_path / "meter")
    program.write_text(f"#!/bin/sh\ntouch {started}\n")
    meter = LocalMeter(program)
    meter.interrupt()
    with pytest.raises(Interrupted):
        list(meter.run("exec", {}))
    assert not started.exists()


def test_what_outlives_a_killed_meter_is_ended(tmp_path: Path) -> None:
    """A sandbox that is killed while it is made leaves a process that waits for ever."""
    program = executable(tmp_path / "meter")
    program.write_text(
        "#!/bin/sh\n"
        'echo \'{"type": "progress"}\'\n'
        f"sh -c 'echo $$ > {tmp_path}/other; exec sleep 1000' &\n"
        f"while ! test -s {tmp_path}/other; do sleep 0.01; done\n"
        "kill -9 $$\n"
    )
    said = LocalMeter(program, end_within_s=0.5).run("exec", {})
    assert next(said) == {"type": "progress"}
    with pytest.raises(CommandFailed, match="killed"):
        next(said)
    other = int((tmp_path / "other").read_text())
    until = time.monotonic() + 60
    while _runs(other) and time.monotonic() < until:
        time.sleep(0.01)
    assert not _runs(other)


def _runs(pid: int) -> bool:
    try:
        return b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_what_a_killed_meter_still_says_is_heard(tmp_path: Path) -> None:
    program = executable(tmp_path / "meter")
    line = json.dumps({"type": "progress", "text": "x" * 300_000})
    # What was not said to its end is nobody's record.
    (tmp_path / "line").write_text(f"{line}\n{line[:1000]}")
    program.write_text(f"#!/bin/sh\n(sleep 2; cat {tmp_path}/line) &\nkill -9 $$\n")
    said = LocalMeter(program, end_within_s=60).run("exec", {})
    assert next(said) == json.loads(line)
    with pytest.raises(CommandFailed, match="killed"):
        next(said)
