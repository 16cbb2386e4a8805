"""What goes wrong during a study: at most the trial under way is lost, and a run goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from end_to_end.conftest import Ensign, wait_for
from end_to_end.small_study import BATCH, SERVER, write_study
from end_to_end.test_study import results, trials

SLOW_BUILD = ("{cc} {cflags} -DWORK", "sleep 1000; {cc} {cflags} -DWORK")


def test_the_baseline_that_fails_to_build_ends_the_study(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH, ("-o spin spin.c", "-o spin nosuchfile.c"))
    done = ensign("run", "study.toml")
    assert done.status == 3
    assert "baseline gcc-12-O1" in done.complaint
    assert "nosuchfile.c: No such file" in done.err
    log = Path(done.complaint.split("log: ")[1])
    assert "nosuchfile.c" in log.read_text()


def test_other_variants_may_fail_to_build(ensign: Ensign) -> None:
    case = "case '{cflags}' in *-O2*) echo will not >&2; exit 4;; *-O3*) sleep 1000;; esac; {cc}"
    write_study(
        ensign.folder,
        BATCH,
        ("{cc} {cflags} -DWORK", f"{case} {{cflags}} -DWORK"),
        ('"-O1", "-O2"]', '"-O1", "-O2", "-O3", "-Os"]'),
        ('deadline = "20s"', 'deadline = "5s"'),
    )
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    said = results(ensign)
    builds = {str(build["variant"]): build for build in said["builds"]}
    assert builds["gcc-12-O2"]["status"] == builds["gcc-12-O3"]["status"] == "failed"
    assert "will not" in str(builds["gcc-12-O2"]["log_tail"])
    assert "timed out" in str(builds["gcc-12-O3"]["log_tail"])
    assert [entry["variant"] for entry in said["suite"]] == ["gcc-12-Os", "twin"]
    assert "build-failed" in {finding["code"] for finding in said["findings"]}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"{artifact}", "{port}"', '"{artifact}", "{port}", "crash", "20"', "out of luck"),
        # What never ends or is never ready meets any deadline: a short one will do.
        (
            '"{port}"]\nready.deadline = "6s"',
            '"{port}", "deaf"]\nready.deadline = "1s"',
            "not ready",
        ),
        ('"{requests}"]', '"{requests}", "fail"]', "no such thing"),
        ('"{requests}"]\ndeadline = "6s"', '"{requests}", "hang"]\ndeadline = "1s"', "deadline"),
    ],
)
def test_faults_of_servers_and_loads(ensign: Ensign, before: str, after: str, said: str) -> None:
    requests = ('name = "bytes"', 'name = "bytes"\nrequests = 40')
    write_study(ensign.folder, SERVER, (before, after), requests)
    done = ensign("run", "study.toml")
    assert done.status == 3
    assert said in done.complaint
    assert "bytes" in done.complaint  # the workload


def test_a_batch_program_that_never_ends(ensign: Ensign) -> None:
    write_study(
        ensign.folder,
        BATCH,
        ('"{artifact}", "1000000"]', '"{artifact}", "1000000000000"]\ndeadline = "500ms"'),
    )
    done = ensign("run", "study.toml")
    assert done.status == 3
    assert "deadline" in done.complaint
    assert "short" in done.complaint


def test_two_runs_of_a_study_at_once(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH, SLOW_BUILD)
    first = ensign.start("run", "study.toml")
    wait_for(lambda: "sleep 1000" in ensign.processes().values(), "no build", first)
    second = ensign("run", "study.toml")
    assert second.status == 2
    assert "another ensign is running this study" in second.complaint
    first.send_signal(signal.SIGINT)
    done = ensign.end(first)
    assert done.status == 4
    assert "interrupted" in done.complaint


def test_an_interrupted_build_leaves_nothing(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH, SLOW_BUILD)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
        process = ensign.start("run", "study.toml")
        wait_for(lambda: "sleep 1000" in ensign.processes().values(), "no build", process)
        process.send_signal(number)
        done = ensign.end(process)
        assert done.status == (-number if number == signal.SIGKILL else 4), number
        ensign.nothing_left()
    write_study(ensign.folder, BATCH)
    assert ensign("plan", "study.toml").status == 0
    assert list((ensign.folder / "cache" / "temporary").iterdir()) == []


@pytest.mark.parametrize("victim", ["guardian", "worker"])
def test_a_meter_killed_during_a_build(ensign: Ensign, victim: str) -> None:
    write_study(ensign.folder, BATCH, SLOW_BUILD, ('"-O1", "-O2"]', '"-O1"]'))
    process = ensign.start("run", "study.toml")
    wait_for(lambda: "sleep 1000" in ensign.processes().values(), "no build", process)
    ensign.kill_meter(process, victim)
    done = ensign.end(process)
    assert done.status == 3, done.err
    assert "ensign-meter was killed" in done.complaint


def test_a_race_goes_on_where_it_was_stopped(ensign: Ensign) -> None:
    """Stopped in every way in turn: no trial that was stored is lost or raced again."""
    write_study(ensign.folder, BATCH, ("rounds = 3", "rounds = 30"), ('"3000000"', '"30000000"'))
    stored: dict[str, int] = {}
    for victim in (
        "SIGINT", "SIGTERM", "SIGHUP", "SIGINT twice", "ensign", "guardian", "worker",
    ):  # fmt: skip
        process = ensign.start("run", "study.toml")
        enough = len(stored) + 3
        wait_for(lambda least=enough: len(trials(ensign.folder)) >= least, "no race", process)  # type: ignore[misc]
        status = _stop(ensign, process, victim)
        done = ensign.end(process)
        assert done.status == status, (victim, done.err)
        assert victim == "ensign" or done.complaint
        # The folder of a killed ensign's sandbox goes with the next run: see the next victim.
        if victim != "ensign":
            ensign.nothing_left()
        now = _times(ensign)
        assert len(now) < 60, "it ended too early for this test"
        assert stored.items() <= now.items(), victim
        stored = now
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    after = _times(ensign)
    assert len(after) == 60
    assert stored.items() <= after.items()
    assert list((ensign.folder / ".ensign").glob("**/*.part")) == []
    assert list((ensign.folder / "cache" / "temporary").iterdir()) == []


def _times(ensign: Ensign) -> dict[str, int]:
    return {path: (ensign.folder / path).stat().st_mtime_ns for path in trials(ensign.folder)}


def _stop(ensign: Ensign, process: subprocess.Popen[str], victim: str) -> int:
    """Ends a run in that way; the exit status that is to come of it."""
    if victim == "ensign":
        process.kill()
        return -signal.SIGKILL
    if victim in ("guardian", "worker"):
        ensign.kill_meter(process, victim)
        return 3
    number = signal.Signals[victim.split(maxsplit=1)[0]]
    process.send_signal(number)
    if "twice" in victim:
        process.send_signal(number)
    return 4


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_disk_loses_nothing(ensign: Ensign) -> None:
    """The store is a small file system that fills up while the race goes on."""
    study = write_study(
        ensign.folder, BATCH, ("rounds = 3", "rounds = 12"), ('"1000000"', '"10000000"')
    )
    store = ensign.folder / ".ensign"
    store.mkdir()
    script = """
        set -e
        mount -t tmpfs -o size=20m tmpfs .ensign
        trials() { find .ensign -name '*.csv.gz' | wc -l; }
        { "$@" run study.toml --workload short > first.out 2>&1 || echo $? > first.status; } &
        while kill -0 $! && [ $(trials) -lt 2 ]; do sleep 0.01; done
        ! cat /dev/zero > .ensign/filler
        wait
        rm .ensign/filler
        trials > first.trials
        find .ensign -name '*.part' > first.parts
        "$@" run study.toml --workload short > second.out 2>&1
        find .ensign -name '*.csv.gz' | wc -l > second.trials
    """
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", *ensign.command],
        cwd=ensign.folder, env=ensign.environment, check=False,
    )  # fmt: skip

    def read(name: str) -> str:
        return (study.parent / name).read_text()

    assert done.returncode == 0
    assert read("first.status") == "3\n"
    assert "the disk is full" in read("first.out")
    assert "Traceback" not in read("first.out")
    assert 0 < int(read("first.trials")) < 12
    assert read("first.parts") == ""
    assert int(read("second.trials")) == 12
