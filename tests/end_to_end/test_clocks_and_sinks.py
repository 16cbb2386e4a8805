"""What was measured is what the program does: its sink, its clock, its waiting, its tasks."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from end_to_end.conftest import SOON, SOURCES, Ensign, Programs
from end_to_end.small_study import BATCH, write_study

LONG = ("--budget", "30s", "--precision", "90%", "--export-json", "o.json")
# A score or a count is read of the programs' own word, which is the planted one.
_WORK = 10


@pytest.fixture(scope="session")
def until(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The same program, and one whose rounds are ten times as dear."""
    folder = tmp_path_factory.mktemp("until")
    built = []
    for work in (1, _WORK):
        path = folder / f"until-{work}"
        argv = ["gcc-12", "-O1", f"-DWORK={work}", "-o", str(path), str(SOURCES / "until.c")]
        subprocess.run(argv, check=True)
        built.append(str(path))
    return built[0], built[1]


@pytest.fixture
def busy_machine() -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    yield
    for process in spinning:
        process.kill()
        process.wait()


def said(ensign: Ensign) -> Any:
    return json.loads((ensign.folder / "o.json").read_text())


def codes(ensign: Ensign) -> set[str]:
    return {finding["code"] for finding in said(ensign)["findings"]}


@pytest.mark.parametrize("kind", ["wall 400", "alarm 400", "cpu 100", "rusage 100"])
def test_what_ends_by_the_clock_gets_no_verdict(
    ensign: Ensign, until: tuple[str, str], kind: str
) -> None:
    cheap, dear = until
    commands = [f"{cheap} {kind}", f"{dear} {kind}"]
    done = ensign("compare", *commands, *LONG, "--export-markdown", "o.md")
    assert done.status == 0, done.err
    assert "self-timed" in codes(ensign)
    assert said(ensign)["comparisons"] == []
    assert said(ensign)["experiment"]["withheld"]
    markdown = (ensign.folder / "o.md").read_text()
    for text in (done.said, " ".join(markdown.split())):
        assert "runs for a fixed time" in text
        assert "--score" in text
        assert "faster" not in text
        assert "slower" not in text


@pytest.mark.parametrize("kind", ["fixed 300", "timed 300"])
def test_fixed_work_is_judged_also_where_it_prints_its_time(
    ensign: Ensign, until: tuple[str, str], kind: str
) -> None:
    done = ensign("compare", f"{until[0]} {kind}", f"{until[0]} {kind}", *LONG)
    assert done.status == 0, done.err
    assert "self-timed" not in codes(ensign)
    assert said(ensign)["experiment"]["mode"] == "interleaved"


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_a_score_is_compared_instead(ensign: Ensign, until: tuple[str, str], better: str) -> None:
    cheap, dear = until
    done = ensign(
        "compare", f"{cheap} wall 60", f"{dear} wall 60", "--score", r"done: (\d+) rounds",
        "--unit", "rounds", "--better", better, *SOON, "--export-json", "o.json",
        "--export-markdown", "o.md",
    )  # fmt: skip
    assert done.status == 0, done.err
    for table in (done.out, (ensign.folder / "o.md").read_text()):
        assert "score, rounds" in table
    (comparison,) = said(ensign)["comparisons"]
    assert comparison["metric"] == "score"
    assert said(ensign)["experiment"]["mode"] == "alternating"
    # It does a tenth of the rounds, which is a tenth of the speed, or of the cost.
    assert (comparison["ratio"] > 3) == (better == "higher")
    assert "self-timed" not in codes(ensign)


@pytest.mark.parametrize("operations", [r"done: (\d+) rounds", "5"])
def test_counted_operations_make_a_cost_of_it(
    ensign: Ensign, until: tuple[str, str], operations: str
) -> None:
    command = f"{until[0]} wall 400"
    done = ensign("compare", command, command, "--race-same", "--operations", operations, *LONG)
    assert done.status == 0, done.err
    assert said(ensign)["experiment"]["mode"] == "alternating"
    assert len(said(ensign)["comparisons"]) == 1
    counts = {
        variant["operations"] for trial in said(ensign)["trials"] for variant in trial["variants"]
    }
    assert counts == {5} if operations == "5" else min(counts) > 0


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ((), 0),
        (("--output", "pipe"), 0),
        (("--output", "f-{variant}"), 0),
        (("--output", "null"), 3),
    ],
)
def test_standard_output_is_no_dev_null_unless_asked_for(
    ensign: Ensign, until: tuple[str, str], options: tuple[str, ...], status: int
) -> None:
    command = f"{until[0]} sink 50"
    done = ensign("compare", command, command, *options, *SOON)
    assert done.status == status, done.err


