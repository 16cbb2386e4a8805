"""Metric, mode and CPUs of a study follow from what its baseline does, as those of commands do."""

from __future__ import annotations

import json
import os

import pytest

from end_to_end.conftest import Ensign
from end_to_end.small_study import BATCH, write_study

THREADS = (
    BATCH.replace("-o spin spin.c", "-pthread -o spin threads.c")
    .replace('command = ["{artifact}", "1000000"]', 'command = ["{artifact}", "1"]')
    .replace('command = ["{artifact}", "3000000"]', 'command = ["{artifact}", "4"]')
)
SLEEPS = BATCH.replace(
    'command = ["{artifact}", "3000000"]',
    'command = ["sh", "-c", "{artifact} 1000; sleep 0.1"]',
)


def raced(ensign: Ensign, text: str, *changes: tuple[str, str]) -> dict[str, object]:
    write_study(ensign.folder, text, *changes)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    found: dict[str, object] = json.loads(ensign("report", "study.toml", "--json", "-").out)
    return found


def findings(found: dict[str, object]) -> set[tuple[str, str]]:
    return {(each["code"], each["subject"]) for each in found["findings"]}  # type: ignore[attr-defined]


def modes(ensign: Ensign) -> dict[str, str]:
    """How the workloads of the rounds were raced."""
    (plan,) = (ensign.folder / ".ensign" / "small" / "plans").glob("*.json")
    said = json.loads(plan.read_text())
    names = ("short", "long")
    return {name: "alternating" if name in said["alternating"] else "interleaved" for name in names}


def test_a_workload_of_several_busy_tasks_runs_by_turns_on_all_cpus(ensign: Ensign) -> None:
    found = raced(ensign, THREADS)
    assert found["experiment"]["metric"] == "wall"  # type: ignore[index]
    assert modes(ensign) == {"short": "interleaved", "long": "alternating"}
    assert ("several-cpus", "long") in findings(found)
    assert ("several-cpus", "short") not in findings(found)
    # The report is of what was raced, and a second run changes nothing.
    assert ensign("run", "study.toml").status == 0
    assert (
        json.loads(ensign("report", "study.toml", "--json", "-").out)["experiment"]["metric"]
        == "wall"
    )


@pytest.mark.parametrize("how", ["asked for", "by the program"])
def test_busy_tasks_that_share_a_cpu_are_raced_in_slices(ensign: Ensign, how: str) -> None:
    command = 'command = ["{artifact}", "4"]'
    if how == "asked for":
        swap = (command, f"{command}\none_cpu = true")
    else:
        cpu = str(min(os.sched_getaffinity(0)))
        swap = (command, command.replace("[", f'["taskset", "-c", "{cpu}", '))
    found = raced(ensign, THREADS, swap)
    assert found["experiment"]["metric"] == "cpu"  # type: ignore[index]
    assert modes(ensign) == {"short": "interleaved", "long": "interleaved"}
    assert "several-cpus" not in {code for code, _ in findings(found)}


def test_a_workload_that_waits_runs_by_turns(ensign: Ensign) -> None:
    found = raced(ensign, SLEEPS)
    assert found["experiment"]["metric"] == "wall"  # type: ignore[index]
    assert modes(ensign)["long"] == "alternating"
    assert ("mostly-waiting", "long") in findings(found)


def test_programs_of_one_task_are_interleaved_and_compared_by_cpu_time(ensign: Ensign) -> None:
    found = raced(ensign, BATCH)
    assert found["experiment"]["metric"] == "cpu"  # type: ignore[index]
    assert modes(ensign) == {"short": "interleaved", "long": "interleaved"}


@pytest.mark.parametrize(
    ("keys", "codes"),
    [
        ('mode = "interleaved"', {"interleaved-by-request"}),
        ('metric = "cpu"', {"cpu-by-request"}),
        ('mode = "alternating"', set()),
    ],
)
def test_what_the_user_says_goes_first_and_is_doubted(
    ensign: Ensign, keys: str, codes: set[str]
) -> None:
    found = raced(ensign, THREADS, ("rounds = 3", f"rounds = 3\n{keys}"))
    said = {code for code, subject in findings(found) if subject == "long"}
    assert said & {"interleaved-by-request", "cpu-by-request"} == codes
    assert found["experiment"]["metric"] == ("cpu" if "metric" in keys else "wall")  # type: ignore[index]
    assert (modes(ensign)["long"] == "interleaved") == ('"interleaved"' in keys)
