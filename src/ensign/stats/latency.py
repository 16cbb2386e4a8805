"""Percentiles of latency of a variant over the baseline's, with intervals like every other ratio.

A percentile of one execution is one observation: its log ratio to the baseline's of the same
execution, averaged over the rounds. Percentiles of several executions are never pooled.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from ensign.model.trials import Metric
from ensign.stats.rounds import round_costs
from ensign.stats.trials import beside_baseline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ensign.model.trials import Trial
    from ensign.stats.rounds import RoundCosts

PERCENTILES = ("p50", "p95", "p99", "p999")


def timed_workloads(trials: Sequence[Trial], workloads: Sequence[str]) -> tuple[str, ...]:
    """The workloads of which every variant of every trial has its latencies."""
    timed = dict.fromkeys((trial.workload for trial in trials), True)
    for trial in trials:
        timed[trial.workload] &= all(totals.latency is not None for totals in trial.variants)
    return tuple(name for name in workloads if timed.get(name))


def latency_costs(
    trials: Sequence[Trial], variants: Sequence[str], workloads: Sequence[str], percentile: str
) -> RoundCosts:
    """Whole rounds of ln(latency in ns at that percentile), of timed workloads. By wall time."""
    return round_costs(trials, variants, workloads, Metric.WALL, _log_at(percentile))


def _log_at(percentile: str) -> Callable[[Trial, str], float]:
    def log_latency(trial: Trial, variant: str) -> float:
        value: int = getattr(trial.variant(variant).latency, percentile)
        # The histogram's least value.
        return math.log(max(value, 1))

    return lambda trial, variant: beside_baseline(trial, variant, partial(log_latency, trial))
