"""Sweeps as one table of log costs. A sweep is one execution of every workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.model.trials import TWIN
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

    @property
    def compared(self) -> tuple[str, ...]:
        """The arms besides the first and its twin; the twin where there are no others."""
        return tuple(arm for arm in self.arms[1:] if arm != TWIN) or self.arms[1:]

    def log_ratios(self, arm: str, baseline: str) -> Floats:
        """d[workload, sweep] of any two arms: `arm` minus `baseline` in the same race.

        The first arm is taken with its twin, but where the twin itself is compared.
        """
        of = self._alone if TWIN in (arm, baseline) else self.with_twin
        ratios: Floats = of(arm) - of(baseline)
        return ratios

    def with_twin(self, arm: str) -> Floats:
        """y[workload, sweep] of an arm; of the first, with a twin, the mean of the two copies.

        That takes a quarter off the variance of ratios to it.
        """
        if arm != self.arms[0] or TWIN not in self.arms:
            return self._alone(arm)
        return np.asarray((self._alone(arm) + self._alone(TWIN)) / 2)

    def _alone(self, arm: str) -> Floats:
        return np.asarray(self.y[self._index(arm)])

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
