from __future__ import annotations

import re
from typing import Any

import pytest

from ensign.model.errors import CommandFailed
from ensign.model.study_workload import Workload
from ensign.model.trials import Better, NamedScore
from ensign.workloads import framework_text, google_benchmark, pyperf
from ensign.workloads.benchmarks import FRAMEWORKS
from ensign.workloads.kind import OwnRun
from ensign.workloads.registry import kind_of, may_end_by_the_clock


def _google(**changes: object) -> dict[str, object]:
    said = {"name": "BM_a", "run_name": "BM_a", "real_time": 3.0, "cpu_time": 2.0}
    return {**said, "time_unit": "us", **changes}


def _scores(*benchmarks: dict[str, object]) -> dict[str, NamedScore]:
    found = google_benchmark.scores({"context": {}, "benchmarks": list(benchmarks)})
    return {each.name: each for each in found}


def test_a_google_benchmark_has_its_cpu_time_in_seconds() -> None:
    found = _scores(_google())["BM_a"]
    assert (found.unit, found.better, found.failed) == ("s", Better.LOWER, "")
    assert found.value == pytest.approx(2e-6)


@pytest.mark.parametrize("name", ["BM_a/real_time", "BM_a/8/manual_time"])
def test_one_that_says_so_has_its_wall_time(name: str) -> None:
    assert _scores(_google(run_name=name))[name].value == pytest.approx(3e-6)


def test_repetitions_are_one_value_and_aggregates_are_none() -> None:
    repeated = [_google(cpu_time=time) for time in (1.0, 2.0, 6.0)]
    aggregates = [
        _google(run_type="aggregate", aggregate_name=name, cpu_time=99.0)
        for name in ("mean", "median", "stddev", "BigO")
    ]
    found = _scores(*repeated, *aggregates)
    assert list(found) == ["BM_a"]
    assert found["BM_a"].value == pytest.approx(3e-6)
    assert _scores(*aggregates)["BM_a"].value == pytest.approx(99e-6)


def test_aggregates_of_old_releases_are_no_benchmarks() -> None:
    def row(name: str, time: float) -> dict[str, object]:
        return {"name": name, "cpu_time": time, "real_time": time, "time_unit": "us"}

    rows = [row("BM_a", 1.0), row("BM_a", 3.0), row("BM_a_mean", 2.0), row("BM_a_stddev", 1.4)]
    found = _scores(*rows, row("BM_geo_mean", 5.0), row("BM_b_BigO", 1.0))
    assert list(found) == ["BM_a", "BM_geo_mean", "BM_b_BigO"]
    assert found["BM_a"].value == pytest.approx(2e-6)
    alone = _scores(*rows[2:])
    assert list(alone) == ["BM_a"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"error_occurred": True, "error_message": "no \x1b[2J file"}, r"it failed: no \x1b[2J"),
        ({"skipped": True, "skip_message": "later"}, "it failed: later"),
        ({"cpu_time": float("nan")}, "no number above 0"),
        ({"cpu_time": 0.0}, "no number above 0"),
        ({"time_unit": "parsecs"}, "no number above 0"),
    ],
)
def test_one_without_a_time_says_why(changes: dict[str, object], why: str) -> None:
    found = _scores(_google(name="BM_b", run_name="BM_b"), _google(**changes))
    assert found["BM_a"].value is None
    assert why in found["BM_a"].failed
    assert found["BM_b"].value is not None


def _pyperf(*benchmarks: dict[str, Any], **metadata: object) -> dict[str, object]:
    return {"version": "1.0", "metadata": metadata, "benchmarks": list(benchmarks)}


def test_a_pyperf_benchmark_is_the_mean_of_all_its_processes() -> None:
    runs = [{"warmups": [[1, 9.0]]}, {"values": [1.0, 2.0]}, {"values": [6.0]}]
    found = pyperf.scores(_pyperf({"runs": runs}, name="telco", unit="second"))
    assert found == (NamedScore("telco", 3.0, "s", Better.LOWER),)


