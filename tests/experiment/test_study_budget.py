"""Budgets are kept both ways: simulated races in which time passes as the meter says."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.experiment.study.budget import require_any_time_left
from ensign.experiment.study.round_plan import RoundPlan, fixed_plan, plan_findings
from ensign.experiment.study.rounds import RaceContext, race_plan, round_findings
from ensign.model.errors import InputError
from ensign.model.results import Stopped
from ensign.model.study import Study
from ensign.stats.looks import looks_up_to
from ensign.store.folder import StudyFolder
from experiment.test_study_racing import VARIANTS, a_study, site_of
from races import SimulatedMeter

MS = 1_000_000
S = 10**9


def commands(**race: object) -> Study:
    """Programs whose length nobody can choose."""
    study = a_study(**{"rounds": None, **race})
    fixed = [
        each.model_copy(update={"load": None, "command": ["{artifact}"]})
        for each in study.workloads
    ]
    return study.model_copy(update={"workloads": fixed, "server": None})


def per_request(ns: float) -> Callable[[str, int], int]:
    """Costs that follow the number of requests."""

    def cost_ns(_variant: str, _execution: int) -> int:
        load = METERS[-1].requests[-1][1]["variants"][0]["load"]  # type: ignore[index]
        return round(int(load["operations"]) * ns)

    return cost_ns


METERS: list[SimulatedMeter] = []


def a_meter(cost_ns: Callable[[str, int], int], besides_ns: int = 20 * MS) -> SimulatedMeter:
    METERS.append(SimulatedMeter(cost_ns, besides_ns=besides_ns))
    return METERS[-1]


def raced(
    meter: SimulatedMeter, study: Study, folder: StudyFolder
) -> tuple[RoundPlan, list[RoundPlan]]:
    """The closed plan, and what was told."""
    told: list[RoundPlan] = []
    plan = fixed_plan(site_of(meter, folder), study, VARIANTS, "key")
    course = RaceContext(meter, meter, folder, told.append, lambda _: None, lambda _: None)
    return race_plan(course, study, VARIANTS, plan)[0], told


def noisy(mean_ns: int, share: float, seed: int = 1) -> Callable[[str, int], int]:
    rng = random.Random(seed)  # noqa: S311  # not for secrets
    return lambda _variant, _execution: round(mean_ns * (1 + share * rng.gauss(0, 1)))


@pytest.mark.parametrize(("budget_s", "cost_ms"), [(3, 2), (30, 37), (30, 130), (600, 900)])
def test_rounds_of_programs_are_what_fits(tmp_path: Path, budget_s: int, cost_ms: int) -> None:
    study = commands(budget=f"{budget_s}s")
    meter = a_meter(noisy(cost_ms * MS, 0.05))
    plan, _ = raced(meter, study, StudyFolder(tmp_path))
    assert plan.closed
    round_ns = 3 * (3 * cost_ms + 20) * MS
    assert budget_s * S - 1.2 * round_ns < meter.now_ns <= 1.05 * budget_s * S
    assert plan.rounds == len(StudyFolder(tmp_path).done("key")) / 3


@pytest.mark.parametrize("budget_s", [30, 600])
def test_rounds_of_loads_fill_the_budget_too(tmp_path: Path, budget_s: int) -> None:
    study = a_study(budget=f"{budget_s}s", rounds=None)
    meter = a_meter(per_request(5000))
    plan, _ = raced(meter, study, StudyFolder(tmp_path))
    assert 0.9 * budget_s * S < meter.now_ns <= 1.05 * budget_s * S
    assert plan.rounds >= 8


def test_a_number_of_rounds_is_kept_and_fills_the_budget_with_longer_executions(
    tmp_path: Path,
) -> None:
    meter = a_meter(per_request(5000))
    plan, _ = raced(meter, a_study(budget="60s", rounds=7), StudyFolder(tmp_path))
    assert plan.rounds == 7
    assert 0.9 * 60 * S < meter.now_ns <= 1.05 * 60 * S


@pytest.mark.parametrize("race", [{"rounds": 30}, {}, {"precision": "0.01%"}])
def test_a_machine_that_gets_slower_does_not_break_the_budget(
    tmp_path: Path, race: dict[str, object]
) -> None:
    meter = a_meter(lambda _variant, n: (50 if n < 30 else 150) * MS)
    study = commands(budget="20s", **race)
    plan, _ = raced(meter, study, StudyFolder(tmp_path))
    assert meter.now_ns <= 1.05 * 20 * S
    codes = [each.code for each in round_findings(study, plan)]
    assert ("budget-ended" in codes) == ("rounds" in race)


@pytest.mark.parametrize("rounds", [None, 8])
def test_what_cannot_fit_is_refused_after_the_first_pilot(
    tmp_path: Path, rounds: int | None
) -> None:
    meter = a_meter(lambda _variant, _n: 50 * S)
    study = commands(budget="10m", rounds=rounds)
    with pytest.raises(InputError, match=r"cannot hold . rounds .* give at least \d+m"):
        raced(meter, study, StudyFolder(tmp_path))
    assert len(meter.requests) == 1


def test_the_nearest_that_fits_is_said(tmp_path: Path) -> None:
    slow = {"set": 100, "get": 100, "incr": 3000}

    def cost_ns(_variant: str, _n: int) -> int:
        argv = meter.requests[-1][1]["variants"][0]["program"]["argv"]  # type: ignore[index]
        return slow[argv[-1]] * MS

    meter = a_meter(cost_ns)
    study = commands(budget="60s", rounds=8)
    named = [each.model_copy(update={"command": ["x", each.name]}) for each in study.workloads]
    study = study.model_copy(update={"workloads": named})
    with pytest.raises(InputError, match=r"give 90s, or 5 rounds, or leave out incr") as refused:
        raced(meter, study, StudyFolder(tmp_path))
    budget = str(refused.value).partition("give ")[2].partition(",")[0]
    race = study.race.model_copy(update={"budget": budget})
    again = a_meter(cost_ns)
    meter = again
    plan, _ = raced(again, study.model_copy(update={"race": race}), StudyFolder(tmp_path / "2"))
    assert plan.rounds == 8


def test_what_no_program_could_be_quick_enough_for_is_refused_before_the_build() -> None:
    require_any_time_left(a_study(budget="60s"), 5)
    with pytest.raises(InputError, match=r"budget of 5s .* 24 variants, .* give at least \d+s"):
        require_any_time_left(a_study(budget="5s", rounds=None), 23)
    with pytest.raises(InputError, match=r"and their confirmation"):
        require_any_time_left(a_study(budget="5s", rounds=None, confirm={}), 3)


def test_an_interrupted_study_keeps_its_plan_and_its_budget(tmp_path: Path) -> None:
    study, folder = commands(budget="30s"), StudyFolder(tmp_path)
    stopped = a_meter(noisy(40 * MS, 0.05))
    stopped.interrupt_after = 41
    with pytest.raises(KeyboardInterrupt):
        raced(stopped, study, folder)
    begun = folder.read_json("plans/key")
    assert begun is not None
    rest = a_meter(noisy(40 * MS, 0.05, seed=2))
    plan, _ = raced(rest, study, folder)
    assert plan.allowed_ns == begun["allowed_ns"]
    round_ns = 3 * (3 * 40 + 20) * MS
    assert 30 * S - 1.5 * round_ns < stopped.now_ns + rest.now_ns <= 1.05 * 30 * S
    again = a_meter(noisy(40 * MS, 0.05))
    assert raced(again, study, folder)[0] == plan
    assert again.requests == []


def test_a_damaged_trial_is_raced_again_and_nothing_else(tmp_path: Path) -> None:
    study, folder = commands(budget="10s"), StudyFolder(tmp_path)
    plan, _ = raced(a_meter(noisy(40 * MS, 0.05)), study, folder)
    folder.trial_files("key")[4].unlink()
    again = a_meter(noisy(40 * MS, 0.05))
    assert raced(again, study, folder)[0] == plan
    assert len(again.requests) == 1


@pytest.mark.parametrize("asked", ["1%", "0.5%"])
def test_a_precision_that_can_be_had_is_reached_and_no_time_is_wasted(
    tmp_path: Path, asked: str
) -> None:
    study, folder = commands(budget="20m", precision=asked), StudyFolder(tmp_path)
    meter = a_meter(noisy(40 * MS, 0.02))
    plan, told = raced(meter, study, folder)
    assert plan.reached is not None
    assert plan.reached <= float(asked[:-1]) / 100
    assert meter.now_ns < 10 * 60 * S
    assert round_findings(study, plan) == ()
    (first,) = told
    assert first.precision is not None
    assert first.precision.suite <= 1.01 * float(asked[:-1]) / 100


def test_a_precision_that_cannot_be_had_uses_the_budget_and_says_what_would_do(
    tmp_path: Path,
) -> None:
    study, folder = commands(budget="30s", precision="0.1%"), StudyFolder(tmp_path)
    meter = a_meter(noisy(40 * MS, 0.05))
    plan, _ = raced(meter, study, folder)
    assert 30 * S - 700 * MS < meter.now_ns <= 1.05 * 30 * S
    (finding,) = round_findings(study, plan)
    assert finding.code == "precision-out-of-reach"
    assert "would do" in finding.text


def test_with_a_precision_rounds_are_the_fewest(tmp_path: Path) -> None:
    study = commands(budget="60s", precision="20%", rounds=9)
    plan, _ = raced(a_meter(noisy(40 * MS, 0.02)), study, StudyFolder(tmp_path))
    assert plan.rounds == 9


def test_the_precision_to_expect_is_told_after_a_few_rounds_of_all_variants(tmp_path: Path) -> None:
    study, folder = commands(budget="60s"), StudyFolder(tmp_path)
    plan, told = raced(a_meter(noisy(40 * MS, 0.02)), study, folder)
    (first,) = told
    assert first.precision is not None
    assert 3 <= first.pilots <= plan.rounds / 3 + 1
    # Pilots of lengths alone come before: one of each workload.
    assert first.rounds == pytest.approx(plan.rounds, rel=0.1)


def test_memory_is_told_and_where_three_variants_are_too_many_it_is_said(tmp_path: Path) -> None:
    meter = a_meter(lambda _variant, _n: 40 * MS)
    meter.peak_memory_bytes = 1000
    folder = StudyFolder(tmp_path)
    variants = replace(VARIANTS, memory_bytes=2000)
    plan = fixed_plan(site_of(meter, folder), commands(), variants, "key")
    assert plan.memory_bytes == 3000
    assert [each.code for each in plan_findings(plan)] == ["memory-short"]


@pytest.mark.parametrize("ratio", [1.0, 1.06])
def test_sequential_rounds_end_when_every_variant_is_decided(tmp_path: Path, ratio: float) -> None:
    """At a look, long before the budget: within the margin of 1 %, or beyond it."""
    study = commands(budget="20m", margin="1%", stopping="sequential")
    even = noisy(40 * MS, 0.005)
    slower = [name for name, _ in VARIANTS.artifacts[1:]]
    meter = a_meter(lambda name, n: round(even(name, n) * (ratio if name in slower else 1)))
    plan, _ = raced(meter, study, StudyFolder(tmp_path))
    assert plan.stopped is Stopped.DECIDED
    assert plan.closed
    assert plan.rounds in looks_up_to(200)
    assert meter.now_ns < 2 * 60 * S


def test_sequential_rounds_that_decide_nothing_end_with_the_budget(tmp_path: Path) -> None:
    study = commands(budget="30s", margin="1%", stopping="sequential")
    meter = a_meter(noisy(40 * MS, 0.3))
    plan, _ = raced(meter, study, StudyFolder(tmp_path))
    assert plan.stopped is Stopped.BUDGET
    assert 30 * S - 700 * MS < meter.now_ns <= 1.05 * 30 * S
