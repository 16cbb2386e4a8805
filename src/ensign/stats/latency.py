"""Percentiles of latency of an arm over the baseline's, with intervals like every other ratio.

A percentile of one execution is one observation: its log ratio to the baseline's of the same
execution, averaged over the sweeps. Percentiles of several executions are never pooled.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from ensign.model.trials import Metric
from ensign.stats.sweeps import sweep_costs
from ensign.stats.trials import beside_baseline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ensign.model.trials import Trial
    from ensign.stats.sweeps import SweepCosts

PERCENTILES = ("p50", "p95", "p99", "p999")


def timed_workloads(trials: Sequence[Trial], workloads: Sequence[str]) -> tuple[str, ...]:
    """The workloads of which every arm of every trial has its latencies."""
    timed = dict.fromkeys((trial.workload for trial in trials), True)
    for trial in trials:
        timed[trial.workload] &= all(totals.latency is not None for totals in trial.arms)
    return tuple(name for name in workloads if timed.get(name))


def latency_costs(
    trials: Sequence[Trial], arms: Sequence[str], workloads: Sequence[str], percentile: str
) -> SweepCosts:
    """Whole sweeps of ln(latency in ns at that percentile), of timed workloads. By wall time."""
    return sweep_costs(trials, arms, workloads, Metric.WALL, _log_at(percentile))


def _log_at(percentile: str) -> Callable[[Trial, str], float]:
    def log_latency(trial: Trial, arm: str) -> float:
        value: int = getattr(trial.arm(arm).latency, percentile)
        # The histogram's least value.
        return math.log(max(value, 1))

    return lambda trial, arm: beside_baseline(trial, arm, partial(log_latency, trial))
