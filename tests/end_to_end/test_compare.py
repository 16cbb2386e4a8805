"""`ensign compare` on real programs; no test asserts which of two is faster by how much."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from end_to_end.conftest import SOON, Ensign, Programs


def finding_codes(path: Path) -> set[str]:
    return {finding["code"] for finding in json.loads(path.read_text())["findings"]}


def test_exports_have_the_promised_keys(ensign: Ensign, programs: Programs) -> None:
    done = ensign(
        "compare", f"{programs.cheap} 1000000", f"{programs.dear} 1000000",
        f"{programs.dear} 2000000",
        "--name", "one", "--name", "two", "--name", "four", "--margin", "1%",
        "--mode", "alternating", *SOON,
        "--export-json", "out.json", "--export-csv", "out.csv", "--export-markdown", "out.md",
    )  # fmt: skip
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "out.json").read_text())
    comparison = {
        "variant": str, "baseline": str, "metric": str, "ratio": float, "low": float, "high": float,
        "level": float, "direction": str, "size": str, "executions": int, "other_metric": dict,
    }  # fmt: skip
    assert [entry["variant"] for entry in said["comparisons"]] == ["two", "four"]
    for entry in (*said["comparisons"], said["aa"]):
        known = {key: type(entry[key]) for key in comparison}
        assert known == comparison
        assert set(entry) == {*comparison, "withheld", "correlation"}
        assert {entry["metric"], entry["other_metric"]["metric"]} == {"cpu", "wall"}
        assert entry["baseline"] == "one"
        assert entry["metric"] in ("cpu", "wall")
        assert entry["direction"] in ("faster", "slower", "unclear")
        assert entry["size"] in ("within", "beyond", "unclear")
        assert entry["low"] <= entry["ratio"] <= entry["high"]
    for finding in said["findings"]:
        assert set(finding) >= {"code", "severity", "text"}
        assert finding["severity"] in ("note", "warning", "error")
    assert len(said["trials"]) == said["aa"]["executions"]
    assert {"one", "two", "four"} < {
        variant["variant"] for variant in said["trials"][0]["variants"]
    }
    assert (ensign.folder / "out.csv").read_text().count("\n") >= 3
    assert "| two " in (ensign.folder / "out.md").read_text()


def test_without_a_margin_there_is_no_size(ensign: Ensign, programs: Programs) -> None:
    command = f"{programs.cheap} 1000000"
    done = ensign("compare", command, command, "--race-same", *SOON, "--export-json", "out.json")
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "out.json").read_text())
    assert said["comparisons"][0]["size"] is None
    assert "same-bytes" in finding_codes(ensign.folder / "out.json")


def test_the_same_program_is_not_raced(ensign: Ensign, programs: Programs) -> None:
    shutil.copy(programs.cheap, ensign.folder / "copy")
    pair = (f"{programs.cheap} 1000000", "./copy 1000000")
    done = ensign("compare", *pair, "--fail-on", "slower", "--export-json", "out.json")
    assert done.status == 0, done.err
    first = "The same program and libraries: there is nothing to compare between "
    assert done.said.startswith(first)
    said = json.loads((ensign.folder / "out.json").read_text())
    assert (said["comparisons"], said["experiment"]["stopped"]) == ([], "withheld")
    three = ensign("compare", *pair, "./copy 9000000", *SOON, "--export-json", "out.json")
    assert three.status == 0, three.err
    said = json.loads((ensign.folder / "out.json").read_text())
    (row,) = said["comparisons"]
    assert (row["variant"], row["direction"]) == ("./copy 9000000", "slower")
    assert "the same program and libraries as" in three.said


def test_a_program_that_fails_is_no_equal_one(ensign: Ensign) -> None:
    done = ensign("compare", "false", "false")
    assert done.status == 3
    assert "exited with status 1" in done.complaint


@pytest.mark.parametrize(
    ("rounds", "margin", "status"), [("12000000", (), 1), ("4000000", ("--margin", "90%"), 0)]
)
def test_fail_if_slower(
    ensign: Ensign, programs: Programs, rounds: str, margin: tuple[str, ...], status: int
) -> None:
    commands = (f"{programs.cheap} 3000000", f"{programs.cheap} {rounds}")
    done = ensign("compare", *commands, *SOON, "--fail-on", "slower", *margin)
    assert done.status == status, done.out


def test_commands_around_the_race_run_in_order(ensign: Ensign, programs: Programs) -> None:
    def note(word: str) -> str:
        return f"""sh -c 'echo {word} "$@" >> log' sh {{variant}}"""

    done = ensign(
        "compare", f"{programs.cheap} 1000000", f"{programs.dear} 1000000",
        "--warmup", "1", *SOON,
        "--setup", "sh -c 'echo setup >> log'", "--prepare", note("prepare"),
        "--cleanup", note("cleanup"), "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    executions = json.loads((ensign.folder / "out.json").read_text())["aa"]["executions"]
    lines = (ensign.folder / "log").read_text().splitlines()
    assert lines[0] == "setup"
    assert lines[-3:] == ["cleanup 1", "cleanup 2", "cleanup twin"]
    prepared = lines[1:-3]
    assert set(prepared) == {"prepare 1", "prepare 2", "prepare twin"}
    # One unmeasured run or more, one warm-up, and the race; the twin takes no part in the first.
    # A variant that fills the time of a slower one is prepared once more.
    assert prepared[0] == "prepare 1"
    assert prepared.index("prepare 2") < prepared.index("prepare twin")
    assert prepared.count("prepare 2") >= executions + 2
    assert prepared.count("prepare twin") >= executions + 1


def test_clean_up_follows_a_failure(ensign: Ensign, programs: Programs) -> None:
    done = ensign("compare", programs.cheap, f"{programs.cheap} 9 3", "--cleanup", "touch cleaned")
    assert done.status == 3
    assert "exited with status 3" in done.complaint
    assert "last words" in done.complaint
    assert (ensign.folder / "cleaned").exists()


def test_a_clean_up_that_fails_after_a_failure_has_a_line_of_its_own(
    ensign: Ensign, programs: Programs
) -> None:
    done = ensign("compare", programs.cheap, f"{programs.cheap} 9 3", "--cleanup", "false")
    assert done.status == 3
    first, second = (line for line in done.err.splitlines() if line.startswith("ensign: "))
    assert "exited with status 3" in first
    assert "'--cleanup false' exited with status 1" in second


def test_a_clean_up_that_fails_costs_no_result(ensign: Ensign, programs: Programs) -> None:
    done = ensign(
        "compare", programs.cheap, programs.dear, *SOON, "--cleanup", "false",
        "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 3
    assert "--cleanup false" in done.complaint
    assert json.loads((ensign.folder / "out.json").read_text())["trials"]


def test_failures_can_be_measured(ensign: Ensign, programs: Programs) -> None:
    failing = f"{programs.cheap} 1000000 3"
    done = ensign("compare", f"{programs.cheap} 1000000", failing, *SOON, "--ignore-failure")
    assert done.status == 0, done.err


def test_files_and_environment_per_variant(ensign: Ensign) -> None:
    for variant in ("1", "2", "twin"):
        (ensign.folder / f"in-{variant}").write_text(f"for {variant}\n")
    script = 'read line; echo "$line $COLOR"; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done'
    command = f"sh -c '{script}'"
    done = ensign(
        "compare", command, command, *SOON, "--input", "in-{variant}", "--output", "out-{variant}",
        "--env", "COLOR=blue", "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    for variant in ("1", "2", "twin"):
        assert (ensign.folder / f"out-{variant}").read_text() == f"for {variant} blue\n"
    assert "outputs-differ" in finding_codes(ensign.folder / "out.json")


def test_a_shell_is_used_where_asked_for(ensign: Ensign) -> None:
    command = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done | cat"
    done = ensign("compare", command, command, "--shell", *SOON)
    assert done.status == 0, done.err


def test_sleeping_programs_race_by_whole_executions(ensign: Ensign) -> None:
    done = ensign("compare", "sleep 0.03", "sleep 0.04", *SOON, "--export-json", "o.json")
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "o.json").read_text())
    assert said["experiment"]["mode"] == "alternating"
    assert said["aa"]["metric"] == "wall"
    assert "mostly-waiting" in finding_codes(ensign.folder / "o.json")
    assert "waiting for a timer (clock_nanosleep): a compiler will not help (at most +" in done.said


def test_what_bounds_commands_goes_before_an_undecided_verdict(ensign: Ensign) -> None:
    commands = ("sh -c 'sleep 0.05 | cat'", "sh -c 'sleep 0.05 | cat -'")
    done = ensign("compare", *commands, *SOON, "--export-json", "o.json")
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "o.json").read_text())
    (finding, *_) = [each for each in said["findings"] if each["code"] == "mostly-waiting"]
    assert "waiting for a timer (clock_nanosleep): a compiler will not help" in finding["text"]
    if said["comparisons"][0]["direction"] == "unclear":
        assert done.said.index("a compiler will not help") < done.said.index("is unclear")


def test_the_cpu_time_of_all_threads_counts(ensign: Ensign, programs: Programs) -> None:
    done = ensign(
        "compare", f"{programs.threads} 1", f"{programs.threads} 8", *SOON,
        "--mode", "interleaved", "--metric", "cpu", "--export-json", "o.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "o.json").read_text())
    assert said["comparisons"][0]["ratio"] > 3


@pytest.mark.parametrize(
    ("options", "mode", "metric"),
    [
        (("--mode", "alternating", "--metric", "cpu"), "alternating", "cpu"),
        (("--mode", "interleaved", "--metric", "wall", "--cpus", "0"), "interleaved", "wall"),
    ],
)
def test_choices_of_the_user(
    ensign: Ensign, programs: Programs, options: tuple[str, ...], mode: str, metric: str
) -> None:
    commands = (f"{programs.cheap} 1000000", f"{programs.dear} 1000000")
    done = ensign("compare", *commands, *SOON, *options, "--export-json", "out.json")
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "out.json").read_text())
    assert (said["experiment"]["mode"], said["aa"]["metric"]) == (mode, metric)


def test_servers_are_compared_by_their_cpu_time(ensign: Ensign, programs: Programs) -> None:
    done = ensign(
        "compare", f"{programs.server} {{port}}", f"{programs.dear_server} {{port}}",
        "--load", f"{programs.load} {{port}} 50", "--ready", "port", *SOON,
        "--operations", "([0-9]+) requests", "--export-json", "out.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "out.json").read_text())
    assert said["aa"]["metric"] == "cpu"
    variants = said["trials"][0]["variants"]
    assert [variant["operations"] for variant in variants] == [50, 50, 50]
    assert all(variant["load_cpu_ns"] > 0 for variant in variants)


@pytest.mark.parametrize("columns", [60, 100])
def test_piped_output_is_plain_and_narrow(ensign: Ensign, programs: Programs, columns: int) -> None:
    command = f"{programs.cheap} 1000000"
    argv = ("compare", command, f"{command} 0", *SOON)
    done = ensign.end(ensign.start(*argv, COLUMNS=str(columns)))
    assert done.status == 0, done.err
    assert done.err == ""
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.out)
    assert max(map(len, done.out.splitlines())) <= columns


def test_a_reader_that_goes_away_costs_nothing(ensign: Ensign, programs: Programs) -> None:
    process = ensign.start(
        "compare", f"{programs.cheap} 3000000", f"{programs.cheap} 12000000", *SOON,
        "--fail-on", "slower", "--export-json", "out.json",
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    done = ensign.end(process)
    assert (done.status, done.err) == (1, "")
    assert json.loads((ensign.folder / "out.json").read_text())["trials"]


def test_the_best_is_raced_anew_and_claims_come_from_that_alone(
    ensign: Ensign, programs: Programs
) -> None:
    commands = [f"{programs.cheap} {times}" for times in (2000000, 4000000, 500000)]
    names = ["--name", "usual", "--name", "double", "--name", "quarter"]
    limits = ["--confirm", "--runs", "6", "--mode", "alternating", "--metric", "cpu"]
    kept = ["--bundle", "out.ensign", "--json", "out.json"]
    done = ensign("compare", *commands, *names, *limits, *kept)
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "out.json").read_text())
    assert [each["variant"] for each in said["comparisons"]] == ["double", "quarter"]
    phase = said["confirmation"]
    assert phase["finalists"] == ["quarter"]
    assert (phase["rounds"], phase["rounds_done"]) == (6, 6)
    assert [each["variant"] for each in phase["comparisons"]] == ["quarter"]
    assert {each["variant"] for each in said["trials"][0]["variants"]} == {
        "usual", "double", "quarter", "twin",
    }  # fmt: skip
    again = ensign("report", "out.ensign", "--json", "again.json")
    assert again.status == 0, again.err
    assert json.loads((ensign.folder / "again.json").read_text())["confirmation"] == phase


def test_where_nothing_is_better_there_is_nothing_to_confirm(
    ensign: Ensign, programs: Programs
) -> None:
    commands = [f"{programs.cheap} {times}" for times in (500000, 4000000)]
    limits = ["--confirm", "--runs", "5", "--mode", "alternating", "--metric", "cpu"]
    done = ensign("compare", *commands, *limits, "--json", "out.json")
    assert done.status == 0, done.err
    phase = json.loads((ensign.folder / "out.json").read_text())["confirmation"]
    assert (phase["finalists"], phase["rounds"]) == ([], 0)
    assert phase["plan_sha256"]
