"""Variants that fail their check, and builds that would not end by themselves."""

from __future__ import annotations

import signal

from end_to_end.conftest import Ensign, wait_for
from end_to_end.small_study import BATCH, write_study
from end_to_end.test_study import results
from end_to_end.test_study_failures import THREE

COMPILE = "{cc} {cflags} -DWORK=1 -o spin spin.c {ldflags}"


def at_o2(command: str) -> tuple[str, str]:
    """The build command, with `command` before it for one of the variants."""
    return COMPILE, f"case '{{cflags}}' in *-O2*) {command};; esac; {COMPILE}"


def failed_builds(ensign: Ensign) -> dict[str, str]:
    builds = results(ensign)["builds"]
    return {str(one["variant"]): str(one["log_tail"]) for one in builds if one["log_tail"]}


def test_a_faster_variant_that_fails_its_check_is_not_the_winner(ensign: Ensign) -> None:
    write_study(
        ensign.folder,
        "check.commands = [['sh', '-c', '! grep -qe -O2 flags && {artifact} 10']]\n" + BATCH,
        (COMPILE, f"echo '{{cflags}}' >flags; {COMPILE}"),
        ("\nartifact =", '\nruntime_files = ["flags"]\nartifact ='),
    )
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert "check of gcc-12-O2: FAILED" in done.err
    assert "'sh' ended with status 1" in done.err
    assert done.said.startswith("No winner: gcc-12-O2 was measured, but is not to be used.")
    said = results(ensign)
    checks = {one["variant"]: one["check"] for one in said["builds"]}
    assert checks == {"gcc-12-O1": "passed", "gcc-12-O2": "failed"}
    assert [one["variant"] for one in said["suite"]] == ["gcc-12-O2", "twin"]
    assert "check-failed" in {finding["code"] for finding in said["findings"]}


def test_output_must_be_the_baselines(ensign: Ensign) -> None:
    study = "check.same_output = ['short']\n" + BATCH
    third = ('"-O1", "-O2"]', '"-O1", "-O2", "-O3"]')
    write_study(ensign.folder, study, at_o2("sed -i s/done/gone/ spin.c"), third)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    said = "the output of workload short is not the baseline's: line 1: 'gone' instead of 'done'"
    assert said in done.err
    assert said in done.said


def test_a_baseline_that_fails_its_check_ends_the_study(ensign: Ensign) -> None:
    write_study(ensign.folder, 'check.commands = [["sh", "-c", "echo no; exit 9"]]\n' + BATCH)
    done = ensign("run", "study.toml")
    assert done.status == 3
    assert "baseline gcc-12-O1 fails the study's check" in done.complaint
    assert "'sh' ended with status 9" in done.complaint


def test_checks_have_a_network_of_their_own(ensign: Ensign) -> None:
    listen = (
        'import socket, time; s = socket.create_server(("127.0.0.1", 7007)); time.sleep(0.3); '
        'socket.create_connection(("127.0.0.1", 7007))'
    )
    write_study(ensign.folder, f"check.commands = [['python3', '-c', '{listen}']]\n" + BATCH)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert {one["check"] for one in results(ensign)["builds"]} == {"passed"}


def test_a_check_that_never_ends_meets_its_deadline(ensign: Ensign) -> None:
    check = "check.commands = [['sh', '-c', 'grep -qe -O1 flags || sleep 1000']]\n"
    write_study(
        ensign.folder,
        f"{check}check.deadline = '3s'\n" + BATCH,
        (COMPILE, f"echo '{{cflags}}' >flags; {COMPILE}"),
        ("\nartifact =", '\nruntime_files = ["flags"]\nartifact ='),
    )
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert "'sh' timed out ('check.deadline' is 3s)" in done.err


def test_a_build_that_fills_the_disk_is_ended_at_its_limit(ensign: Ensign) -> None:
    # Many small files: none is beyond a limit for files. In a folder below another, and for ever.
    fill = "mkdir -p a/b; i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero >a/b/$i; done"
    write_study(
        ensign.folder, BATCH, THREE, at_o2(fill), ("\nartifact =", '\ndisk = "40MB"\nartifact =')
    )
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    [(variant, tail)] = failed_builds(ensign).items()
    assert variant == "gcc-12-O2"
    assert tail.endswith("'sh' wrote more than it may, and was stopped ('build.disk' is 38.1 MiB)")
    assert "build-failed" in {finding["code"] for finding in results(ensign)["findings"]}
    assert list((ensign.folder / "cache" / "temporary").iterdir()) == []


def test_one_huge_file_is_the_same(ensign: Ensign) -> None:
    fill = "head -c 1000000000 /dev/zero >huge || exit 1"
    write_study(
        ensign.folder, BATCH, THREE, at_o2(fill), ("\nartifact =", '\ndisk = "40MB"\nartifact =')
    )
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert "'build.disk' is 38.1 MiB" in failed_builds(ensign)["gcc-12-O2"]


def test_background_processes_of_a_build_are_ended_and_named(ensign: Ensign) -> None:
    left = "(setsid sleep 1000 >/dev/null 2>&1 &) ; sleep 1001 &"
    write_study(ensign.folder, BATCH, at_o2(left.rstrip(" &") + " & true"))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    ensign.nothing_left()
    for _ in range(2):  # the second time from the cache
        [finding] = [one for one in results(ensign)["findings"] if one["code"] == "left-running"]
        assert finding["subject"] == "gcc-12-O2"
        assert "left sleep running, which was stopped" in finding["text"]
        assert ensign("run", "study.toml").status == 0


def test_an_interrupted_check_leaves_nothing_and_the_run_goes_on(ensign: Ensign) -> None:
    wait = f"test -e {ensign.folder}/go || {ensign.mark} exec sleep 1000"
    write_study(ensign.folder, f'check.commands = [["sh", "-c", "{wait}"]]\n' + BATCH)
    process = ensign.start("run", "study.toml")
    wait_for(lambda: "sleep 1000" in ensign.processes().values(), "no check", process)
    process.send_signal(signal.SIGINT)
    done = ensign.end(process)
    assert done.status == 4
    assert "interrupted" in done.complaint
    ensign.nothing_left()
    (ensign.folder / "go").touch()
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    assert "gcc-12-O2: already there" in done.err
