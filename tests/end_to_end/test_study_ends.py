"""A study of programs that work together, over several sizes and a network."""

from __future__ import annotations

from pathlib import Path

from end_to_end.conftest import Ensign
from end_to_end.test_study import results
from ensign.experiment.study.networks import network_obstacle
from ensign.host.confinement_probe import Confinement
from ensign.host.programs import LocalPrograms

# Two megabytes at 20 Mb/s take nearly a second, whatever the build: its link is full.
PROGRAM = """\
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int takes = argc == 5 && !strcmp(argv[1], "take"), on = 1;
    long left = argc == 5 ? atol(argv[4]) : 0;
    static char bytes[65536];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[3]))};
    inet_pton(AF_INET, argv[2], &at.sin_addr);
    int end = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(end, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!takes && connect(end, (void *)&at, sizeof at))
        return 3;
    if (takes && (bind(end, (void *)&at, sizeof at) || listen(end, 1)))
        return 4;
    if (takes && (end = accept(end, 0, 0)) < 0)
        return 5;
    while (left > 0) {
        long most = left < (long)sizeof bytes ? left : (long)sizeof bytes;
        long done = takes ? read(end, bytes, most) : write(end, bytes, most);
        if (done <= 0)
            return 6;
        left -= done;
    }
    for (volatile long i = 0; i < 3000000; i++)
        ;
    if (takes)
        printf("took all at %s\\n", argv[2]);
    return 0;
}
"""
STUDY = """\
name = "ends"
layouts = "natural"

[source]
kind = "path"
path = "source"

[build]
commands = [["sh", "-c", "{cc} {cflags} -o end end.c {ldflags}"]]
artifact = "end"

[axes]
compiler = ["gcc-12"]
optimization = ["-O0", "-O2"]

[baseline]
optimization = "-O0"

[race]
budget = "60s"
rounds = 3
metric = "wall"

[[workloads]]
name = "near"
parameter = { name = "size", values = [1000, 100000], unit = "B" }
ends = [
  { command = ["{artifact}", "take", "{address}", "{port}", "{size}"], listens = "{port}" },
  { command = ["{artifact}", "give", "{address}", "{port}", "{size}"] },
]
operations = 1

[[workloads]]
name = "far"
parameter = { name = "size", values = [2000000], unit = "B" }
ends = [
  { command = ["{artifact}", "take", "{address}", "5555", "{size}"], listens = "5555" },
  { command = ["{artifact}", "give", "{address}", "5555", "{size}"] },
]
network = { rate = "20Mbit/s" }
operations = 1
"""


def write(folder: Path, text: str) -> None:
    (folder / "source").mkdir()
    (folder / "source/end.c").write_text(PROGRAM)
    (folder / "study.toml").write_text(text)


def test_programs_that_work_together_are_raced_as_one(ensign: Ensign) -> None:
    obstacle = network_obstacle(LocalPrograms(), Confinement(), {})
    write(ensign.folder, STUDY)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    found = results(ensign)
    near = [("near", "size", [1000, 100_000])]
    assert [(each["name"], each["parameter"], each["values"]) for each in found["curves"]] == near
    if obstacle:
        assert "workloads-left-out" in {each["code"] for each in found["findings"]}
        return
    far = [row for row in found["workloads"] if row["workload"] == "far-2000000"]
    assert far[0]["baseline_cost_ns"] > 300_000_000


def test_an_end_that_fails_is_named(ensign: Ensign) -> None:
    wrong = ('"give", "{address}", "{port}"', '"give", "{address}", "1"')
    near = STUDY[: STUDY.index('[[workloads]]\nname = "far"')]
    assert wrong[0] in near
    write(ensign.folder, near.replace(*wrong))
    done = ensign("run", "study.toml")
    assert done.status != 0
    assert "exited with status 3" in done.err