def test_inherited_output_is_where_ensigns_own_is(ensign: Ensign, until: tuple[str, str]) -> None:
    command = f"{until[0]} sink 50"
    done = ensign("compare", command, command, "--output", "inherit", *SOON)
    assert done.status == 0, done.err
    assert "done: 50 rounds" in done.out


@pytest.mark.parametrize(
    "command",
    ["head -c 60M /dev/zero", f"{sys.executable} -c \"print('x' * 30000000)\""],
)
def test_much_output_is_compared_and_kept_nowhere(ensign: Ensign, command: str) -> None:
    shorter = command.replace("60M", "59M").replace("30000000", "29999999")
    done = ensign("compare", command, shorter, *LONG)
    assert done.status == 0, done.err
    assert "outputs-differ" in codes(ensign)
    assert "mostly-waiting" not in codes(ensign)


@pytest.mark.parametrize("command", ["yes", "sh -c 'while :; do echo again; done'"])
def test_an_endless_writer_ends_at_its_deadline(ensign: Ensign, command: str) -> None:
    done = ensign("compare", command, command, "--deadline", "500ms", *SOON)
    assert done.status == 3
    assert "deadline" in done.complaint


@pytest.mark.usefixtures("busy_machine")
@pytest.mark.parametrize("form", ["compiled", "script"])
def test_waiting_for_a_cpu_is_no_waiting(ensign: Ensign, until: tuple[str, str], form: str) -> None:
    command = f"{until[0]} fixed 400"
    if form == "script":
        command = f'{sys.executable} -c "for i in range(300000): pass"'
    done = ensign("compare", command, command, "--race-same", *LONG)
    assert done.status == 0, done.err
    assert "sleeping" not in done.said
    assert said(ensign)["experiment"]["mode"] == "interleaved"
    assert said(ensign)["experiment"]["metric"] == "cpu"
    assert "mostly-waiting" not in codes(ensign)


def test_several_busy_tasks_get_all_cpus(ensign: Ensign, programs: Programs) -> None:
    command = f"{programs.threads} 8"
    done = ensign("compare", command, command, "--race-same", *LONG)
    assert done.status == 0, done.err
    assert "several-cpus" in codes(ensign)
    assert said(ensign)["experiment"]["mode"] == "alternating"
    assert said(ensign)["experiment"]["metric"] == "wall"


def test_servers_by_wall_time_run_by_turns(ensign: Ensign, programs: Programs) -> None:
    servers = [f"{programs.server} {{port}}", f"{programs.server} {{port}} "]
    done = ensign(
        "compare", *servers, "--load", f"{programs.load} {{port}} 2000", "--operations", "2000",
        "--metric", "wall", "--race-same", *LONG,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert said(ensign)["experiment"]["mode"] == "alternating"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--score", "x"), "--better"),
        (("--score", "x", "--better", "higher"), "needs a group"),
        (("--score", "(", "--better", "higher"), "not a valid regular expression"),
        (("--better", "lower"), "--score"),
        (("--metric", "score"), "--score"),
        (("--score", "(x)", "--better", "lower", "--metric", "cpu"), "--score"),
    ],
)
def test_a_score_said_by_halves_is_refused(
    ensign: Ensign, options: tuple[str, ...], what: str
) -> None:
    done = ensign("compare", "true", "true", *options)
    assert done.status == 2
    assert what in " ".join(done.complaint.split())


def test_a_score_that_is_not_printed_is_a_failure(ensign: Ensign) -> None:
    done = ensign("compare", "true", "true", "--score", "(x)", "--better", "lower")
    assert done.status == 3
    assert "score is unknown" in done.complaint


