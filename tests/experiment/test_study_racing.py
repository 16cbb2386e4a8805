from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.experiment.loop import order_of, trial_seed
from ensign.experiment.machine import CpuPlan
from ensign.experiment.study.budget import Demand, WorkloadPilot, fitted
from ensign.experiment.study.phase import plan_key
from ensign.experiment.study.pilots import PlanContext, pilot
from ensign.experiment.study.round_plan import RoundPlan, RoundProgress, fixed_plan
from ensign.experiment.study.rounds import RaceContext, race_plan
from ensign.experiment.study.variants import VariantSet, race_request
from ensign.meter.requests import Load
from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.store.folder import StudyFolder
from races import SimulatedMeter

MS = 1_000_000
VARIANTS = VariantSet(
    (("gcc-O2", "/b/gcc-O2"), ("gcc-O3", "/b/gcc-O3")),
    {"bench": "/b/bench"},
    CpuPlan((1,), (0,), (0,)),
)


def a_study(**race: object) -> Study:
    loads = [
        {"name": name, "load": ["{bench}", "-p", "{port}", "-n", "{requests}"], "preload": []}
        for name in ("set", "get", "incr")
    ]
    return Study.model_validate(
        {
            "name": "s",
            "layouts": "natural",
            "source": {"kind": "path", "path": "x"},
            "build": {
                "commands": [["make"]],
                "artifact": "server",
                "tools": {"bench": "bench"},
            },
            "axes": {"compiler": ["gcc-12"], "optimization": ["-O2", "-O3"]},
            "baseline": {"compiler": "gcc-12", "optimization": "-O2"},
            "server": {"command": ["{artifact}", "--port", "{port}"]},
            "race": {"budget": "60s", "rounds": 4, **race},
            "workloads": loads,
        }
    )


def site_of(meter: SimulatedMeter, folder: StudyFolder) -> PlanContext:
    return PlanContext(meter, meter, folder, lambda _: None)


def test_a_request_names_every_variant_and_the_twin_of_the_first() -> None:
    study = a_study()
    request = race_request(study, VARIANTS, study.workloads[0], 5000, seed=3)
    assert [variant.name for variant in request.variants] == ["gcc-O2", "gcc-O3", "twin"]
    assert [variant.program.argv[0] for variant in request.variants] == [
        "/b/gcc-O2",
        "/b/gcc-O3",
        "/b/gcc-O2",
    ]
    load = request.variants[0].load
    assert isinstance(load, Load)
    assert load.process.argv == ("/b/bench", "-p", "{port}", "-n", "5000")
    assert load.operations == 5000
    assert load.process.cpus == (0,)
    assert request.variants[0].program.cpus == (1,)


def test_a_workloads_environment_goes_over_the_servers() -> None:
    study = a_study()
    server = study.server
    assert server is not None
    server = server.model_copy(update={"env": {"MODE": "plain", "PORT": "{port}"}})
    workload = study.workloads[0].model_copy(
        update={"env": {"MODE": "full", "BESIDE": "{artifact_dir}/x"}}
    )
    changed = study.model_copy(update={"server": server})
    request = race_request(changed, VARIANTS, workload, 10, seed=3)
    assert request.variants[1].program.env == (
        ("MODE", "full"), ("PORT", "{port}"), ("BESIDE", "/b/x"),
    )  # fmt: skip
    assert isinstance(request.variants[1].load, Load)
    assert request.variants[1].load.process.env == ()
    own = workload.model_copy(update={"load": None, "command": ["{artifact}"]})
    (first, *_) = race_request(changed, VARIANTS, own, None, seed=3).variants
    assert first.program.env == (("MODE", "full"), ("BESIDE", "/b/x"))


def test_memtier_says_itself_how_many_requests_it_sent() -> None:
    study = a_study()
    load = ["/usr/bin/memtier_benchmark", "-p", "{port}", "--test-time=2"]
    workload = study.workloads[0].model_copy(update={"load": load})
    found = race_request(study, VARIANTS, workload, None, seed=3).variants[0].load
    assert isinstance(found, Load)
    assert found.process.argv[-1] == "--json-out-file={tmp}/memtier.json"
    assert found.operations is None
    assert found.operations_json == ("{tmp}/memtier.json", "/ALL STATS/Totals/Count")


def test_a_pilot_asks_for_more_requests_until_it_is_long_enough() -> None:
    study = a_study()
    asked: list[int] = []

    def cost_ns(_variant: str, _execution: int) -> int:
        request = meter.requests[-1][1]
        number = int(request["variants"][0]["load"]["operations"])  # type: ignore[index]
        if _variant == "gcc-O2":
            asked.append(number)
        return number * 1000

    meter = SimulatedMeter(cost_ns)
    measured, trials = pilot(meter, study, VARIANTS, study.workloads[0])
    assert asked == [1000, 8000, 64_000]
    assert measured.ns_per_request == pytest.approx(1000)
    assert len(trials) == 3


