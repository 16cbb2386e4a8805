"""What a study does follows from its baseline's executions."""

from __future__ import annotations

import pytest

from ensign.experiment.machine import CpuPlan
from ensign.experiment.pilots import CommandPilot, PilotRun
from ensign.experiment.study.pilots import Decided, decided
from ensign.experiment.study.round_plan import RoundPlan
from ensign.experiment.study.variants import mode_of
from ensign.model.study import Study
from ensign.model.trials import Metric, Mode, TaskActivity
from experiment.test_study_budget import commands
from experiment.test_study_racing import VARIANTS, a_study

MS = 1_000_000
CPUS = CpuPlan((1,), (0,), (0,), ((0, 1), (0, 1)))


def sight(name: str, *, runnable: float = 1.0, idle: float = 0.0) -> CommandPilot:
    busy_ns = round((1 - idle) * 100 * MS)
    cpu_ns = round(busy_ns * runnable)
    activity = TaskActivity(
        looks=100,
        observed_ns=100 * MS,
        idle_ns=100 * MS - busy_ns,
        runnable_ns=cpu_ns,
        busiest_cpu_ns=busy_ns,
    )
    return CommandPilot(name, (PilotRun(100 * MS, cpu_ns, 0, activity, prepare_ns=MS),) * 3)


def of(study: Study, **odd: dict[str, float]) -> Decided:
    sights = {each.name: sight(each.name, **odd.get(each.name, {})) for each in study.workloads}
    return decided(study, sights, CPUS)


@pytest.mark.parametrize("how", [{"runnable": 1.9}, {"idle": 0.8}])
def test_one_workload_decides_on_the_metric_and_runs_by_turns_alone(how: dict[str, float]) -> None:
    found = of(commands(), get=how)
    assert (found.metric, found.alternating) == (Metric.WALL, ("get",))
    assert found.wide == (("get",) if "runnable" in how else ())
    assert of(commands()) == Decided(Metric.CPU, (), (), ())


def test_servers_wait_for_their_load_and_are_raced_whole_where_wall_time_counts() -> None:
    assert of(a_study(), get={"idle": 0.8}) == Decided(Metric.CPU, (), (), ())
    found = of(a_study(), get={"runnable": 3.8})
    assert (found.metric, found.wide) == (Metric.WALL, ("get",))
    assert found.alternating == ("set", "get", "incr")
    assert {each.code for each in found.findings} == {"several-cpus", "few-cpus"}


def test_the_plan_places_a_workload_as_was_decided() -> None:
    variants = VARIANTS.__class__(VARIANTS.artifacts, VARIANTS.tools, CPUS)
    plan = RoundPlan("key", 3, {}, 0, alternating=("get",), wide=("get",))
    study = commands()
    placed = {each.name: plan.placed(variants, each.name) for each in study.workloads}
    modes = {each.name: mode_of(study, placed[each.name], each) for each in study.workloads}
    assert modes == {"set": Mode.INTERLEAVED, "get": Mode.ALTERNATING, "incr": Mode.INTERLEAVED}
    assert placed["get"].cpus.program == (0, 1)
    assert placed["set"].cpus.program == (1,)


@pytest.mark.parametrize(
    ("runnable", "idle", "wide"),
    # A Go server, and memcached with one and with four workers, as measured.
    [(1.65, 0.66, False), (1.45, 0.55, False), (1.26, 0.45, False), (3.1, 0.34, True)],
)
def test_a_server_gets_all_cpus_where_it_has_work_for_more_than_one(
    runnable: float, idle: float, *, wide: bool
) -> None:
    found = of(a_study(), get={"runnable": runnable, "idle": idle})
    assert found.wide == (("get",) if wide else ())
    assert found.metric is (Metric.WALL if wide else Metric.CPU)
