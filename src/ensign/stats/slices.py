"""Diagnostics from single slices. No claim rests on them: intervals come from executions.

A slice's cost says something only where slices hold equal work (driven slices). Slices of fixed
time hold whatever the arm got done, and their time shows the meter's timing alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ensign.model.trials import Metric, Trial

if TYPE_CHECKING:
    from collections.abc import Sequence


def slice_costs_ns(trial: Trial, arm: str, metric: Metric) -> tuple[int, ...]:
    """Nanoseconds of each of the arm's slices, fillers left out."""
    return tuple(
        record.cpu_ns if metric is Metric.CPU else record.wall_ns
        for record in trial.slices
        if record.arm == arm and not record.filler
    )


def within_sd(costs_ns: Sequence[float]) -> float | None:
    """Spread of the log costs of slices (divisor n - 1); None for fewer than two slices.

    Slices without cost (the clock did not advance) are left out.
    """
    costs = np.asarray([cost for cost in costs_ns if cost > 0], dtype=np.float64)
    if costs.size < 2:  # noqa: PLR2004 - one slice has no spread
        return None
    return float(np.log(costs).std(ddof=1))


def within_variance_s(costs_ns: Sequence[float], other_ns: Sequence[float]) -> float | None:
    """ω² of a pair's log ratio, in seconds: variance of an execution's d times its seconds.

    From the slices of both arms taken as independent, so a lower bound where neighbouring slices
    are alike. The variance of a mean of logs of n slices is sd²/n; T = n · mean slice seconds.
    """
    total = 0.0
    for costs in (costs_ns, other_ns):
        sd = within_sd(costs)
        if sd is None:
            return None
        seconds_each = math.fsum(costs) / len(costs) / 1e9
        total += sd * sd * seconds_each
    return total
