"""What goes wrong while `ensign compare` races: nothing is lost, nothing goes on running."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest

from end_to_end.conftest import SOON, Done, Ensign, Programs, wait_for

SPIN = "3000000"
# Whole executions: each takes one run per variant, so that runs tell how many executions there
# were.
UNTIL_STOPPED = ("--budget", "60s", "--precision", "0.0001%", "--mode", "alternating")


def raced(ensign: Ensign, done: Done) -> int:
    """Trials in the export."""
    path = ensign.folder / "out.json"
    assert path.exists(), done.err
    return len(json.loads(path.read_text())["trials"])


def program_that_counts(ensign: Ensign, programs: Programs, then: str) -> str:
    """A script that spends time and leaves a line in `count`; the 60th run and later do `then`."""
    path = ensign.folder / "program.sh"
    path.write_text(
        f"#!/bin/sh\necho run >> {ensign.folder}/count\n"
        f"test $(wc -l < {ensign.folder}/count) -ge 60 && {{ {then}; }}\n"
        f"exec {programs.cheap} {SPIN}\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def runs(ensign: Ensign) -> int:
    count = ensign.folder / "count"
    return count.read_text().count("\n") if count.exists() else 0


def test_a_program_that_fails_later_costs_one_execution(ensign: Ensign, programs: Programs) -> None:
    program = program_that_counts(ensign, programs, "echo no more luck >&2; exit 9")
    done = ensign(
        "compare", f"{programs.cheap} {SPIN}", program, "--name", "old", "--name", "new",
        "--budget", "60s", "--mode", "alternating", "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 3
    assert "new" in done.complaint
    assert "status 9" in done.complaint
    assert "no more luck" in done.complaint
    assert raced(ensign, done) >= 3
    said = json.loads((ensign.folder / "out.json").read_text())
    assert said["experiment"]["stopped"] == "failed"
    assert said["comparisons"] == []
    (failed,) = said["failed"]
    assert (failed["variant"], failed["exit"], failed["signal"]) == ("new", 9, None)
    assert "Nothing was compared" in done.out
    assert "no more luck" in done.out


def test_a_program_that_never_ends_meets_its_deadline(ensign: Ensign, programs: Programs) -> None:
    program = program_that_counts(ensign, programs, "exec sleep 1000")
    done = ensign(
        "compare", f"{programs.cheap} {SPIN}", program, "--budget", "60s",
        "--deadline", "2s", "--mode", "alternating", "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 3
    assert "deadline" in done.complaint
    assert raced(ensign, done) >= 3


def test_the_budget_bounds_the_first_run(ensign: Ensign, programs: Programs) -> None:
    done = ensign("compare", programs.cheap, "sleep 1000", "--budget", "1s")
    assert done.status == 2
    assert "--budget 1 s is too small: 'sleep 1000' alone takes more than" in done.complaint
    assert "--deadline, if it hangs" in done.complaint


@pytest.mark.parametrize(
    ("server", "load", "said"),
    [
        ("crash 10", "", ("out of luck", "status 7")),
        ("deaf", "", ("not ready",)),
        ("hang 10", "", ("deadline",)),
        ("", "fail", ("load: no such thing", "status 5")),
        ("", "hang", ("deadline",)),
    ],
)
def test_faults_of_servers_and_loads(
    ensign: Ensign, programs: Programs, server: str, load: str, said: tuple[str, ...]
) -> None:
    done = ensign(
        "compare", f"{programs.server} {{port}}", f"{programs.server} {{port}} {server}",
        "--load", f"{programs.load} {{port}} 20 {load}", "--deadline", "1500ms", "--budget", "20s",
    )  # fmt: skip
    assert done.status == 3
    for words in said:
        assert words in done.complaint


def test_a_load_that_forks_away_is_ended(ensign: Ensign, programs: Programs) -> None:
    done = ensign(
        "compare", f"{programs.server} {{port}}", f"{programs.server} {{port}}",
        "--load", f"{programs.load} {{port}} 20 fork", "--race-same", *SOON,
        "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    codes = {
        finding["code"]
        for finding in json.loads((ensign.folder / "out.json").read_text())["findings"]
    }
    assert codes & {"left-running", "escape"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_save_what_was_measured(
    ensign: Ensign, programs: Programs, number: signal.Signals
) -> None:
    program = program_that_counts(ensign, programs, ":")
    process = ensign.start(
        "compare", program, program, "--race-same", *UNTIL_STOPPED,
        "--export-json", "out.json", "--cleanup", "touch cleaned",
    )  # fmt: skip
    wait_for(lambda: runs(ensign) > 60, "the race never got going", process)
    process.send_signal(number)
    done = ensign.end(process)
    assert done.status == 4, done.err
    assert "interrupted" in done.said
    assert raced(ensign, done) > 0
    assert (ensign.folder / "cleaned").exists()


def test_ctrl_c_before_anything_was_measured(ensign: Ensign, programs: Programs) -> None:
    process = ensign.start("compare", programs.cheap, "sleep 1000", "--cleanup", "touch cleaned")
    wait_for(
        lambda: "sleep 1000" in ensign.processes().values(), "the first run never started", process
    )
    process.send_signal(signal.SIGINT)
    done = ensign.end(process)
    assert done.status == 4
    assert "before anything was measured" in done.complaint
    assert (ensign.folder / "cleaned").exists()


def test_ctrl_c_twice_ends_the_clean_up_and_saves_all_the_same(
    ensign: Ensign, programs: Programs
) -> None:
    program = program_that_counts(ensign, programs, ":")
    process = ensign.start(
        "compare", program, program, "--race-same", *UNTIL_STOPPED,
        "--export-json", "out.json", "--cleanup", "sleep 1000",
    )  # fmt: skip
    wait_for(lambda: runs(ensign) > 60, "the race never got going", process)
    process.send_signal(signal.SIGINT)
    wait_for(lambda: "sleep 1000" in ensign.processes().values(), "no clean-up", process)
    process.send_signal(signal.SIGINT)
    done = ensign.end(process)
    assert done.status == 4, done.err
    assert raced(ensign, done) > 0


def test_a_hail_of_signals_saves_all_the_same(ensign: Ensign, programs: Programs) -> None:
    program = program_that_counts(ensign, programs, ":")
    process = ensign.start(
        "compare", program, program, "--race-same", *UNTIL_STOPPED,
        "--export-json", "out.json",
    )  # fmt: skip
    wait_for(lambda: runs(ensign) > 60, "the race never got going", process)
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        time.sleep(0.003)
    done = ensign.end(process)
    assert done.status == 4, done.err
    assert "Traceback" not in done.err
    assert raced(ensign, done) > 0


@pytest.mark.parametrize("victim", ["guardian", "worker"])
def test_a_killed_meter_costs_one_execution(
    ensign: Ensign, programs: Programs, victim: str
) -> None:
    program = program_that_counts(ensign, programs, ":")
    process = ensign.start(
        "compare", program, program, "--race-same", *UNTIL_STOPPED,
        "--export-json", "out.json",
    )  # fmt: skip
    wait_for(lambda: runs(ensign) > 60, "the race never got going", process)
    ensign.kill_meter(process, victim)
    done = ensign.end(process)
    assert done.status == 3, done.err
    assert "ensign-meter was killed" in done.complaint
    assert raced(ensign, done) > 0


def test_killing_ensign_leaves_nothing(ensign: Ensign, programs: Programs) -> None:
    program = program_that_counts(ensign, programs, ":")
    process = ensign.start("compare", program, program, "--race-same", "--budget", "60s")
    wait_for(lambda: runs(ensign) > 5, "the race never got going", process)
    process.kill()
    assert ensign.end(process).status == -signal.SIGKILL
    ensign.nothing_left()


def test_killing_everything_is_swept_by_the_next_run(ensign: Ensign, programs: Programs) -> None:
    program = program_that_counts(ensign, programs, ":")
    process = ensign.start("compare", program, program, "--race-same", "--budget", "60s")
    wait_for(lambda: runs(ensign) > 5 and len(ensign.meters(process)) > 1, "no race", process)
    process.send_signal(signal.SIGSTOP)
    meters = ensign.meters(process)
    for pid in reversed(meters):
        os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()
    wait_for(lambda: not Path(f"/proc/{meters[0]}").exists(), "the dead guardian is not reaped")
    done = ensign("compare", programs.cheap, programs.cheap, "--race-same", *SOON)
    assert done.status == 0, done.err
    ensign.end(process)
