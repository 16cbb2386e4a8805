from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from ensign.experiment.groups import (
    group_count,
    groups_for,
    in_groups,
    merged,
    variants_together,
)
from ensign.experiment.machine import CpuPlan
from ensign.experiment.study.budget import (
    SPREAD_EXECUTIONS,
    Demand,
    WorkloadPilot,
    most_variants_of,
    spread_variants,
)
from ensign.experiment.study.pilots import one_trial
from ensign.experiment.study.round_plan import fixed_plan, plan_findings
from ensign.experiment.study.variants import VariantSet, race_request
from ensign.model.study_axes import Layouts
from ensign.model.trials import TWIN, Metric, Mode, SliceRecord, Trial, VariantTotals
from ensign.stats.rounds import round_costs
from ensign.stats.trials import log_cost
from ensign.store.folder import StudyFolder
from experiment.test_study_racing import a_study, race_all, site_of
from races import SimulatedMeter

MS = 1_000_000
NAMES = ("base", "a", "b", "c", "d", "e")
VARIANTS = VariantSet(
    tuple((name, f"/b/{name}") for name in NAMES), {"bench": "/b/l"}, CpuPlan((1,), (0,), (0,))
)


def test_each_group_has_the_baseline_and_everyone_races_once() -> None:
    study = a_study()
    all_of_them = race_request(study, VARIANTS, study.workloads[0], 100, seed=3)
    groups = in_groups(all_of_them, 4)
    assert len(groups) == group_count(5, 4) == 3
    assert all(group.variants[0] == all_of_them.variants[0] for group in groups)
    assert all(group.variants[-1] == all_of_them.variants[-1] for group in groups)
    assert sorted(each.name for group in groups for each in group.variants[1:-1]) == list("abcde")
    seeded = (in_groups(replace(all_of_them, seed=seed), 4) for seed in range(20))
    dealt = {tuple(tuple(each.name for each in one.variants) for one in all_) for all_ in seeded}
    assert len(dealt) > 1
    assert in_groups(all_of_them, None) == (all_of_them,)
    assert len(in_groups(all_of_them, 7)) == 1
    assert len(in_groups(all_of_them, 3)) == 5


@pytest.mark.parametrize(
    ("peak_bytes", "memory_bytes", "fits"),
    [(10, None, 25), (0, 5, 25), (10, 10_000, 25), (10, 150, 10), (10, 1, 3)],
)
def test_memory_says_how_many_fit(peak_bytes: int, memory_bytes: int | None, fits: int) -> None:
    assert most_variants_of(peak_bytes, memory_bytes, 25) == fits


def drifting(variant: str, execution: int) -> int:
    """Each race is slower than the one before by 30 %; `c` costs a tenth more than the baseline."""
    return round(100 * MS * 1.3**execution * (1.1 if variant == "c" else 1.0))


def test_ratios_are_to_the_baseline_of_the_own_group() -> None:
    study = a_study()
    meter = SimulatedMeter(drifting)
    variants = replace(VARIANTS, most_variants=4)
    trial = one_trial(meter, study, variants, study.workloads[0], 100, round_index=2)
    assert len(meter.requests) == 3
    assert [len(group) for group in trial.groups] == [4, 4, 3]
    assert [group[0] for group in trial.groups] == ["base", "base (group 2)", "base (group 3)"]
    costs = round_costs([trial], (*NAMES, TWIN), (trial.workload,), Metric.CPU)
    for name in ("a", "b", "d", "e", TWIN):
        assert costs.log_ratios(name, "base")[0, 0] == pytest.approx(0, abs=1e-6)
    assert costs.log_ratios("c", "base")[0, 0] == pytest.approx(math.log(1.1), abs=1e-6)


def test_slices_of_the_groups_follow_each_other() -> None:
    totals = VariantTotals("base", 5, 5, 5, 0, 0, 1, 0, 0, 0, 1)
    one = Trial(
        "w", 0, 1, Mode.INTERLEAVED, "cgroup", 5, 0.0, 40, 0.5,
        (replace(totals, variant="a"), totals), (SliceRecord("a", 0, 30, 5, 0, filler=False),),
    )  # fmt: skip
    both = merged([one, replace(one, running_share=1.0)], "base")
    assert [each.start_ns for each in both.slices] == [0, 30]
    assert (both.wall_ns, both.running_share) == (80, 0.75)
    assert both.groups == (("base", "a"), ("base (group 2)", "a"))
    assert merged([one], "base") is one


def test_a_trial_of_one_race_is_as_it_was() -> None:
    study = a_study()
    trial = one_trial(
        SimulatedMeter(drifting), study, VARIANTS, study.workloads[0], 9, round_index=0
    )
    assert trial.groups == ()
    assert log_cost(trial, "c", Metric.CPU) == pytest.approx(math.log(110 * MS))


def test_a_study_whose_variants_do_not_fit_says_so_and_plans_the_extra_runs(tmp_path: Path) -> None:
    study, folder = a_study(), StudyFolder(tmp_path)
    meter = SimulatedMeter(lambda _variant, _n: 80 * MS, peak_memory_bytes=1000)
    small = replace(VARIANTS, memory_bytes=6000)
    plan = fixed_plan(site_of(meter, folder), study, small, "key")
    assert plan.most_variants == {"set": 4, "get": 4, "incr": 4}
    assert [each.code for each in plan_findings(plan)].count("raced-in-groups") == 3
    pilots = {each.name: WorkloadPilot(1, MS, 0, most_variants=4) for each in study.workloads}
    lengths = dict.fromkeys(pilots, 1.0)
    assert Demand(study, pilots, 5).execution_ns("set", lengths) == 3 * 2 + 5
    assert Demand(study, {}, 5).execution_ns("set", lengths) == 2 + 5
    race_all(meter, study, small, plan, folder)
    assert all(len(trial.groups) == 3 for trial in folder.trials("key"))
    again = fixed_plan(site_of(meter, folder), study, small, "key")
    assert again == plan


