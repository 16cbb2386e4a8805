"""A command that fails is out; what the others show is told all the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from end_to_end.conftest import SOON, Done, Ensign, Programs

SPIN = "2000000"

# Ten pilots, a traced and two sliced executions at most come before the race.
IN_THE_RACE = 14


def script(ensign: Ensign, name: str, programs: Programs, nth: int, then: str) -> str:
    """A program that does `then` after some work from its n-th run on.

    Not in that run alone: the end of a trial may cut it off before it gets there.
    """
    path = ensign.folder / name
    count = ensign.folder / f"{name}.count"
    path.write_text(
        f"#!/bin/sh\necho run >> {count}\n{programs.cheap} {SPIN}\n"
        f"test $(wc -l < {count}) -ge {nth} && {{ {then}; }}\nexit 0\n"
    )
    path.chmod(0o755)
    return str(path)


def said(ensign: Ensign, done: Done) -> Mapping[str, Any]:
    path = ensign.folder / "out.json"
    assert path.exists(), done.err
    found: Mapping[str, Any] = json.loads(path.read_text())
    return found


def compare_three(ensign: Ensign, programs: Programs, bad: str, *more: str) -> Done:
    return ensign(
        "compare", f"{programs.cheap} {SPIN}", bad, f"{programs.dear} {SPIN}",
        "--name", "old", "--name", "bad", "--name", "other", "--budget", "60s", "--max-runs", "30",
        "--export-json", "out.json", "--export-csv", "out.csv", "--export-markdown", "out.md",
        *more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("then", "mode", "end"),
    [
        ("exit 9", "interleaved", (9, None)),
        ("kill -SEGV $$", "interleaved", (None, 11)),
        ("kill -ABRT $$", "alternating", (None, 6)),
        # What a limit of memory ends is killed, or fails to allocate.
        ("kill -KILL $$", "interleaved", (None, 9)),
        ("ulimit -v 1000; exec python3 -c 'x = 1'", "alternating", (127, None)),
    ],
)
def test_one_bad_execution_ends_that_command_alone(
    ensign: Ensign, programs: Programs, then: str, mode: str, end: tuple[int | None, int | None]
) -> None:
    bad = script(ensign, "bad", programs, IN_THE_RACE, then)
    done = compare_three(ensign, programs, bad, "--mode", mode)
    assert done.status == 3
    assert "'bad' failed in execution" in done.complaint
    found = said(ensign, done)
    assert [each["variant"] for each in found["comparisons"]] == ["other"]
    (failed,) = found["failed"]
    if end != (127, None):
        assert (failed["exit"], failed["signal"]) == end
    assert failed["round_index"] >= 1
    variants = [{each["variant"] for each in trial["variants"]} for trial in found["trials"]]
    assert "bad" in variants[0]
    assert "bad" not in variants[-1]
    assert all({"old", "other", "twin"} <= each for each in variants)
    assert len(variants) > failed["round_index"] + 1
    (error,) = [each for each in found["findings"] if each["severity"] == "error"]
    assert (error["code"], error["subject"]) == ("variant-failed", "bad")
    assert "! bad: failed in execution" in done.out
    assert any(f"other {word}" in done.out for word in ("against old", "is", "needs", "takes"))
    for export in ("out.csv", "out.md"):
        assert "failed" in (ensign.folder / export).read_text()


def test_a_hang_in_the_race_ends_that_command_alone(ensign: Ensign, programs: Programs) -> None:
    bad = script(ensign, "bad", programs, IN_THE_RACE, "sleep 1000")
    done = compare_three(ensign, programs, bad, "--deadline", "700ms")
    assert done.status == 3
    assert "deadline" in done.complaint
    assert [each["variant"] for each in said(ensign, done)["comparisons"]] == ["other"]


@pytest.mark.parametrize("bad", ["false", "sh -c 'kill -SEGV $$'", "sleep 1000"])
def test_what_fails_before_the_race_never_takes_part(
    ensign: Ensign, programs: Programs, bad: str
) -> None:
    done = compare_three(ensign, programs, bad, "--deadline", "700ms")
    assert done.status == 3
    assert "'bad' failed before the race" in done.complaint
    found = said(ensign, done)
    assert [each["variant"] for each in found["comparisons"]] == ["other"]
    assert found["failed"][0]["round_index"] is None
    assert all(each["variant"] != "bad" for trial in found["trials"] for each in trial["variants"])


def test_a_server_that_dies_under_load_is_out_and_the_others_race_on(
    ensign: Ensign, programs: Programs
) -> None:
    done = ensign(
        "compare", f"{programs.server} {{port}}", f"{programs.server} {{port}} crash 50",
        f"{programs.dear_server} {{port}}", "--name", "old", "--name", "bad", "--name", "other",
        "--load", f"{programs.load} {{port}} 100", *SOON, "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 3
    assert "out of luck" in done.complaint
    found = said(ensign, done)
    assert [each["variant"] for each in found["comparisons"]] == ["other"]
    assert found["failed"][0]["variant"] == "bad"


def test_the_baseline_ends_all(ensign: Ensign, programs: Programs) -> None:
    # The twin runs the same script, so that either of them ends the race.
    bad = script(ensign, "bad", programs, IN_THE_RACE + 4, "exit 4")
    done = ensign(
        "compare", bad, f"{programs.cheap} {SPIN}", "--name", "old", "--name", "new",
        "--budget", "20s", "--mode", "alternating", "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 3
    assert "status 4" in done.complaint
    found = said(ensign, done)
    assert found["experiment"]["stopped"] == "failed"
    assert found["trials"]


def test_failures_that_are_ignored_are_counted(ensign: Ensign, programs: Programs) -> None:
    failing = script(ensign, "failing", programs, 0, ":")
    text = (ensign.folder / "failing").read_text().replace("exit 0", "exit 3")
    (ensign.folder / "failing").write_text(text)
    crashing = script(ensign, "crashing", programs, 0, ":")
    text = (ensign.folder / "crashing").read_text().replace("exit 0", "kill -SEGV $$")
    (ensign.folder / "crashing").write_text(text)
    done = ensign(
        "compare", f"{programs.cheap} {SPIN}", failing, crashing, "-i", *SOON,
        "--name", "old", "--name", "three", "--name", "segfault", "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    found = said(ensign, done)
    count = found["experiment"]["executions"]
    runs = {each["variant"]: each["failing_runs"] for each in found["variants"]}
    assert runs["old"] == runs["twin"] == []
    assert runs["three"] == [{"exit": 3, "signal": 0, "count": count, "executions": count}]
    assert runs["segfault"] == [{"exit": 0, "signal": 11, "count": count, "executions": count}]
    assert f"! three: {count} of {count} executions exited with status 3" in done.out
    assert f"! segfault: {count} of {count} executions were ended by signal 11" in done.out
    codes = [each["subject"] for each in found["findings"] if each["code"] == "failing-runs"]
    assert codes == ["three", "segfault"]
