"""Sweeps as one table of log costs. A sweep is one execution of every workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.stats.trials import log_cost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ensign.model.trials import Metric, Trial

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SweepCosts:
    """y[arm, workload, sweep] = ln(nanoseconds per operation), of whole sweeps only.

    `left_out` are the sweeps that lack a workload or an arm; they count nowhere.
    """

    metric: Metric
    arms: tuple[str, ...]
    workloads: tuple[str, ...]
    sweeps: tuple[int, ...]
    left_out: tuple[int, ...]
    y: Floats

    def log_ratios(self, arm: str, baseline: str) -> Floats:
        """d[workload, sweep] of any two arms: y[arm] - y[baseline] in the same race."""
        ratios: Floats = self.y[self._index(arm)] - self.y[self._index(baseline)]
        return ratios

    def _index(self, arm: str) -> int:
        if arm not in self.arms:
            raise InputError(f"arm '{arm}' is not among the arms: {', '.join(self.arms)}")
        return self.arms.index(arm)


def sweep_costs(
    trials: Iterable[Trial],
    arms: Sequence[str],
    workloads: Sequence[str],
    metric: Metric,
    log_of: Callable[[Trial, str], float] | None = None,
) -> SweepCosts:
    """Whole sweeps of a study. Trials of other workloads are ignored.

    `log_of` gives the log of something else than the cost of an arm (a latency). InputError where
    one workload has two trials of the same sweep, or an arm has no cost.
    """
    by_sweep: dict[int, dict[str, Trial]] = {}
    for trial in trials:
        if trial.workload not in workloads:
            continue
        row = by_sweep.setdefault(trial.sweep, {})
        if trial.workload in row:
            raise InputError(f"workload '{trial.workload}' has two trials of sweep {trial.sweep}")
        row[trial.workload] = trial
    whole = tuple(s for s in sorted(by_sweep) if _is_whole(by_sweep[s], arms, workloads))
    y = np.empty((len(arms), len(workloads), len(whole)))
    for column, sweep in enumerate(whole):
        for w, workload in enumerate(workloads):
            trial = by_sweep[sweep][workload]
            y[:, w, column] = [
                log_of(trial, arm) if log_of else log_cost(trial, arm, metric) for arm in arms
            ]
    left_out = tuple(s for s in sorted(by_sweep) if s not in whole)
    return SweepCosts(metric, tuple(arms), tuple(workloads), whole, left_out, y)


def sweep_findings(costs: SweepCosts) -> tuple[Finding, ...]:
    """`incomplete-sweeps`, where some were left out."""
    if not costs.left_out:
        return ()
    count = len(costs.left_out)
    which = "sweep is" if count == 1 else "sweeps are"
    text = (
        f"{count} incomplete {which} left out of the geometric mean; "
        f"it speaks of the {len(costs.sweeps)} whole ones"
    )
    return (Finding("incomplete-sweeps", Severity.NOTE, text),)


def _is_whole(row: dict[str, Trial], arms: Sequence[str], workloads: Sequence[str]) -> bool:
    return all(
        workload in row and set(arms) <= {totals.arm for totals in row[workload].arms}
        for workload in workloads
    )
