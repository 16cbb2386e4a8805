"""Studies whose servers are driven by ensign's own load generator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ensign.builders.training import TrainingRun
from ensign.experiment.machine import CpuPlan
from ensign.experiment.study.budget import Demand, WorkloadPilot, fitted
from ensign.experiment.study.record import commands_of
from ensign.experiment.study.run import suite_facts, suite_findings
from ensign.experiment.study.variants import VariantSet, race_request, training_request
from ensign.experiment.study_file import StudyFile, parse_study
from ensign.meter.requests import race_json
from ensign.model.errors import InputError, StudyError
from ensign.model.study import Study
from ensign.model.study_suite import Suite

STUDY = """\
name = "demo"

[source]
kind = "path"
path = "."

[build]
commands = [["make"]]
artifact = "demo"

[axes]
compiler = ["gcc-12"]
pgo = ["off", "on"]

[baseline]
compiler = "gcc-12"
pgo = "off"

[server]
command = ["{artifact}", "{port}"]

[race]
mode = "driven"

[[training.workloads]]
name = "learn"
requests = 300
drive = { commands = [{ argv = ["INCR", "a"] }] }

[[workloads]]
name = "get"
server_args = ["--save", "", "--dir", "{tmp}"]
preload = [
    ["fill", "{port}", "{requests}"],
    { drive = { operations = 90, connections = 3, commands = [{ argv = ["INCR", "a"] }] } },
]
drive = { pipeline = 4, commands = [{ argv = ["GET", "{key}"], keys = { last = 89 } }] }
"""
FIELD = VariantSet((("gcc-12", "/bin/a"),), {}, CpuPlan((0,), (1,), (0, 1)))


def file_of(text: str = STUDY) -> StudyFile:
    return parse_study(text, Path("s.toml"))


def error_of(text: str) -> str:
    with pytest.raises(StudyError) as raised:
        file_of(text)
    return str(raised.value).splitlines()[0]


def test_every_variant_gets_the_same_requests() -> None:
    study = file_of().study
    request = race_request(study, FIELD, study.workloads[0], 700, seed=9)
    said: Any = race_json(request)
    assert said["mode"] == "driven"
    one, twin = said["variants"]
    assert one["load"] == twin["load"]
    assert one["load"]["cpus"] == [1]
    drive = one["load"]["drive"]
    assert (drive["operations"], drive["seed"], drive["pipeline"]) == (700, 9, 4)
    process, step = one["preload"]
    assert process["argv"] == ["fill", "{port}", "700"]
    assert list(step) == ["drive"]
    assert (step["drive"]["operations"], step["drive"]["seed"]) == (90, 9)
    assert one["program"]["argv"] == ["/bin/a", "{port}", "--save", "", "--dir", "{tmp}"]


def test_training_drives_are_raced_whole() -> None:
    study = file_of().study
    assert study.training is not None
    (workload,) = study.training.workloads
    run = TrainingRun(Path("/bin/c"), workload, (("P", "x"),), {}, 10**9)
    said: Any = race_json(training_request(study, FIELD, run))
    assert said["mode"] == "alternating"
    assert said["variants"][0]["load"]["drive"]["operations"] == 300


def test_operations_come_from_the_pilot_unless_fixed() -> None:
    pilots = {"get": WorkloadPilot(1000, 10_000_000, 0)}
    study = file_of().study
    found = fitted(Demand(study, pilots, 1), 0).requests["get"]
    assert found is not None
    assert found > 10_000
    fixed = file_of(STUDY.replace("pipeline = 4,", "pipeline = 4, operations = 60,")).study
    assert fitted(Demand(fixed, pilots, 1), 0).requests == {"get": 60}


def test_people_see_what_is_sent() -> None:
    study = file_of().study
    assert commands_of(study, {"get": 40})[1] == (
        "get",
        "40 operations of GET {key} (50 connections, pipeline 4)",
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'mode = "driven"',
            'mode = "interleaved"',
            "s.toml:37: workload 'get' has a 'drive'",
        ),
        ("drive = { pipe", 'load = ["{port}{requests}"]\n#', "workload 'get' has no 'drive'"),
        ("operations = 90, ", "", "a drive in 'preload' of workload 'get' needs 'operations'"),
        ("requests = 300", "", "training workload 'learn' has a 'drive': add 'requests'"),
        ("drive = { pipe", 'load = ["x"]\ndrive = { pipe', "exactly one of 'load', 'drive'"),
        ("drive = { pipe", 'deadline = "5s"\ndrive = { pipe', "means nothing to a drive"),
        ("pipeline = 4", "pipelin = 4", "s.toml:37: unknown key 'pipelin' in [workloads.drive]"),
        ("pipeline = 4", "pipeline = 4, latency = true", "needs slices of 250ms or more"),
        ('"{tmp}"]', '"{tmo}"]', "placeholder {tmo} is unknown"),
    ],
)
def test_mistakes_have_a_line(old: str, new: str, said: str) -> None:
    assert old in STUDY
    assert said in error_of(STUDY.replace(old, new))


def test_a_study_needs_workloads_or_a_suite() -> None:
    without = STUDY[: STUDY.index("[[workloads]]")]
    assert "no [[workloads]], and no [suite]" in error_of(without)
    tests = '[suite]\nkind = "redis-benchmarks-specification"\npath = "."\ntests = ["a"]\n'
    assert file_of(without + tests).study.workloads == []
    pinned = tests.replace('path = "."', 'version = "1.0"')
    assert "needs 'version' and 'sha256', or 'path'" in error_of(without + pinned)


def test_a_suite_that_cannot_be_had_is_an_error_of_its_line() -> None:
    tests = '\n[suite]\nkind = "redis-benchmarks-specification"\npath = "."\ntests = ["a"]\n'

    def refuse(_: Study) -> Study:
        raise InputError("no test is called 'a'")

    with pytest.raises(StudyError, match=r"s.toml:39: no test is called 'a'"):
        parse_study(STUDY + tests, Path("s.toml"), expand=refuse)


def test_reports_say_the_scale() -> None:
    suite = Suite(kind="redis-benchmarks-specification", path="specs", tests=["*"], scale=0.1)
    facts = dict(suite_facts(suite))
    assert facts["suite"] == "redis-benchmarks-specification, folder specs"
    assert "times 0.1, sizes of values as published" in facts["suite scale"]
    (finding,) = suite_findings(suite)
    assert facts["suite scale"] in finding.text
    assert "one thread" in finding.text
    whole = suite.model_copy(update={"scale": 1.0})
    assert dict(suite_facts(whole))["suite scale"] == "as published"
    assert suite_findings(None) == ()
    assert suite_facts(None) == ()
