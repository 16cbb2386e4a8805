"""Workloads with several inputs, an environment, and files beside the program."""

from __future__ import annotations

from end_to_end.conftest import Ensign
from end_to_end.test_study import results

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    const char *factor = getenv("FACTOR");
    FILE *input = argc > 2 ? fopen(argv[2], "r") : stdin;
    FILE *table = fopen(argv[1], "r");
    if (!factor || !input || !table)
        return 3;
    long count = 0, sum = 0;
    if (fscanf(input, "%ld", &count) != 1)
        return 4;
    for (volatile long i = 0; i < count * atol(factor); i++)
        sum += i ^ (sum >> 3);
    printf("%ld\\n", sum);
    return 0;
}
"""

STUDY = """\
name = "inputs"
layouts = "natural"

[source]
kind = "path"
path = "source"

[build]
commands = [["sh", "-c", "mkdir -p out && cp table.txt out && {cc} {cflags} -o out/sum sum.c"]]
artifact = "out/sum"
runtime_files = ["out/table.txt"]

[axes]
compiler = ["gcc-12"]
optimization = ["-O2"]
pgo = ["off", "on"]

[baseline]
pgo = "off"

[check]
commands = [["test", "-f", "{artifact_dir}/table.txt"]]
same_output = ["sum"]

[race]
budget = "60s"
rounds = 3

[[training.workloads]]
name = "learn"
command = ["{artifact}", "{artifact_dir}/table.txt", "{input}"]
input = ["data/tiny.txt"]
env = { FACTOR = "2" }

[[workloads]]
name = "sum"
command = ["{artifact}", "{artifact_dir}/table.txt", "{input}"]
input = ["data/small.txt", "data/big.txt"]
env = { FACTOR = "3" }

[[workloads]]
name = "piped"
command = ["{artifact}", "{artifact_dir}/table.txt"]
input = ["data/small.txt"]
env = { FACTOR = "1" }
"""


def test_each_input_is_a_test_with_its_environment(ensign: Ensign) -> None:
    folder = ensign.folder
    (folder / "study.toml").write_text(STUDY)
    (folder / "source").mkdir()
    (folder / "source" / "sum.c").write_text(PROGRAM)
    (folder / "source" / "table.txt").write_text("0\n")
    (folder / "data").mkdir()
    for name, count in (("tiny", 1_000), ("small", 20_000), ("big", 60_000)):
        (folder / "data" / f"{name}.txt").write_text(f"{count}\n")
    planned = ensign("plan", "study.toml")
    assert planned.status == 0, planned.err
    assert "sum-small.txt" in planned.out
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    said = results(ensign)
    tests = {str(each["workload"]) for each in said["workloads"]}
    assert tests == {"sum-small.txt", "sum-big.txt", "piped-small.txt"}
    builds = {str(each["variant"]): each["check"] for each in said["builds"]}
    assert list(builds.values()) == ["passed", "passed"]
    costs = {str(each["workload"]): each["baseline_cost_ns"] for each in said["workloads"]}
    assert float(str(costs["sum-big.txt"])) > float(str(costs["sum-small.txt"]))
    plain, trained = said["builds"]
    assert "coverage" not in plain
    assert trained["coverage"] == [{"used_by": "PGO", "functions": 1, "profiled": 1}]
    evidence = trained["evidence"]
    assert isinstance(evidence, list)
    assert "compiled with a profile: 1 of 1 compile units" in evidence
    page = (folder / ".ensign" / "inputs" / "report.html").read_text()
    assert "PGO: 1 of 1 functions profiled (100%)" in page
