"""Commands around the executions of a study, executions before its rounds, programs that fail."""

from __future__ import annotations

from end_to_end.conftest import Ensign
from end_to_end.small_study import BATCH
from end_to_end.test_study import trials

PROGRAM = """\
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    char made[64] = "", prepared[64] = "";
    FILE *first = fopen(argv[1], "r"), *second = fopen(argv[2], "r");
    if (!first || !second || !fgets(made, sizeof made, first))
        return 3;
    if (!fgets(prepared, sizeof prepared, second) || argc != 3)
        return 4;
    for (volatile long i = 0; i < 3000000; i++)
        ;
    return strcmp(made, prepared) ? 5 : 1;
}
"""
WORKLOAD = """
[sandbox]
write = ["{made}"]

[[workloads]]
name = "prepared"
setup = ["sh", "-c", "echo given > {made}/{{variant}}; echo s >> {made}/log"]
prepare = ["sh", "-c", "cp {made}/{{variant}} $1/mine; echo p >> {made}/log", "-", "{{tmp}}"]
command = ["{{artifact}}", "{made}/{{variant}}", "{{tmp}}/mine"]
cleanup = ["sh", "-c", "echo c >> {made}/log"]
ignore_failure = true
"""


def test_what_runs_around_executions_and_before_the_rounds(ensign: Ensign) -> None:
    folder = ensign.folder
    made = folder.parent / "made"
    made.mkdir()
    made.chmod(0o777)
    (folder / "source").mkdir()
    (folder / "source" / "spin.c").write_text(PROGRAM)
    text = BATCH[: BATCH.index("[[workloads]]")].replace("rounds = 3", "rounds = 3\nwarmup = 2")
    (folder / "study.toml").write_text(text + WORKLOAD.format(made=made))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    log = (made / "log").read_text().split()
    # The baseline, the other variant, and the twin; then the clean-up, once.
    assert (log[:3], log.count("s"), log[-1], log.count("c")) == (["s"] * 3, 3, "c", 1)
    # Before each execution: of two that do not count and three that do, by three each.
    assert log.count("p") >= 5 * 3
    assert len(trials(folder)) == 3
    ensign("run", "study.toml")
    assert (made / "log").read_text().split() == log
