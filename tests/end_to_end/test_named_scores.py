"""Programs that say several figures of their own, and what programs must print."""

from __future__ import annotations

import hashlib
import json

import pytest

from end_to_end.conftest import Ensign
from end_to_end.test_study import results

PROGRAM = """\
#include <stdio.h>
#define QUOTED(text) #text
#define TEXT(text) QUOTED(text)

int main(int argc, char **argv)
{
    if (argc > 1) {
        puts(TEXT(SAYS));
        return 0;
    }
    printf("in: %d.0 MB/s\\nout: %s MB/s\\nrun took 3 ms\\n", SPEED, TEXT(OUT));
    return 0;
}
"""

STUDY = """\
name = "scores"
layouts = "natural"

[source]
kind = "path"
path = "source"

[build]
commands = [["sh", "-c", "{cc} -g {cflags} -o tool tool.c"]]
artifact = "tool"

[axes]
compiler = ["gcc-12"]
flags = [
    '-DSPEED=10 -DOUT=7 -DSAYS=right',
    '-DSPEED=20 -DOUT=NaN -DSAYS=right',
    '-DSPEED=30 -DOUT=9 -DSAYS=wrong',
]

[baseline]
flags = '-DSPEED=10 -DOUT=7 -DSAYS=right'

[race]
budget = "60s"
rounds = 3

[[workloads]]
name = "speed"
command = ["{artifact}"]
score = { pattern = '(?P<name>in|out): (?P<value>[^ ]+) MB', unit = "MB/s" }
"""
EXPECTING = """\
[[workloads]]
name = "says"
command = ["{artifact}", "x"]
KEY
"""
SHA256 = hashlib.sha256(b"right\n").hexdigest()


def _study(ensign: Ensign, more: str = "") -> None:
    (ensign.folder / "study.toml").write_text(STUDY + more)
    (ensign.folder / "source").mkdir()
    (ensign.folder / "source" / "tool.c").write_text(PROGRAM)
    (ensign.folder / "right.txt").write_text("right\n")


@pytest.mark.parametrize(
    "key", ['expected = "right.txt"', f'expected_sha256 = "{SHA256}"'], ids=["file", "hash"]
)
def test_each_score_is_a_test_and_who_prints_otherwise_is_out(ensign: Ensign, key: str) -> None:
    _study(ensign, EXPECTING.replace("KEY", key))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    said = results(ensign)
    scored = [each for each in said["workloads"] if each["workload"] == "speed/in"]
    twice = next(each for each in scored if each["variant"] != "twin")
    assert (twice["baseline_score"], twice["variant_score"]) == pytest.approx((10, 20))
    assert twice["unit"] == "MB/s"
    assert twice["ratio"] == pytest.approx(0.5)
    assert {each["workload"] for each in said["workloads"]} == {"speed/in", "says"}
    missing = [each for each in said["findings"] if each["code"] == "score-missing"]
    assert [each["subject"] for each in missing] == ["speed/out"]
    assert "not judged" in missing[0]["text"]
    checks = [each["check"] for each in said["builds"]]
    assert checks == ["passed", "passed", "failed"]
    wrong = next(each for each in said["findings"] if each["code"] == "check-failed")
    assert "the output of workload says is not the expected one" in wrong["text"]
    suite = {each["variant"]: each for each in said["suite"]}
    assert len(suite) == 2
    lacking = next(each for name, each in suite.items() if name != "twin")
    assert "speed/out" in lacking["not_shown"]
    assert ensign("report", "study.toml", "--verify").status == 0


def test_a_baseline_that_prints_otherwise_ends_the_study(ensign: Ensign) -> None:
    key = 'expected = "right.txt"'
    _study(ensign, EXPECTING.replace("KEY", key))
    (ensign.folder / "right.txt").write_text("left\n")
    done = ensign("run", "study.toml")
    assert done.status == 3
    assert "is not the expected one (right.txt): line 1: 'right' instead of 'left'" in done.err
    (ensign.folder / "right.txt").unlink()
    done = ensign("run", "study.toml")
    assert done.status == 2
    assert "'expected' of workload 'says': there is no file" in done.complaint


GOOGLE = """\
#!/bin/sh
for each; do case $each in --benchmark_out=*) file=${each#*=} ;; esac; done
printf '{"benchmarks": [{"name": "BM_a", "cpu_time": %s, "time_unit": "us"}]}' "$1" > "$file"
"""


def test_compare_reads_benchmarks_and_what_must_be_printed(ensign: Ensign) -> None:
    program = ensign.folder / "bench"
    program.write_text(GOOGLE)
    program.chmod(0o755)
    (ensign.folder / "nothing").write_text("")
    commands = ("./bench 2", "./bench 3", "sh -c 'echo no'")
    done = ensign(
        "compare", *commands, "--benchmarks", "google-benchmark", "--expected", "nothing",
        "--runs", "2", "--json", "out.json",
    )  # fmt: skip
    assert done.status == 3
    said = json.loads((ensign.folder / "out.json").read_text())
    (test,) = [each for each in said["workloads"] if each["variant"] == "./bench 3"]
    assert test["workload"] == "BM_a"
    assert (test["unit"], test["ratio"]) == ("s", pytest.approx(1.5))
    assert "printed what is not expected (nothing)" in done.said
    done = ensign("compare", *commands[:2], "--expected", "gone", "--runs", "2")
    assert (done.status, done.complaint) == (
        2,
        "ensign: --expected gone: No such file or directory",
    )


def test_figures_on_standard_error_in_any_unit_are_those_of_one_unit(ensign: Ensign) -> None:
    commands = ["sh -c 'echo took 900 us >&2'", "sh -c 'echo took 1.8ms'"]
    done = ensign(
        "compare", *commands, "--score", "took ([0-9.]+)", "--unit", "ms", "--runs", "2",
        "--json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "out.json").read_text())
    assert said["comparisons"][0]["ratio"] == pytest.approx(2)
    scores = {each["command"]: each["score"] for each in said["variants"]}
    assert scores[commands[1]] == pytest.approx(1.8)
    assert scores[commands[0]] == pytest.approx(0.9)
