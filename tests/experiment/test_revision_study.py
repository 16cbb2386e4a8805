"""The study that `compare --revisions` is."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ensign.experiment.compare.options import Options
from ensign.experiment.revisions import CheckedOut, study_text
from ensign.experiment.study_file import StudyFile, parse_study
from ensign.model.errors import InputError
from ensign.model.trials import Metric, Mode

TRACKED = ("input", "sub/data", "sub/run.sh", "sub")
AT = CheckedOut("/repository", ("main", "HEAD~1"), "", TRACKED.__contains__)
OPTIONS = Options(("./program input",), build="make -j4")


def studied(options: Options, at: CheckedOut = AT) -> StudyFile:
    """As it is read: with nothing wrong in it."""
    return parse_study(study_text(options, at), Path("revisions.toml"))


def test_the_study_of_a_plain_command() -> None:
    file = studied(OPTIONS)
    study = file.study
    assert [(each.name, each.choices) for each in file.variants] == [
        ("main", (("revision", "main"),)),
        ("HEAD-1", (("revision", "HEAD~1"),)),
    ]
    assert study.build.commands == [["make", "-j4"]]
    assert (study.build.artifact, study.build.runtime_files) == ("program", ["input"])
    assert (study.layouts.variants, study.layouts.count) == ("all", None)
    (workload,) = study.workloads
    assert (workload.name, workload.command) == ("command", ["{artifact}", "input"])
    assert workload.folder == "{files}"
    race = study.race
    assert (race.margin, race.budget, race.precision, race.rounds) == (None, "30s", "0.5%", None)


def test_what_is_asked_of_the_race() -> None:
    asked = replace(
        OPTIONS, margin=0.02, budget_ns=90 * 10**9, precision=0.003, metric=Metric.WALL,
        mode=Mode.ALTERNATING, level=0.99, seed=7, slice_ns=2_500_000, cpus=(1,),
        ports=(21_000, 22_000),
    )  # fmt: skip
    study = studied(asked).study
    race = study.race
    assert (race.margin, race.budget, race.precision) == ("2%", "90s", "0.3%")
    assert (race.metric, race.mode, race.level, race.seed) == ("wall", "alternating", 0.99, 7)
    assert (race.slice, race.ports, study.cpus.server) == ("2500us", (21_000, 22_000), [1])
    exact = studied(replace(OPTIONS, runs=4)).study
    assert (exact.race.rounds, exact.race.precision) == (4, None)
    assert exact.layouts is not None
    assert exact.layouts.count == 4
    least = studied(replace(OPTIONS, min_runs=20)).study.race
    assert (least.rounds, least.precision) == (20, "0.5%")


def test_below_the_top_paths_begin_there() -> None:
    below = replace(AT, inside="sub", files=("plugins/*.so",))
    options = Options(("sh run.sh bin/program data",), build="make", input="data")
    study = studied(options, below).study
    assert study.build.commands == [["env", "-C", "sub", "make"]]
    assert study.build.artifact == "sub/bin/program"
    assert study.build.runtime_files == ["sub/", "sub/data", "sub/plugins/*.so", "sub/run.sh"]
    (workload,) = study.workloads
    assert workload.command == ["sh", "run.sh", "bin/program", "data"]
    assert (workload.folder, workload.stdin) == ("{files}/sub", "{files}/sub/data")


def test_each_workload_and_each_value_of_a_parameter_is_a_workload() -> None:
    options = replace(OPTIONS, commands=("./program 1", "./program 2"), workloads=("a=x", "b=y"))
    study = studied(options).study
    assert [(each.name, each.command) for each in study.workloads] == [
        ("a-program-1", ["{artifact}", "1", "x"]),
        ("a-program-2", ["{artifact}", "2", "x"]),
        ("b-program-1", ["{artifact}", "1", "y"]),
        ("b-program-2", ["{artifact}", "2", "y"]),
    ]


def test_files_are_found_in_what_a_shell_is_handed_and_behind_placeholders() -> None:
    options = Options(
        ("cat {workload} | ./program >x",), build="make", shell="/bin/sh", workloads=("a=sub/data",)
    )
    study = studied(options).study
    assert study.build.commands == [["/bin/sh", "-c", "make"]]
    assert (study.build.artifact, study.build.runtime_files) == ("program", ["sub/data"])
    assert study.workloads[0].command == ["/bin/sh", "-c", "cat sub/data | ./program >x"]


def test_braces_of_others_mean_nothing() -> None:
    options = Options(
        ("./program '{print}' {tmp}",), build="""make X='{"a": 1} {b}' -j{jobs}""", env=("A={c}",)
    )
    study = studied(options).study
    assert study.build.commands == [["make", 'X={"a": 1} {{b}}', "-j{jobs}"]]
    assert study.workloads[0].command == ["{artifact}", "{{print}}", "{tmp}"]
    assert study.workloads[0].env == {"A": "{{c}}"}


def test_a_server_begins_in_its_checkout() -> None:
    options = Options(("./program {port}",), build="make", load=("./bench {port} input",))
    study = studied(options).study
    assert study.server is not None
    assert study.server.command == ["env", "-C", "{files}", "{artifact}", "{port}"]
    (workload,) = study.workloads
    assert study.build.runtime_files == ["bench", "input"]
    assert (workload.load, workload.operations) == (
        ["{files}/bench", "{port}", "{files}/input"],
        1,
    )


def test_what_runs_before_executions_is_the_studys_too() -> None:
    study = studied(
        replace(OPTIONS, prepare=("cp sub/run.sh {tmp}",), warmup=2, ignore_failure=True)
    )
    (workload,) = study.study.workloads
    assert workload.prepare == ["cp", "{files}/sub/run.sh", "{tmp}"]
    assert workload.ignore_failure
    assert study.study.race.warmup == 2


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"build": None}, "needs --build"),
        ({"setup": ("x",)}, "--setup has no place.*put it into --build"),
        ({"cleanup": ("x",)}, "--cleanup has no place"),
        ({"twin": False}, "--no-twin"),
        ({"max_runs": 3}, "--max-runs has no place"),
        ({"output": "inherit"}, "--output FILE"),
        ({"commands": ("python3 sub/run.sh",)}, "names none by its path.*git worktree add"),
        ({"commands": ("/bin/program",)}, "names none by its path"),
        ({"commands": ("../program",)}, "leads out of the repository"),
        (
            {"commands": ("./program {port} 1", "./program {port} 2"), "load": ("x {port}",)},
            "one server",
        ),
        ({"runs": 2, "min_runs": 2}, "--runs is an exact number"),
    ],
)
def test_what_has_no_place_in_it(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        study_text(replace(OPTIONS, **changes), AT)


def test_names_may_have_any_characters() -> None:
    name = 'a"b\\c\x7fé'
    text = study_text(OPTIONS, replace(AT, names=("main", name)))
    assert tomllib.loads(text)["axes"]["revision"] == ["main", name]
