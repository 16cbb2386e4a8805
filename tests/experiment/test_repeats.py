"""Rounds in which some workloads are executed several times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ensign.experiment.machine import CpuPlan
from ensign.experiment.study.repeats import summed
from ensign.experiment.study.round_plan import RoundPlan
from ensign.experiment.study.rounds import RaceContext, race_plan, round_findings
from ensign.experiment.study.variants import VariantSet
from ensign.meter.records import TrialPlace, trials
from ensign.model.study import Study
from ensign.model.trials import SliceRecord, TaskActivity, Trial, VariantFailure
from ensign.store.folder import StudyFolder
from races import SimulatedMeter, execution

MS = 1_000_000
START = {"type": "start", "schema": 1, "freezer": "cgroup", "mode": "interleaved"}
VARIANTS = VariantSet(
    (("gcc-O2", "/b/gcc-O2"), ("gcc-O3", "/b/gcc-O3")), {}, CpuPlan((1,), (0,), (0,))
)


def a_study(**race: object) -> Study:
    return Study.model_validate(
        {
            "name": "s",
            "layouts": "natural",
            "source": {"kind": "path", "path": "x"},
            "build": {"commands": [["make"]], "artifact": "program"},
            "axes": {"compiler": ["gcc-12"], "optimization": ["-O2", "-O3"]},
            "baseline": {"compiler": "gcc-12", "optimization": "-O2"},
            "race": {"budget": "60s", "rounds": 8, **race},
            "workloads": [
                {"name": name, "command": ["{artifact}", name]} for name in ("still", "noisy")
            ],
        }
    )


def raced(folder: Path, study: Study, allowed_ns: int) -> tuple[RoundPlan, tuple[Trial, ...]]:
    """Of `noisy` every other execution costs a tenth more for one variant."""

    def cost_ns(variant: str, number: int) -> int:
        argv = meter.requests[-1][1]["variants"][0]["program"]["argv"]  # type: ignore[index]
        noisy = argv[-1] == "noisy" and variant == "gcc-O3" and number % 2
        return 11 * MS if noisy else 10 * MS

    meter = SimulatedMeter(cost_ns)
    requests = {workload.name: None for workload in study.workloads}
    plan = RoundPlan(
        "key", 8, requests, 10**9, closed=False, allowed_ns=allowed_ns, round_ns=60 * MS, pilots=3
    )
    context = RaceContext(
        meter, meter, StudyFolder(folder), lambda _: None, lambda _: None, lambda _: None
    )
    return race_plan(context, study, VARIANTS, plan)


def executions(found: tuple[Trial, ...], workload: str) -> list[int]:
    own = [trial for trial in found if trial.workload == workload]
    return [trial.variant("gcc-O2").operations for trial in own]


def test_time_that_rounds_leave_goes_to_the_widest(tmp_path: Path) -> None:
    plan, found = raced(tmp_path, a_study(executions=4), allowed_ns=2000 * MS)
    assert plan.executions["noisy"] == 4
    assert executions(found, "noisy") == [1, 1, 1, 4, 4, 4, 4, 4]
    assert found[-1].variant("gcc-O2").cpu_ns == 10 * MS * found[-1].variant("gcc-O2").operations
    (said,) = round_findings(a_study(executions=4), plan)
    assert said.code == "dealt-by-need"
    assert "noisy (4)" in said.text


@pytest.mark.parametrize(
    ("race", "allowed_ns"),
    [({}, 2000 * MS), ({"executions": 4}, 500 * MS)],
    ids=["not asked for", "no time left"],
)
def test_otherwise_each_has_one(tmp_path: Path, race: dict[str, object], allowed_ns: int) -> None:
    plan, found = raced(tmp_path, a_study(**race), allowed_ns)
    assert plan.executions == {}
    assert set(executions(found, "noisy")) == {1}
    assert round_findings(a_study(), plan) == ()


def a_trial(ns: int) -> Trial:
    costs = {"gcc-O2": ns, "gcc-O3": 2 * ns, "twin": ns}
    (found,) = trials([START, *execution(0, costs)], TrialPlace("w", 4, 1, 5 * MS))
    return found


def test_costs_add_up_and_one_alone_stays_as_it_is() -> None:
    a, b = a_trial(10 * MS), a_trial(30 * MS)
    assert summed([a]) is a
    found = summed([a, b])
    assert (found.round_index, found.workload) == (4, "w")
    assert found.wall_ns == a.wall_ns + b.wall_ns
    totals = found.variant("gcc-O3")
    assert (totals.cpu_ns, totals.operations) == (80 * MS, 2)
    assert found.running_share == pytest.approx(
        (a.running_share * a.wall_ns + b.running_share * b.wall_ns) / found.wall_ns
    )


def test_what_was_looked_at_is_there_where_all_were_looked_at() -> None:
    def looked(trial: Trial, activity: TaskActivity | None) -> Trial:
        each = (replace(totals, activity=activity) for totals in trial.variants)
        return replace(trial, variants=tuple(each))

    a, b = a_trial(MS), a_trial(MS)
    one = TaskActivity(looks=2, observed_ns=10, most_tasks=3, reads=4)
    other = TaskActivity(looks=3, observed_ns=20, most_tasks=2, reads=1)
    both = summed([looked(a, one), looked(b, other)]).variants[0].activity
    assert both == TaskActivity(looks=5, observed_ns=30, most_tasks=3, reads=5)
    assert summed([looked(a, one), looked(b, None)]).variants[0].activity is None


def test_a_variant_that_fails_once_is_out_of_the_trial() -> None:
    failure = VariantFailure("gcc-O3", "crashed", "it crashed")
    b = replace(a_trial(MS).without({"gcc-O3"}), failures=(failure,))
    found = summed([a_trial(MS), b])
    assert [totals.variant for totals in found.variants] == ["gcc-O2", "twin"]
    assert found.failures == (failure,)


def test_slices_follow_each_other() -> None:
    one = SliceRecord("gcc-O2", 0, 5, 5, 0, filler=False)
    a = replace(a_trial(MS), slices=(one, replace(one, start_ns=5)))
    found = summed([a, a])
    assert [each.start_ns for each in found.slices] == [0, 5, 10, 15]
