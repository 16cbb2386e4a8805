"""From trials to costs: the estimate of an execution is the log of the ratio of totals.

Cost per completed operation over the whole execution, variant over baseline. Means of the logs of
slices are biased where the variants' noise differs, and medians ignore rare costs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ensign.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ensign.model.trials import Metric, Trial


def log_cost(trial: Trial, variant: str, metric: Metric) -> float:
    """Log of the nanoseconds per completed operation of a variant in one execution.

    Where variants were raced in groups, it is shifted by what the variant's own baseline and twin
    cost more than the first group's: every ratio is to the two copies raced with the variant.
    InputError where the variant took no part, completed nothing, or used no measurable time.
    """
    return beside_baseline(trial, variant, lambda name: _log_cost(trial, name, metric))


def beside_baseline(trial: Trial, variant: str, log_of: Callable[[str], float]) -> float:
    """The log of a variant, less what its own group's baseline has more than the first group's.

    Means of both copies, the baseline's and its twin's: one copy alone would put its own noise into
    each ratio to the mean of two.
    """
    baselines = trial.baselines_of(variant)
    if baselines is None:
        return log_of(variant)
    own, first = (math.fsum(map(log_of, names)) / len(names) for names in baselines)
    return log_of(variant) + first - own


def _log_cost(trial: Trial, variant: str, metric: Metric) -> float:
    where = (
        f"{trial.workload}, round {trial.round_index}"
        if trial.workload
        else f"round {trial.round_index}"
    )
    try:
        totals = trial.variant(variant)
    except KeyError:
        raise InputError(f"variant '{variant}' took no part in an execution ({where})") from None
    if totals.operations <= 0:
        raise InputError(
            f"variant '{variant}' completed no operation ({where}); give it more time or load"
        )
    cost = totals.cost(metric)
    if cost <= 0:
        raise InputError(
            f"variant '{variant}' used no measurable {metric.value} time ({where}); "
            "give it more work, or compare by the other metric"
        )
    return math.log(cost)


def log_costs(trials: Iterable[Trial], variant: str, metric: Metric) -> tuple[float, ...]:
    """Log costs of a variant, one for each trial, in their order."""
    return tuple(log_cost(trial, variant, metric) for trial in trials)


def log_ratios(
    trials: Iterable[Trial], variant: str, baseline: str, metric: Metric
) -> tuple[float, ...]:
    """Log ratio of each trial: ln cost of `variant` minus ln cost of `baseline`.

    Any two variants can be compared so; two intervals against a third variant are never subtracted.
    """
    return tuple(
        log_cost(trial, variant, metric) - log_cost(trial, baseline, metric) for trial in trials
    )


def mean_cost_ns(trials: Sequence[Trial], variant: str, metric: Metric) -> float:
    """Geometric mean over the trials of the nanoseconds per completed operation."""
    logs = log_costs(trials, variant, metric)
    if not logs:
        raise InputError(f"there are no executions of variant '{variant}'; run at least one")
    return math.exp(math.fsum(logs) / len(logs))


def user_share(trials: Iterable[Trial], variant: str) -> float:
    """Share of the variant's CPU time spent in user mode over all trials; 0 where it used none."""
    totals = [trial.variant(variant) for trial in trials]
    used = sum(one.cpu_ns for one in totals)
    return sum(one.user_ns for one in totals) / used if used else 0.0
