from __future__ import annotations

import math

import numpy as np

from ensign.model.trials import TWIN, Latency, Mode, Trial, VariantTotals
from ensign.stats.rounds import latency_costs, timed_workloads
from ensign.stats.suite import SuiteRule, compare_workloads


def variant(name: str, p99: int | None) -> VariantTotals:
    latency = None if p99 is None else Latency(p99 // 4, p99 // 2, p99, p99 * 2, p99 * 3, p99, 1000)
    return VariantTotals(name, 10, 10, 5, 5, 0, 1000, 0, 0, 0, 1, latency=latency)


def trial(workload: str, round_index: int, *variants: VariantTotals) -> Trial:
    return Trial(workload, round_index, 1, Mode.DRIVEN, "cgroup", 1, 0.0, 1, 1.0, variants, ())


def test_only_workloads_with_latencies_of_every_variant_are_timed() -> None:
    trials = [
        trial("all", 0, variant("a", 5), variant(TWIN, 5)),
        trial("some", 0, variant("a", 5), variant(TWIN, None)),
        trial("none", 0, variant("a", None), variant(TWIN, None)),
        trial("later", 0, variant("a", 5), variant(TWIN, 5)),
        trial("later", 1, variant("a", None), variant(TWIN, 5)),
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
                round_index,
                *(
                    variant(name, round(1e6 * size * math.exp(rng.normal(0, 0.03))))
                    for name, size in (("a", 1.0), ("b", 1.1), (TWIN, 1.0))
                ),
            )
            for round_index in range(8)
        ]
        costs = latency_costs(trials, ("a", "b", TWIN), ("get",), "p99")
        ((_, slower),) = compare_workloads(costs, "b", "a", SuiteRule())
        ((_, twin),) = compare_workloads(costs, TWIN, "a", SuiteRule())
        covered += slower.low <= 1.1 <= slower.high
        excluded += not twin.low <= 1 <= twin.high
    assert 0.91 < covered / 300 < 0.98
    assert excluded / 300 < 0.09


def test_a_latency_of_nothing_is_the_least_that_a_histogram_has() -> None:
    costs = latency_costs([trial("get", 0, variant("a", 0))], ("a",), ("get",), "p50")
    assert costs.y[0, 0, 0] == 0
