"""Two races on one machine: the second waits, or says that it shared."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from end_to_end.conftest import SOON, Ensign, Programs, wait_for
from end_to_end.small_study import write_study


def start_long(ensign: Ensign, programs: Programs, lock: Path) -> None:
    process = ensign.start(
        "compare", f"{programs.cheap} 1000000", f"{programs.cheap} 2000000", "--budget", "60s",
        ENSIGN_RACE_LOCK=str(lock),
    )  # fmt: skip
    wait_for(lambda: lock.exists() and str(process.pid) in lock.read_text(), "no lock was taken")


def stop_first(ensign: Ensign) -> None:
    first = ensign.started[0]
    first.send_signal(signal.SIGINT)
    assert ensign.end(first).status == 4


def test_a_second_comparison_waits_outside_its_budget(ensign: Ensign, programs: Programs) -> None:
    lock = ensign.folder / "race.lock"
    start_long(ensign, programs, lock)
    second = ensign.start(
        "compare", f"{programs.cheap} 1000000", f"{programs.cheap} 2000000", *SOON,
        "--export-json", "out.json", ENSIGN_RACE_LOCK=str(lock),
    )  # fmt: skip
    assert second.stderr is not None
    said = second.stderr.readline()
    assert f"waiting for process {ensign.started[0].pid} (" in said
    assert "compare" in said
    stop_first(ensign)
    assert ensign.end(second).status == 0
    codes = {
        each["code"] for each in json.loads((ensign.folder / "out.json").read_text())["findings"]
    }
    assert "shared-machine" not in codes


def test_a_waiting_one_is_ended_by_ctrl_c(ensign: Ensign, programs: Programs) -> None:
    lock = ensign.folder / "race.lock"
    start_long(ensign, programs, lock)
    second = ensign.start(
        "compare", f"{programs.cheap} 1", f"{programs.cheap} 2", ENSIGN_RACE_LOCK=str(lock)
    )
    assert second.stderr is not None
    assert "waiting for process" in second.stderr.readline()
    second.send_signal(signal.SIGINT)
    assert ensign.end(second).status == 4
    stop_first(ensign)


def test_who_shares_says_so_and_a_study_waits_too(ensign: Ensign, programs: Programs) -> None:
    lock = ensign.folder / "race.lock"
    start_long(ensign, programs, lock)
    done = ensign(
        "compare", f"{programs.cheap} 1000000", f"{programs.cheap} 2000000", *SOON,
        "--share-machine", "--export-json", "out.json", ENSIGN_RACE_LOCK=str(lock),
    )  # fmt: skip
    assert done.status == 0, done.err
    found = json.loads((ensign.folder / "out.json").read_text())["findings"]
    assert any(each["code"] == "shared-machine" for each in found)
    write_study(ensign.folder)
    study = ensign.start("run", "study.toml", ENSIGN_RACE_LOCK=str(lock))
    assert study.stderr is not None
    assert any("waiting for process" in line for line in study.stderr)
    study.send_signal(signal.SIGINT)
    assert ensign.end(study).status == 4
    stop_first(ensign)
