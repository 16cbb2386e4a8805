"""Rounds as one table of log costs, or of log latencies at a percentile.

A round is one execution of every workload. A percentile of one execution is one observation:
percentiles of several executions are never pooled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ensign.model.errors import InputError
from ensign.model.finding_kinds.judgment import INCOMPLETE_ROUNDS
from ensign.model.findings import Finding
from ensign.model.trials import TWIN, Metric
from ensign.stats.trials import beside_baseline, log_cost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ensign.model.trials import Trial

Floats = NDArray[np.float64]

PERCENTILES = ("p50", "p95", "p99", "p999")


@dataclass(frozen=True, slots=True, eq=False)
class RoundCosts:
    """y[variant, workload, round] = ln(nanoseconds per operation), of whole rounds only.

    `left_out` are the rounds that lack a workload or a variant; they count nowhere. `twin_apart`:
    the twin is a second draw of the baseline, and no other turn of the same relinks.
    """

    metric: Metric
    variants: tuple[str, ...]
    workloads: tuple[str, ...]
    rounds: tuple[int, ...]
    left_out: tuple[int, ...]
    y: Floats
    twin_apart: bool = True

    @property
    def compared(self) -> tuple[str, ...]:
        """The variants besides the first and its twin; the twin where there are no others."""
        return (
            tuple(variant for variant in self.variants[1:] if variant != TWIN) or self.variants[1:]
        )

    def log_ratios(self, variant: str, baseline: str) -> Floats:
        """d[workload, round] of any two variants: `variant` minus `baseline` in the same race.

        The first variant is taken with its twin, but where the twin itself is compared.
        """
        of = self._alone if TWIN in (variant, baseline) else self.with_twin
        ratios: Floats = of(variant) - of(baseline)
        return ratios

    def with_twin(self, variant: str) -> Floats:
        """y[workload, round] of a variant; of the first, with a twin, the mean of the two copies.

        That takes a quarter off the variance of ratios to it. Copies of the same relinks are no two
        draws: their mean would look surer than it is.
        """
        if variant != self.variants[0] or TWIN not in self.variants or not self.twin_apart:
            return self._alone(variant)
        return np.asarray((self._alone(variant) + self._alone(TWIN)) / 2)

    def _alone(self, variant: str) -> Floats:
        return np.asarray(self.y[self._index(variant)])

    def _index(self, variant: str) -> int:
        if variant not in self.variants:
            raise InputError(
                f"variant '{variant}' is not among the variants: {', '.join(self.variants)}"
            )
        return self.variants.index(variant)


def round_costs(
    trials: Iterable[Trial],
    variants: Sequence[str],
    workloads: Sequence[str],
    metric: Metric,
    log_of: Callable[[Trial, str], float] | None = None,
) -> RoundCosts:
    """Whole rounds of a study. Trials of other workloads are ignored.

    `log_of` gives the log of something else than the cost of a variant (a latency). InputError
    where one workload has two trials of the same round, or a variant has no cost.
    """
    by_round: dict[int, dict[str, Trial]] = {}
    for trial in trials:
        if trial.workload not in workloads:
            continue
        row = by_round.setdefault(trial.round_index, {})
        if trial.workload in row:
            raise InputError(
                f"workload '{trial.workload}' has two trials of round {trial.round_index}"
            )
        row[trial.workload] = trial
    whole = tuple(s for s in sorted(by_round) if _is_whole(by_round[s], variants, workloads))
    y = np.empty((len(variants), len(workloads), len(whole)))
    for column, round_index in enumerate(whole):
        for w, workload in enumerate(workloads):
            trial = by_round[round_index][workload]
            y[:, w, column] = [
                log_of(trial, variant) if log_of else log_cost(trial, variant, metric)
                for variant in variants
            ]
    left_out = tuple(s for s in sorted(by_round) if s not in whole)
    return RoundCosts(metric, tuple(variants), tuple(workloads), whole, left_out, y)


def round_findings(costs: RoundCosts) -> tuple[Finding, ...]:
    """`incomplete-rounds`, where some were left out."""
    if not costs.left_out:
        return ()
    count = len(costs.left_out)
    which = "round is" if count == 1 else "rounds are"
    text = (
        f"{count} incomplete {which} left out of the geometric mean; "
        f"it is that of the {len(costs.rounds)} complete ones"
    )
    return (INCOMPLETE_ROUNDS.found(text),)


def _is_whole(row: dict[str, Trial], variants: Sequence[str], workloads: Sequence[str]) -> bool:
    return all(
        workload in row and set(variants) <= {totals.variant for totals in row[workload].variants}
        for workload in workloads
    )


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
