from __future__ import annotations

import math

import numpy as np

from ensign.model.trials import TWIN, ArmTotals, Latency, Mode, Trial
from ensign.stats.latency import latency_costs, timed_workloads
from ensign.stats.suite import SuiteRule, compare_workloads


def arm(name: str, p99: int | None) -> ArmTotals:
    latency = None if p99 is None else Latency(p99 // 4, p99 // 2, p99, p99 * 2, p99 * 3, p99, 1000)
    return ArmTotals(name, 10, 10, 5, 5, 0, 1000, 0, 0, 0, 1, latency=latency)


def trial(workload: str, sweep: int, *arms: ArmTotals) -> Trial:
    return Trial(workload, sweep, 1, Mode.DRIVEN, "cgroup", 1, 0.0, 1, 1.0, arms, ())


def test_only_workloads_with_latencies_of_every_arm_are_timed() -> None:
    trials = [
        trial("all", 0, arm("a", 5), arm(TWIN, 5)),
        trial("some", 0, arm("a", 5), arm(TWIN, None)),
        trial("none", 0, arm("a", None), arm(TWIN, None)),
        trial("later", 0, arm("a", 5), arm(TWIN, 5)),
        trial("later", 1, arm("a", None), arm(TWIN, 5)),
    ]
    assert timed_workloads(trials, ["none", "some", "all", "later", "absent"]) == ("all",)


def test_a_percentile_is_compared_like_a_cost() -> None:
    # The variant's p99 is a tenth above the baseline's; executions vary by 3 %, twin by 3 %, too.
    rng = np.random.default_rng(1)
    covered = excluded = 0
    for _ in range(300):
        trials = [
            trial(
                "get",
                sweep,
                *(
                    arm(name, round(1e6 * size * math.exp(rng.normal(0, 0.03))))
                    for name, size in (("a", 1.0), ("b", 1.1), (TWIN, 1.0))
                ),
            )
            for sweep in range(8)
        ]
        costs = latency_costs(trials, ("a", "b", TWIN), ("get",), "p99")
        ((_, slower),) = compare_workloads(costs, "b", "a", SuiteRule())
        ((_, twin),) = compare_workloads(costs, TWIN, "a", SuiteRule())
        covered += slower.low <= 1.1 <= slower.high
        excluded += not twin.low <= 1 <= twin.high
    assert 0.91 < covered / 300 < 0.98
    assert excluded / 300 < 0.09


def test_a_latency_of_nothing_is_the_least_that_a_histogram_has() -> None:
    costs = latency_costs([trial("get", 0, arm("a", 0))], ("a",), ("get",), "p50")
    assert costs.y[0, 0, 0] == 0
