"""`ensign compare` of everyday commands: output, processes, threads, state, the machine, names."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from end_to_end.conftest import SOON, Ensign
from everyday.conftest import ROUNDS, Shapes
from everyday.truth import SAME, Said, Truth, compared

NAMED = ("--name", "one", "--name", "three")


def planted(ensign: Ensign, commands: tuple[str, str], *options: str) -> Said:
    return compared(ensign, *commands, *NAMED, *options).told(three=Truth())


# Output


def test_22_less_is_done_where_nobody_reads(ensign: Ensign, shapes: Shapes) -> None:
    planted(ensign, shapes.pair(f"sink {ROUNDS}"))


def test_23_a_producer_without_end(ensign: Ensign) -> None:
    commands = ("yes | head -n 1000000 | tail -n 1", "yes | head -n 3000000 | tail -n 1")
    planted(ensign, commands, "--shell")


def test_24_a_lot_of_output(ensign: Ensign, shapes: Shapes) -> None:
    before = shutil.disk_usage(ensign.folder).free
    planted(ensign, shapes.pair("flood 60"), *SOON)
    assert before - shutil.disk_usage(ensign.folder).free < 3 * 10**8


def test_25_output_to_a_file_of_its_own(ensign: Ensign, shapes: Shapes) -> None:
    said = planted(ensign, shapes.pair(f"written result.txt {ROUNDS}"))
    assert "result.txt" in said.text
    assert "{variant}" in said.text


# Processes and threads


def test_26_two_busy_threads(ensign: Ensign, shapes: Shapes) -> None:
    planted(ensign, shapes.pair(f"threads 2 {ROUNDS}"))


def test_27_a_helping_thread(ensign: Ensign, shapes: Shapes) -> None:
    commands = shapes.pair(f"helper {ROUNDS}")
    chosen = {
        (said.json["experiment"]["metric"], said.json["experiment"]["mode"])
        for said in (planted(ensign, commands), planted(ensign, commands))
    }
    assert len(chosen) == 1


@pytest.mark.parametrize("word", ["children", "jobs"])
def test_28_children(ensign: Ensign, shapes: Shapes, word: str) -> None:
    planted(ensign, shapes.pair(f"{word} 1000000"))


def test_29_a_pipeline(ensign: Ensign) -> None:
    def command(rows: int) -> str:
        return f"seq {rows} | awk '{{ sum += $1 % 7 }} END {{ print sum }}' | sort"

    planted(ensign, (command(60_000), command(180_000)), "--shell")


def test_30_children_of_a_millisecond(ensign: Ensign) -> None:
    def command(count: int) -> str:
        return f"sh -c 'i=0; while [ $i -lt {count} ]; do i=$((i+1)); /bin/true; done'"

    planted(ensign, (command(10), command(30)))


def test_31_the_same_work_in_two_threads(ensign: Ensign, shapes: Shapes) -> None:
    commands = (f"{shapes.one} threads 1 20000000", f"{shapes.one} threads 2 10000000")
    said = compared(
        ensign, *commands, *NAMED, *SOON, truth=Truth(cpu=SAME, wall=0.5)
    )  # fmt: skip
    assert said.done.status == 0, said.done.err
    assert all(row["direction"] != "slower" or row["low"] < 1.1 for row in said.rows)


# Shared state


def test_32_one_file_for_all(ensign: Ensign, shapes: Shapes) -> None:
    script = "'{program} spin {rounds} > cache.txt; wc -c cache.txt'"
    commands = tuple(
        "sh -c " + script.format(program=program, rounds=ROUNDS)
        for program in (shapes.one, shapes.three)
    )
    said = planted(ensign, (commands[0], commands[1]))
    assert "cache.txt" in said.text


def test_33_a_lock_that_lets_one_in(ensign: Ensign, shapes: Shapes) -> None:
    said = compared(ensign, *shapes.pair(f"locked data.db {ROUNDS}"), *NAMED)
    if said.done.status == 0:
        said.told(three=Truth())
    else:
        said.withheld(r"data\.db", r"\{variant\}")


@pytest.mark.parametrize(
    "script", ["{} locked data.db {}", "sh -c 'set -C; : > data.lock && {} spin {}; rm data.lock'"]
)
def test_33_alive_at_once_by_request(ensign: Ensign, shapes: Shapes, script: str) -> None:
    """What ends the race is told with the file that they share, and the way out."""
    commands = [script.format(each, ROUNDS) for each in (shapes.one, shapes.three)]
    said = compared(ensign, *commands, *NAMED, "--mode", "interleaved")
    assert said.done.status == 3, said.text
    said.withheld(r"data\.(db|lock)", r"\{variant\}")


# The machine


@pytest.fixture
def busy_machine() -> Iterator[None]:
    spinning = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"], stdin=subprocess.DEVNULL)
        for _ in range(3)
    ]
    yield
    for process in spinning:
        process.kill()
        process.wait()


@pytest.mark.usefixtures("busy_machine")
def test_34_arithmetic_on_a_busy_machine(ensign: Ensign, shapes: Shapes) -> None:
    planted(ensign, shapes.pair(f"spin {ROUNDS}"), *SOON)


@pytest.mark.usefixtures("busy_machine")
def test_35_the_same_on_a_busy_machine(ensign: Ensign, shapes: Shapes) -> None:
    command = f"{shapes.one} spin {ROUNDS}"
    said = compared(
        ensign, command, command, "--race-same", *SOON, truth=Truth(SAME, SAME, same_bytes=True)
    )
    assert said.done.status == 0, said.done.err


def test_36_a_program_of_three_milliseconds(ensign: Ensign, shapes: Shapes) -> None:
    planted(ensign, shapes.pair("spin 1000000"))


# Names and equality


def test_41_blanks_and_letters_beyond_ascii(ensign: Ensign, shapes: Shapes, here: Path) -> None:
    commands = []
    for name, program in (("älter ✓", shapes.one), ("neu & schnell", shapes.three)):
        (here / "mein Ordner" / name).mkdir(parents=True)
        shutil.copy(program, here / "mein Ordner" / name / "prögramm")
        commands.append(f"'./mein Ordner/{name}/prögramm' spin {ROUNDS}")
    planted(ensign, (commands[0], commands[1]))


def test_42_two_copies_of_one_program(ensign: Ensign, shapes: Shapes, here: Path) -> None:
    for name in ("a", "b"):
        shutil.copy(shapes.one, here / name)
    truth = Truth(SAME, SAME, same_bytes=True)
    said = compared(ensign, "./a spin 1000000", "./b spin 1000000", truth=truth)
    assert said.done.status == 0, said.done.err
    assert "same-bytes" in said.codes


def test_43_a_script_against_a_program(ensign: Ensign, shapes: Shapes, here: Path) -> None:
    script = here / "sum.sh"
    script.write_text(f"#!/bin/sh\nexec {shapes.three} spin 3000000\n")
    script.chmod(0o755)
    # What it runs is planted. What an interpreter takes would not be: it hangs on the load.
    said = compared(ensign, f"{shapes.one} spin 3000000", "./sum.sh", *NAMED, truth=Truth(3, 3))
    assert said.done.status == 0, said.done.err


def test_44_other_arguments(ensign: Ensign, shapes: Shapes) -> None:
    planted(ensign, (f"{shapes.one} spin 3000000", f"{shapes.one} spin 9000000"))