def test_the_requests_share_out_what_is_left_of_the_budget() -> None:
    study = a_study()
    pilots = {
        "set": WorkloadPilot(1000, 10 * MS, 50 * MS),
        "get": WorkloadPilot(1000, 5 * MS, 50 * MS),
        "incr": WorkloadPilot(1000, 10 * MS, 50 * MS),
    }
    fit = fitted(Demand(study, pilots, 1), spent_ns=1000 * MS)
    assert fit.rounds == 4
    assert fit.requests["get"] == pytest.approx(2 * (fit.requests["set"] or 0), rel=0.01)
    assert 0.9 * 60e9 < fit.total_ns < 60e9


def test_fixed_requests_stay_as_they_are() -> None:
    study = a_study()
    study = study.model_copy(
        update={"workloads": [study.workloads[0].model_copy(update={"requests": 777})]}
    )
    fit = fitted(Demand(study, {"set": WorkloadPilot(777, MS, MS)}, 1), spent_ns=0)
    assert fit.requests == {"set": 777}


def test_every_round_has_its_own_order_and_the_same_on_resumption() -> None:
    workloads = a_study().workloads
    orders = [[w.name for w in order_of(workloads, 1, round_index)] for round_index in range(8)]
    assert orders == [
        [w.name for w in order_of(workloads, 1, round_index)] for round_index in range(8)
    ]
    assert len({tuple(order) for order in orders}) > 1
    assert all(sorted(order) == ["get", "incr", "set"] for order in orders)


def race_all(
    meter: SimulatedMeter,
    study: Study,
    variants: VariantSet,
    plan: RoundPlan,
    folder: StudyFolder,
    on_trial: Callable[[RoundProgress], None] = lambda _: None,
) -> None:
    """Just the rounds that the plan has now."""
    context = RaceContext(meter, meter, folder, lambda _: None, on_trial, lambda _: None)
    race_plan(context, study, variants, replace(plan, closed=True))


def plan_of(study: Study) -> RoundPlan:
    requests = dict.fromkeys([workload.name for workload in study.workloads], 1000)
    return RoundPlan("key", study.race.rounds or 0, requests, 10**9)


def test_rounds_store_each_trial_and_resume_where_they_were_stopped(tmp_path: Path) -> None:
    study, folder = a_study(), StudyFolder(tmp_path)
    stopped = SimulatedMeter(lambda _variant, _n: 5 * MS, interrupt_after=5)
    with pytest.raises(KeyboardInterrupt):
        race_all(stopped, study, VARIANTS, plan_of(study), folder)
    assert len(folder.done("key")) == 5
    seen: list[RoundProgress] = []
    rest = SimulatedMeter(lambda _variant, _n: 5 * MS)
    race_all(rest, study, VARIANTS, plan_of(study), folder, seen.append)
    assert len(rest.requests) == 12 - 5
    assert [progress.done for progress in seen] == list(range(6, 13))
    trials = folder.trials("key")
    assert sorted((t.round_index, t.workload) for t in trials) == sorted(
        (round_index, name) for round_index in range(4) for name in ("set", "get", "incr")
    )


def test_a_plan_is_fixed_once(tmp_path: Path) -> None:
    study, folder = a_study(), StudyFolder(tmp_path)
    meter = SimulatedMeter(lambda _variant, _n: 80 * MS)
    first = fixed_plan(site_of(meter, folder), study, VARIANTS, "key")
    asked = len(meter.requests)
    again = fixed_plan(site_of(meter, folder), study, VARIANTS, "key")
    assert again == first
    assert len(meter.requests) == asked


def test_a_damaged_plan_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    folder.write_json("plans/key", {"requests": 3})
    site = site_of(SimulatedMeter(lambda _a, _n: 1), folder)
    with pytest.raises(InputError, match="delete it and run again"):
        fixed_plan(site, a_study(), VARIANTS, "key")


def test_the_key_follows_what_trials_depend_on_and_not_the_margin() -> None:
    hashes = {"gcc-O2": "1", "gcc-O3": "2"}
    key = plan_key(a_study(), hashes)
    assert plan_key(a_study(margin="2%"), hashes) == key
    assert plan_key(a_study(slice="2ms"), hashes) != key
    assert plan_key(a_study(), {**hashes, "gcc-O3": "3"}) != key


def test_every_trial_has_orders_of_its_own_and_keeps_them() -> None:
    seeds = [
        trial_seed(1, round_index, name)
        for round_index in range(20)
        for name in ("set", "get", "incr")
    ]
    assert len(set(seeds)) == len(seeds)
    assert trial_seed(1, 4, "get") == trial_seed(1, 4, "get") != trial_seed(2, 4, "get")
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_precision_names_the_trials_only_where_it_is_asked_for() -> None:
    plain = plan_key(a_study(), {"a": "1"})
    assert plan_key(a_study(precision="1%"), {"a": "1"}) != plain
    assert "precision" not in a_study().race.model_dump(exclude_unset=True)


def test_a_load_that_counts_itself_is_piloted_once() -> None:
    study = a_study()
    load = ["memtier_benchmark", "-p", "{port}", "-n", "100"]
    workload = study.workloads[0].model_copy(update={"load": load})
    meter = SimulatedMeter(lambda _variant, _n: MS)
    measured, trials = pilot(meter, study, VARIANTS, workload)
    assert (measured.requests, len(trials)) == (None, 1)
    alone = study.model_copy(update={"workloads": [workload]})
    assert fitted(Demand(alone, {"set": measured}, 1), 0).requests == {"set": None}
