"""From trials to costs: the estimate of an execution is the log of the ratio of totals.

Cost per completed operation over the whole execution, arm over baseline. Means of the logs of
slices are biased where the arms' noise differs, and medians ignore rare costs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ensign.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ensign.model.trials import Metric, Trial


def log_cost(trial: Trial, arm: str, metric: Metric) -> float:
    """Log of the nanoseconds per completed operation of an arm in one execution.

    Where arms were raced in groups, it is shifted by what the arm's own baseline and twin cost more
    than the first group's: every ratio is to the two copies raced with the arm. InputError
    where the arm took no part, completed nothing, or used no measurable time.
    """
    return beside_baseline(trial, arm, lambda name: _log_cost(trial, name, metric))


def beside_baseline(trial: Trial, arm: str, log_of: Callable[[str], float]) -> float:
    """The log of an arm, shifted by what its own group's baseline has more than the first group's.

    Means of both copies, the baseline's and its twin's: one copy alone would put its own noise into
    each ratio to the mean of two.
    """
    baselines = trial.baselines_of(arm)
    if baselines is None:
        return log_of(arm)
    own, first = (math.fsum(map(log_of, names)) / len(names) for names in baselines)
    return log_of(arm) + first - own


def _log_cost(trial: Trial, arm: str, metric: Metric) -> float:
    where = f"{trial.workload}, sweep {trial.sweep}" if trial.workload else f"sweep {trial.sweep}"
    try:
        totals = trial.arm(arm)
    except KeyError:
        raise InputError(f"arm '{arm}' took no part in an execution ({where})") from None
    if totals.operations <= 0:
        raise InputError(f"arm '{arm}' completed no operation ({where}); give it more time or load")
    cost = totals.cost(metric)
    if cost <= 0:
        raise InputError(
            f"arm '{arm}' used no measurable {metric.value} time ({where}); "
            "give it more work, or compare by the other metric"
        )
    return math.log(cost)


def log_costs(trials: Iterable[Trial], arm: str, metric: Metric) -> tuple[float, ...]:
    """Log costs of an arm, one for each trial, in their order."""
    return tuple(log_cost(trial, arm, metric) for trial in trials)


def log_ratios(
    trials: Iterable[Trial], arm: str, baseline: str, metric: Metric
) -> tuple[float, ...]:
    """Log ratio of each trial: ln cost of `arm` minus ln cost of `baseline` in the same execution.

    Any two arms can be compared so; two intervals against a third arm are never subtracted.
    """
    return tuple(
        log_cost(trial, arm, metric) - log_cost(trial, baseline, metric) for trial in trials
    )


def mean_cost_ns(trials: Sequence[Trial], arm: str, metric: Metric) -> float:
    """Geometric mean over the trials of the nanoseconds per completed operation."""
    logs = log_costs(trials, arm, metric)
    if not logs:
        raise InputError(f"there are no executions of arm '{arm}'; run at least one")
    return math.exp(math.fsum(logs) / len(logs))


def user_share(trials: Iterable[Trial], arm: str) -> float:
    """Share of the arm's CPU time spent in user mode over all trials; 0 where it used none."""
    totals = [trial.arm(arm) for trial in trials]
    used = sum(one.cpu_ns for one in totals)
    return sum(one.user_ns for one in totals) / used if used else 0.0
