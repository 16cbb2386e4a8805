from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ensign.experiment.judge import trial_findings
from ensign.experiment.record import Record
from ensign.experiment.study.record import read_record, write_record
from ensign.experiment.study.result import study_result
from ensign.experiment.study.round_plan import RoundPlan, with_longer_slices
from ensign.meter.records import TrialPlace, trials
from ensign.model.builds import BuildFacts, BuildStatus
from ensign.model.comparisons import AxisChange, Direction
from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.model.results import MachineFacts
from ensign.model.study import Study
from ensign.model.trials import Trial
from ensign.store.folder import StudyFolder
from races import execution

STUDY = Study.model_validate(
    {
        "name": "s",
        "layouts": "natural",
        "source": {"kind": "path", "path": "x"},
        "build": {"commands": [["make"]], "artifact": "program"},
        "axes": {"compiler": ["gcc-12"], "optimization": ["-O2", "-O3"]},
        "baseline": {"compiler": "gcc-12", "optimization": "-O2"},
        "race": {"rounds": 6, "slice_check": ["b"]},
        "workloads": [{"name": name, "command": ["{artifact}", name]} for name in ("a", "b")],
    }
)
RECORD = Record(
    key="key",
    raced=("gcc-O2", "gcc-O3"),
    rounds_planned=6,
    builds=(),
    machine=MachineFacts(()),
    findings=(),
    commands=(),
    toolchains=(),
    source=(),
    version="0",
    made_at="now",
    complete=True,
)
START = {"type": "start", "schema": 1, "freezer": "cgroup", "mode": "interleaved"}


def swept(rounds: int, ratio: float, seed: int = 1) -> tuple[Trial, ...]:
    rng = np.random.default_rng(seed)
    done: list[Trial] = []
    for workload in ("a", "b"):
        for round_index in range(rounds):
            noise = rng.normal(1, 0.002, 3)
            costs = dict(
                zip(
                    ("gcc-O2", "gcc-O3", "twin"),
                    (int(1e8 * n * r) for n, r in zip(noise, (1, ratio, 1), strict=True)),
                    strict=True,
                )
            )
            place = TrialPlace(workload, round_index, 1, 5_000_000)
            done += trials([START, *execution(0, costs)], place)
    return tuple(done)


def test_the_geomean_and_every_workload_of_every_variant_are_there() -> None:
    result = study_result(STUDY, RECORD, swept(6, 0.9))
    assert [row.comparison.variant for row in result.suite] == ["gcc-O3", "twin"]
    faster, twin = (row.comparison for row in result.suite)
    assert faster.direction is Direction.FASTER
    assert faster.low < 0.9 < faster.high
    assert twin.low < 1 < twin.high
    assert result.suite[0].non_inferior is True
    assert {(row.workload, row.comparison.variant) for row in result.workloads} == {
        (workload, variant) for workload in ("a", "b") for variant in ("gcc-O3", "twin")
    }
    assert (result.rounds_done, result.rounds_planned) == (6, 6)
    beside = result.suite[0].comparison.beside
    assert beside is not None
    assert beside.other.metric.value == "wall"


def test_the_bands_count_every_workload_of_every_variant() -> None:
    result = study_result(STUDY, RECORD, swept(6, 0.9))
    assert result.band_edges == (-0.01, 0.01, 0.05, 0.10, 0.20)
    faster, twin = result.bands
    assert (faster.variant, faster.by_mean) == ("gcc-O3", (0, 0, 0, 0, 2, 0))
    assert (twin.variant, twin.by_mean) == ("twin", (0, 2, 0, 0, 0, 0))
    assert sum(twin.by_minimum) == 2


def test_workloads_that_differ_are_named() -> None:
    result = study_result(STUDY, RECORD, swept(6, 0.9))
    faster, twin = result.significant
    assert (faster.variant, faster.slower, faster.faster) == ("gcc-O3", (), ("a", "b"))
    assert (twin.variant, twin.slower, twin.faster) == ("twin", (), ())


def test_effects_of_the_axes_are_read_with_the_other_metric_beside() -> None:
    levels = {"gcc-O2": "-O2", "gcc-O3": "-O3"}
    builds = tuple(
        BuildFacts(name, (("compiler", "gcc-12"), ("optimization", level)), "", (), (),
                   BuildStatus.BUILT, 1.0, 1, 1, name)
        for name, level in levels.items()
    )  # fmt: skip
    result = study_result(STUDY, replace(RECORD, builds=builds), swept(6, 0.9))
    (effect,) = result.factorial.main
    assert effect.changes == (AxisChange("optimization", "-O2", "-O3"),)
    assert effect.comparison.ratio == pytest.approx(result.suite[0].comparison.ratio)
    assert effect.significant
    assert effect.other is not None
    assert effect.other.metric.value == "wall"


def test_half_a_round_does_not_count() -> None:
    result = study_result(STUDY, RECORD, swept(6, 0.9)[:-2])
    assert result.rounds_done == 4
    assert "incomplete-rounds" in [finding.code for finding in result.findings]


def test_without_a_whole_round_there_is_no_result() -> None:
    with pytest.raises(InputError):
        study_result(STUDY, RECORD, swept(1, 0.9)[:1])


def test_a_ratio_that_moves_with_the_slice_is_a_warning() -> None:
    usual = swept(6, 0.9)
    same = study_result(STUDY, RECORD, usual, swept(6, 0.9, seed=2))
    moved = study_result(STUDY, RECORD, usual, swept(6, 0.95, seed=2))

    def severity(findings: tuple[Finding, ...]) -> Severity:
        (found,) = (finding for finding in findings if finding.code == "slice-length")
        return found.severity

    assert severity(same.findings) is Severity.NOTE
    assert severity(moved.findings) is Severity.WARNING


def test_the_check_races_only_what_was_chosen_at_four_times_the_slice() -> None:
    longer, plan = with_longer_slices(STUDY, RoundPlan("key", 6, {"a": None, "b": None}, 0))
    assert [workload.name for workload in longer.workloads] == ["b"]
    assert longer.race.slice == "20000000ns"
    assert plan.key != "key"


def test_a_doubt_of_many_trials_is_one_finding_that_counts_them() -> None:
    doubt = Finding("overshoot", Severity.WARNING, "took 9 ms", "gcc-O3")
    doubtful = [replace(trial, findings=(doubt, doubt)) for trial in swept(3, 1.0)[:4]]
    (finding,) = trial_findings(doubtful)
    assert finding.text == "gcc-O3: took 9 ms (executions with it: a 3 of 3, b 1 of 1)"


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    assert read_record(folder) is None
    write_record(folder, RECORD)
    assert read_record(folder) == RECORD
    folder.write_json("study", {"key": 1})
    with pytest.raises(InputError, match="damaged"):
        read_record(folder)
