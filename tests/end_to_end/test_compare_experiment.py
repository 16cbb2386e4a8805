"""What `compare` shares with studies, and what hyperfine's users know."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from end_to_end.conftest import SOON, SOURCES, Ensign, Programs

Json = dict[str, Any]


@pytest.fixture
def spin(ensign: Ensign, programs: Programs) -> str:
    """A program whose work is its argument."""
    shutil.copy(programs.cheap, ensign.folder / "spin")
    return "./spin"


def measured(ensign: Ensign, *argv: str) -> Json:
    done = ensign.brief("compare", *argv, "--json", "out.json")
    assert done.status == 0, done.err
    found: Json = json.loads((ensign.folder / "out.json").read_text())
    return found


def test_the_answer_comes_first_and_in_few_lines(ensign: Ensign, spin: str) -> None:
    done = ensign.brief("compare", f"{spin} 1000000", f"{spin} 3000000", *SOON)
    assert done.status == 0, done.err
    assert len(done.out.splitlines()) <= 15, done.out
    assert f"{spin} 3000000" in done.out.splitlines()[0]
    assert "--details" in done.out
    whole = ensign("compare", f"{spin} 1000000", f"{spin} 3000000", *SOON)
    assert "What was measured" in whole.out
    assert "twin" in whole.out


def test_several_workloads_are_raced_in_rounds(ensign: Ensign, spin: str) -> None:
    found = measured(
        ensign, f"{spin} {{workload}}", f"{spin} {{workload}}000", "--workload", "short=1000",
        "--workload", "long=3000", *SOON, "--html", "page.html",
    )  # fmt: skip
    assert found["experiment"]["rounds_done"] >= 2
    rows = {(row["workload"], row["variant"]) for row in found["workloads"]}
    slow = f"{spin} {{workload}}000"
    assert {("short", slow), ("long", slow)} <= rows
    (row,) = found["comparisons"]
    assert row["direction"] == "slower"
    assert {trial["workload"] for trial in found["trials"]} == {"short", "long"}
    page = (ensign.folder / "page.html").read_text()
    assert "Workload by workload" in page
    assert "What each used" in page


def test_a_workload_without_a_place_stands_at_the_end(ensign: Ensign, spin: str) -> None:
    found = measured(ensign, spin, f"./{spin}", "--workload", "1000000", "--race-same", *SOON)
    assert [row["workload"] for row in found["workloads"]] == ["1000000", "1000000"]
    assert found["experiment"]["executions"] > 0


def test_workloads_of_one_name_are_refused(ensign: Ensign, spin: str) -> None:
    done = ensign("compare", spin, spin, "--workload", "a=1", "--workload", "a=2")
    assert done.status == 2
    assert "--workload a is given twice" in done.complaint


def test_a_bundle_has_the_same_result_later(ensign: Ensign, spin: str) -> None:
    argv = (f"{spin} 1000000", f"{spin} 3000000", *SOON)
    found = measured(ensign, *argv, "--bundle", "pair.zip")
    again = json.loads(ensign("report", "pair.zip", "--json", "-").out)
    for key in ("comparisons", "aa", "suite", "variants", "findings", "machine"):
        assert again[key] == found[key]
    assert ensign("report", "pair.zip", "--html", "page.html").status == 0
    assert "ensign compare" in (ensign.folder / "page.html").read_text()
    refused = ensign("diff-studies", "pair.zip", "pair.zip")
    assert refused.status == 2
    assert "a comparison of commands, and no study" in refused.complaint


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("-L", "n", "1000000,3000000"), ["./spin 1000000", "./spin 3000000"]),
        (("-P", "n", "1", "3", "-D", "2"), ["./spin 1", "./spin 3"]),
    ],
)
def test_a_command_with_a_parameter_is_several(
    ensign: Ensign, spin: str, options: tuple[str, ...], names: list[str]
) -> None:
    found = measured(ensign, f"{spin} {{n}}", *options, "--runs", "3")
    assert list(found["experiment"]["commands"]) == names
    assert found["experiment"]["executions"] == 3
    assert found["experiment"]["stopped"] == "executions"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("-L", "n"), "-L needs 2 words"),
        (("a {n}", "b", "-L", "m", "1,2"), "no command has {m}"),
        (("a {n}", "-P", "n", "5", "1"), "the last not below the first"),
        (("a", "b", "--runs", "3", "--max-runs", "4"), "--runs is an exact number"),
        (("a", "b", "--min-runs", "5", "--max-runs", "4"), "--min-runs 5 is above --max-runs 4"),
        (("a", "b", "--precision", "5"), "write 5%"),
        (("a", "b", "--operations", "done"), "needs a group"),
        (("a", "b", "--json", "-", "--csv", "-"), "cannot both go to standard output"),
    ],
)
def test_what_cannot_be_meant_is_told_in_a_line(
    ensign: Ensign, argv: tuple[str, ...], said: str
) -> None:
    done = ensign("compare", *argv)
    assert done.status == 2
    assert said in done.complaint


def test_without_a_twin_there_is_none(ensign: Ensign, spin: str) -> None:
    found = measured(ensign, f"{spin} 1000000", f"{spin} 3000000", *SOON, "--no-twin")
    assert found["aa"] is None
    assert {each["variant"] for each in found["trials"][0]["variants"]} == {
        f"{spin} 1000000", f"{spin} 3000000",
    }  # fmt: skip
    assert "no-twin" in {each["code"] for each in found["findings"]}
    assert found["comparisons"][0]["direction"] == "slower"


def test_a_shell_by_name_and_what_commands_print(ensign: Ensign) -> None:
    words = "cat <(echo one) > /dev/null; echo seen"
    done = ensign.brief("compare", words, "echo other", "--shell=bash", *SOON, "--show-output")
    assert done.status == 0, done.err
    assert "seen" in done.out
    refused = ensign("compare", "a | b", "c")
    assert "--shell" in refused.complaint


def test_the_table_is_in_the_unit_asked_for(ensign: Ensign, spin: str) -> None:
    argv = (f"{spin} 1000000", f"{spin} 3000000", *SOON, "--time-unit", "microsecond")
    done = ensign.brief("compare", *argv)
    table = done.out[done.out.index("wall (mean") :].splitlines()
    assert all(" µs" in line for line in table[1:3])


def test_exits_and_the_baseline_are_in_the_files(ensign: Ensign) -> None:
    found = measured(ensign, "true", "false", "-i", *SOON, "--csv", "out.csv", "--metric", "wall")
    runs = {each["variant"]: set(each["exit_codes"]) for each in found["variants"]}
    assert (runs["true"], runs["false"]) == ({0}, {1})
    rows = list(csv.DictReader((ensign.folder / "out.csv").read_text().splitlines()))
    (baseline,) = [row for row in rows if row["variant"] == "true"]
    assert float(baseline["wall_s"]) > 0
    assert baseline["command"] == "true"
    assert Path(ensign.folder / "out.csv").stat().st_size > 0


def test_a_redirected_json_is_only_json(ensign: Ensign) -> None:
    done = ensign.brief("compare", "true", "true", *SOON, "--metric", "wall", "--json", "-")
    assert json.loads(done.out)["experiment"]["name"] == "compare"


DRIVE = 'connections = 1\noperations = 2000\nlatency = true\n[[commands]]\nargv = ["PING"]\n'


def test_our_own_load_keeps_the_latency_of_servers(ensign: Ensign) -> None:
    for name, work in (("quick", 100), ("slow", 200_000)):
        argv = ["gcc-12", "-O1", f"-DWORK={work}", "-o", str(ensign.folder / name)]
        subprocess.run([*argv, str(SOURCES / "resp.c")], check=True)
    (ensign.folder / "ping.toml").write_text(DRIVE)
    servers = ("./quick {port}", "./slow {port}")
    found = measured(ensign, *servers, "--drive", "ping.toml", "--budget", "40s", "--runs", "8")
    rows = {(row["variant"], row["percentile"]) for row in found["latency"]}
    assert {("./slow {port}", "p50"), ("./slow {port}", "p999")} <= rows
    (row,) = found["comparisons"]
    assert row["direction"] == "slower"
    assert {each["operations"] for each in found["variants"]} == {2000}
    (ensign.folder / "ping.toml").write_text(DRIVE.replace("argv", "argw"))
    refused = ensign("compare", *servers, "--drive", "ping.toml")
    assert refused.status == 2
    assert "ping.toml: commands.0.argw" in refused.complaint
