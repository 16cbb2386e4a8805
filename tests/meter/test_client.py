from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ensign.meter.client import LocalMeter, find_meter
from ensign.model.errors import InputError, Interrupted


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