def test_pyperf_names_stand_in_several_places() -> None:
    own = {"runs": [{"values": [1.0]}], "metadata": {"name": "a"}}
    of_run = {"runs": [{"values": [2.0], "metadata": {"name": "b"}}]}
    memory = {"runs": [{"values": [3.0]}], "metadata": {"name": "c", "unit": "byte"}}
    found = {each.name: each.value for each in pyperf.scores(_pyperf(own, of_run, memory))}
    assert found == {"a": 1.0, "b": 2.0, "c": None}


@pytest.mark.parametrize("read", [google_benchmark.scores, pyperf.scores])
@pytest.mark.parametrize(
    "document",
    [None, [], "x", {}, {"benchmarks": []}, {"benchmarks": [3]}, {"benchmarks": {"a": 1}}],
)
def test_what_is_no_report_is_refused(read: Any, document: object) -> None:
    with pytest.raises(CommandFailed, match="report"):
        read(document)


def test_no_more_benchmarks_than_anybody_has() -> None:
    many = [_google(name=f"BM_{n}", run_name=f"BM_{n}") for n in range(10_001)]
    with pytest.raises(CommandFailed, match="more than 10,000"):
        _scores(*many)


@pytest.mark.parametrize(
    ("framework", "option"),
    [
        ("google-benchmark", "--benchmark_out={tmp}/google-benchmark.json"),
        ("pyperf", "{tmp}/pyperf.json"),
        ("criterion", "--noplot"),
        ("libtest", "--bench"),
    ],
)
def test_a_framework_is_told_to_write_its_figures(framework: str, option: str) -> None:
    workload = Workload.model_validate(
        {"name": "w", "command": ["{artifact}", "x"], "benchmarks": framework}
    )
    run = kind_of(workload).processes(workload, None)
    assert isinstance(run, OwnRun)
    assert run.argv[:2] == ("{artifact}", "x")
    assert option in run.argv
    assert bool(run.scores) is (run.report is None)
    assert run.env == FRAMEWORKS[framework].env
    assert workload.by_turns
    assert not may_end_by_the_clock(workload)


CRITERION = """\
one                     time:   [3.1106 ns 3.9027 ns 4.9047 ns]

a group with a rather long name/f/5000
                        time:   [40.345 µs 59.187 µs 86.998 µs]
                        thrpt:  [57.473 Melem/s 84.478 Melem/s 123.93 Melem/s]
                 change:
                        time:   [-1.2000% +0.1000% +2.0000%] (p = 0.50 > 0.05)
by cycles               time:   [516.68 cycles 741.92 cycles 983.82 cycles]
Found 2 outliers among 10 measurements (20.00%)
"""


def test_criterions_own_estimates_are_read_to_their_last_digit() -> None:
    pattern = FRAMEWORKS["criterion"].pattern
    assert pattern is not None
    found = [(each["name"], each["value"]) for each in re.finditer(pattern.pattern, CRITERION)]
    assert found == [
        ("one", "3.9027 ns"),
        ("a group with a rather long name/f/5000", "59.187 µs"),
    ]
    # Two variants at once must not write into one folder.
    assert dict(FRAMEWORKS["criterion"].env) == {"CRITERION_HOME": "{tmp}/criterion"}


def test_few_whole_nanoseconds_of_rusts_harness_are_no_figure() -> None:
    text = """\
running 4 tests
test sum  ... bench:       1,234 ns/iter (+/- 56)
test tiny ... bench:           2 ns/iter (+/- 0)
test fine ... bench:           2.25 ns/iter (+/- 0.10)
test odd  ... bench:       1.2.3 ns/iter (+/- 0)
test not_a_benchmark ... ignored
"""
    found = {each.name: each for each in framework_text.scores(text)}
    assert found["sum"].value == pytest.approx(1.234e-6)
    assert found["fine"].value == pytest.approx(2.25e-9)
    assert found["tiny"].value is None
    assert "whole nanoseconds" in found["tiny"].failed
    assert found["odd"].value is None
    assert set(found) == {"sum", "tiny", "fine", "odd"}
    with pytest.raises(CommandFailed, match="no benchmark"):
        framework_text.scores("running 0 tests\n")
