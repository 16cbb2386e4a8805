"""Programs and loads that run for a fixed time, and programs that wait."""

from __future__ import annotations

import pytest

from end_to_end.conftest import Ensign, Programs, programs
from everyday.conftest import Shapes
from everyday.projects import write_project
from everyday.truth import SAME, Said, Truth, compared, studied

__all__ = ["programs"]

NAMED = ("--name", "one", "--name", "three")
# Also on a busy machine; looking ends long before.
ENOUGH = ("--budget", "30s")
# What a program does in its time is not what it costs: by the clock both are the same.
ENDS_BY_THE_CLOCK = Truth(SAME, SAME)


def withheld(said: Said) -> None:
    assert said.done.status == 0, said.done.err
    assert "self-timed" in said.codes, said.text
    said.withheld("runs for a fixed time", "score|operations")


@pytest.mark.parametrize("clock", ["wall", "cpu"])
def test_17_18_a_program_that_runs_for_a_time(ensign: Ensign, shapes: Shapes, clock: str) -> None:
    commands = shapes.pair(f"{clock} 200")
    withheld(compared(ensign, *commands, *NAMED, *ENOUGH, truth=ENDS_BY_THE_CLOCK))


def test_17_in_a_child_of_a_shell(ensign: Ensign, shapes: Shapes) -> None:
    commands = [f"sh -c '{command}; exit 0'" for command in shapes.pair("wall 200")]
    withheld(compared(ensign, *commands, *NAMED, *ENOUGH, truth=ENDS_BY_THE_CLOCK))


def test_17_the_same_program_twice(ensign: Ensign, shapes: Shapes) -> None:
    command = f"{shapes.one} wall 200"
    truth = Truth(SAME, SAME, same_bytes=True)
    withheld(compared(ensign, command, command, "--race-same", *NAMED, *ENOUGH, truth=truth))


@pytest.mark.parametrize(
    "word", ["prof", "virtual", "ticks", "process", "thread", "sleeper", "times"]
)
def test_46_until_a_timer_of_its_cpu_time(ensign: Ensign, timers: Shapes, word: str) -> None:
    commands = timers.pair(f"{word} 200")
    withheld(compared(ensign, *commands, *NAMED, *ENOUGH, truth=ENDS_BY_THE_CLOCK))


@pytest.mark.parametrize("word", ["real", "timerfd", "poll"])
def test_47_until_a_timer_of_the_wall_clock(ensign: Ensign, timers: Shapes, word: str) -> None:
    commands = timers.pair(f"{word} 200")
    withheld(compared(ensign, *commands, *NAMED, *ENOUGH, truth=ENDS_BY_THE_CLOCK))


@pytest.mark.parametrize("script", ["{} timerfd 200 >> log", "echo busy > state; {} real 200"])
def test_47_and_they_share_a_file(ensign: Ensign, timers: Shapes, script: str) -> None:
    commands = [f"sh -c '{script.format(each)}'" for each in (timers.one, timers.three)]
    said = compared(ensign, *commands, *NAMED, *ENOUGH, truth=ENDS_BY_THE_CLOCK)
    withheld(said)
    assert "shared-files" in said.codes


def test_48_until_its_limit_of_cpu_time(ensign: Ensign, timers: Shapes) -> None:
    commands = timers.pair("limit 1000")
    withheld(compared(ensign, *commands, *NAMED, "--budget", "2m", truth=ENDS_BY_THE_CLOCK))


TIMED = """\
main: shapes.c
	$(CC) $(CFLAGS) -pthread -o $@ shapes.c $(LDFLAGS)
"""


@pytest.mark.parametrize("clock", ["wall", "cpu"])
def test_17_18_in_a_study(ensign: Ensign, clock: str) -> None:
    write_project(ensign.folder, TIMED, command=f'["{{artifact}}", "{clock}", "200"]')
    withheld(studied(ensign, ENDS_BY_THE_CLOCK))


def served(ensign: Ensign, programs: Programs, shapes: Shapes, *options: str) -> Said:
    return compared(
        ensign, f"{programs.server} {{port}}", f"{programs.dear_server} {{port}}", *NAMED,
        "--load", f"{shapes.one} load {{port}} 60", *options, truth=Truth(SAME, SAME),
    )  # fmt: skip


def test_19_a_load_that_runs_for_a_time(ensign: Ensign, programs: Programs, shapes: Shapes) -> None:
    withheld(served(ensign, programs, shapes, *ENOUGH))


def test_19_its_requests_are_counted(ensign: Ensign, programs: Programs, shapes: Shapes) -> None:
    options = ("--operations", "([0-9]+) requests", "--budget", "8s")
    command = [
        f"{programs.server} {{port}}", f"{programs.dear_server} {{port}}", *NAMED,
        "--load", f"{shapes.one} load {{port}} 60", *options,
    ]  # fmt: skip
    # The kernel's part of a request is the same: its own work, and half of the whole, is planted.
    said = compared(ensign, *command, truth=Truth(1.5, 1.5))
    assert said.done.status == 0, said.done.err
    assert all(row["direction"] != "faster" for row in said.rows)


def test_20_a_mostly_waiting_program(ensign: Ensign, shapes: Shapes) -> None:
    said = compared(
        ensign, *shapes.pair("wait 20"), *NAMED, truth=Truth(cpu=SAME, wall=3.0, computes=False)
    )  # fmt: skip
    assert said.json["experiment"]["metric"] == "wall", said.text
    said.told(three=Truth(cpu=SAME, wall=3.0))


def test_21_sleep_against_itself(ensign: Ensign) -> None:
    truth = Truth(SAME, SAME, same_bytes=True, computes=False)
    said = compared(ensign, "sleep 0.05", "sleep 0.05", truth=truth)
    assert said.done.status == 0, said.done.err