@pytest.mark.parametrize("counts", [False, True])
def test_a_load_that_ends_by_the_clock(ensign: Ensign, programs: Programs, *, counts: bool) -> None:
    servers = [f"{programs.server} {{port}}", f"{programs.dear_server} {{port}}"]
    operations = ("--operations", r"(\d+) requests") if counts else ()
    load = f"{programs.load} {{port}} 400 timed"
    done = ensign("compare", *servers, "--load", load, *operations, *LONG)
    assert done.status == 0, done.err
    assert "self-timed" in codes(ensign)
    assert len(said(ensign)["comparisons"]) == int(counts)
    if counts:
        assert said(ensign)["experiment"]["mode"] == "alternating"
    else:
        assert "faster" not in done.said
        assert "slower" not in done.said


TIMED = (
    BATCH.replace('budget = "60s"', 'budget = "3000s"')
    .replace("-DWORK=1 -o spin spin.c", "-DWORK=1 -o spin until.c")
    .replace('command = ["{artifact}", "3000000"]', 'command = ["{artifact}", "KIND", "300"]')
)
FIXED = ('command = ["{artifact}", "1000000"]', 'command = ["{artifact}", "fixed", "300"]')


@pytest.mark.parametrize("kind", ["wall", "cpu"])
def test_a_workload_that_ends_by_the_clock_is_not_judged(ensign: Ensign, kind: str) -> None:
    write_study(ensign.folder, TIMED, FIXED, ("KIND", kind))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    found = json.loads(ensign("report", "study.toml", "--json", "-").out)
    timed = [each["subject"] for each in found["findings"] if each["code"] == "self-timed"]
    assert timed == ["long"]
    assert {each["workload"] for each in found["workloads"]} == {"short"}


@pytest.mark.parametrize(
    ("kind", "mode", "code"),
    [
        ("cpu", "", "self-timed"),
        ("wall", "", "self-timed"),
        # Nothing but slices shows who ends by the wall clock.
        ("wall", 'mode = "alternating"', "clock-unknown"),
    ],
)
def test_a_small_budget_lets_no_clock_be_judged(
    ensign: Ensign, kind: str, mode: str, code: str
) -> None:
    # Executions on purpose would take more than the share of the budget that is for them.
    small = TIMED.replace('budget = "3000s"', f'budget = "60s"\n{mode}').replace("300", "400")
    write_study(ensign.folder, small, (FIXED[0], FIXED[1].replace("300", "2")), ("KIND", kind))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    found = json.loads(ensign("report", "study.toml", "--json", "-").out)
    codes = ("self-timed", "clock-unknown")
    told = {each["subject"]: each["code"] for each in found["findings"] if each["code"] in codes}
    assert told["long"] == code
    assert {each["workload"] for each in found["workloads"]} == {"short"}


@pytest.mark.parametrize("kind", ["wall", "rusage"])
def test_a_study_of_clocks_alone_claims_nothing(ensign: Ensign, kind: str) -> None:
    only = ('command = ["{artifact}", "1000000"]', f'command = ["{{artifact}}", "{kind}", "300"]')
    write_study(ensign.folder, TIMED, only, ("KIND", kind))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    found = json.loads(ensign("report", "study.toml", "--json", "-").out)
    assert all(each["withheld"] for each in found["suite"])
    assert {each["direction"] for each in found["suite"]} == {"unclear"}


def test_a_workload_says_its_score(ensign: Ensign) -> None:
    score = 'score = { pattern = "done: ([0-9]+) rounds", unit = "rounds", better = "higher" }'
    write_study(
        ensign.folder, TIMED, FIXED, ("KIND", "wall"), ('"300"]\n', '"300"]\noutput = "null"\n')
    )
    path = ensign.folder / "study.toml"
    path.write_text(path.read_text().rstrip() + f"\n{score}\n")
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    found = json.loads(ensign("report", "study.toml", "--json", "-").out)
    assert "self-timed" not in {each["code"] for each in found["findings"]}
    assert {each["workload"] for each in found["workloads"]} == {"short", "long"}


def test_a_score_without_a_group_is_told_by_line(ensign: Ensign) -> None:
    score = 'score = { pattern = "rounds", better = "higher" }'
    write_study(ensign.folder, TIMED, FIXED, ("KIND", "wall"))
    path = ensign.folder / "study.toml"
    path.write_text(path.read_text().rstrip() + f"\n{score}\n")
    done = ensign("run", "study.toml")
    assert done.status == 2
    assert "needs a group" in " ".join(done.complaint.split())