def test_the_relinks_of_the_baseline_and_the_finalists_are_grouped_and_counted_too() -> None:
    plain = a_study()
    layouts = Layouts(count=20, variants="baseline")
    relinked = plain.model_copy(update={"layouts": layouts})
    assert spread_variants(relinked) == 22
    lengths = {each.name: 1.0 for each in plain.workloads}
    assert Demand(plain, {}, 1).extras_ns(lengths) == 0
    assert Demand(relinked, {}, 1).extras_ns(lengths) == SPREAD_EXECUTIONS * 22 * 3
    # Twenty variants, three beside baseline and twin: seven races.
    grouped = Demand(relinked, {}, 1, together=5).extras_ns(lengths)
    assert grouped == SPREAD_EXECUTIONS * (22 + 6 * 2) * 3
    meter = SimulatedMeter(lambda _variant, _n: 80 * MS, peak_memory_bytes=1000)
    pair = replace(VARIANTS, artifacts=VARIANTS.artifacts[:2], memory_bytes=15_000)
    with TemporaryDirectory() as folder:
        plan = fixed_plan(site_of(meter, StudyFolder(Path(folder))), relinked, pair, "key")
    assert plan.most_variants == {"set": 10, "get": 10, "incr": 10}


def test_variants_of_a_later_group_are_against_both_copies_of_its_own_baseline() -> None:
    costs = {"base": 100, TWIN: 104, "base (group 2)": 200, "twin (group 2)": 204, "a": 1, "b": 220}
    one = VariantTotals("", 5, 5, 5, 0, 0, 1, 0, 0, 0, 1)
    variants = tuple(replace(one, variant=name, cpu_ns=cost) for name, cost in costs.items())
    groups = (("base", "a", TWIN), ("base (group 2)", "b", "twin (group 2)"))
    trial = Trial("w", 0, 1, Mode.INTERLEAVED, "", 5, 0.0, 40, 0.5, variants, (), groups=groups)
    found = round_costs([trial], ("base", "a", "b", TWIN), ("w",), Metric.CPU)
    own = (math.log(200) + math.log(204)) / 2
    assert found.log_ratios("b", "base")[0, 0] == pytest.approx(math.log(220) - own)
    assert found.log_ratios(TWIN, "base")[0, 0] == pytest.approx(math.log(1.04))


def test_a_group_whose_twin_failed_is_against_its_baseline_alone() -> None:
    one = VariantTotals("", 5, 5, 5, 0, 0, 1, 0, 0, 0, 1)
    costs = {"base": 100, TWIN: 104, "base (group 2)": 200, "b": 220}
    variants = tuple(replace(one, variant=name, cpu_ns=cost) for name, cost in costs.items())
    groups = (("base", TWIN), ("base (group 2)", "b"))
    trial = Trial("w", 0, 1, Mode.INTERLEAVED, "", 5, 0.0, 40, 0.5, variants, (), groups=groups)
    found = round_costs([trial], ("base", "b", TWIN), ("w",), Metric.CPU)
    assert found.log_ratios("b", "base")[0, 0] == pytest.approx(math.log(220 / 200))


def test_many_variants_race_in_the_groups_that_give_the_narrowest_intervals() -> None:
    assert [groups_for(variants) for variants in (0, 1, 5, 7, 12, 23, 40)] == [1, 1, 1, 1, 2, 4, 6]
    assert variants_together(5, "auto") is None
    assert variants_together(23, "auto") == 6 + 2
    assert variants_together(23, "all") is None
    assert variants_together(23, 5) == 7
    assert variants_together(23, 23) is None


@pytest.mark.parametrize(("size", "groups"), [("auto", 2), ("all", 0), (4, 3)])
def test_a_study_deals_its_variants_into_groups_anew_in_each_round(
    tmp_path: Path, size: int | str, groups: int
) -> None:
    names = [f"v{number}" for number in range(12)]
    variants = replace(VARIANTS, artifacts=tuple((name, f"/b/{name}") for name in ("base", *names)))
    study, folder = a_study(group_size=size), StudyFolder(tmp_path)
    meter = SimulatedMeter(lambda _variant, _n: 60 * MS)
    plan = fixed_plan(site_of(meter, folder), study, variants, "key")
    race_all(meter, study, variants, plan, folder)
    trials = folder.trials("key")
    assert {len(trial.groups) for trial in trials} == {groups}
    dealt = {tuple(sorted(map(frozenset, trial.groups), key=sorted)) for trial in trials}
    assert len(dealt) == (len(trials) if groups else 1)
    said = [each.text for each in plan_findings(plan) if each.code == "raced-in-groups"]
    assert len(said) == (1 if groups else 0)


def test_memory_may_ask_for_smaller_groups_than_precision(tmp_path: Path) -> None:
    names = [f"v{number}" for number in range(12)]
    variants = replace(VARIANTS, artifacts=tuple((name, f"/b/{name}") for name in ("base", *names)))
    meter = SimulatedMeter(lambda _variant, _n: 60 * MS, peak_memory_bytes=1000)
    small = replace(variants, memory_bytes=6000)
    plan = fixed_plan(site_of(meter, StudyFolder(tmp_path)), a_study(), small, "key")
    assert plan.together == 8
    assert plan.placed(small, "set").most_variants == 4
