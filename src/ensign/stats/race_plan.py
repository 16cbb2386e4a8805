"""How long an execution should be: long ones average slices, short ones average executions.

Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013): the variance of the
mean over a given total time is smallest when each execution runs for √(c · ω²/σ²) seconds, c its
start-up seconds, ω² the variance within an execution times its seconds, σ² the variance between
executions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """ω² in seconds (variance within an execution times its seconds) and σ² between executions."""

    within_s: float
    between: float


def between_variance(variance: float, within_s: float, seconds: float) -> float:
    """σ² from the variance of d over executions of so many seconds: what ω²/T leaves; at least 0.

    Measured from few executions it is rough (a factor of 2 either way from ten).
    """
    return max(0.0, variance - within_s / seconds)


def execution_seconds(
    startup_s: float, spread: Spread, shortest_s: float, longest_s: float
) -> float:
    """Seconds to race each arm per execution, kept between the two bounds.

    The longest where executions do not differ (σ² = 0): then only start-up would be paid more.
    """
    if spread.between <= 0:
        return longest_s
    best = math.sqrt(startup_s * spread.within_s / spread.between)
    return min(max(best, shortest_s), longest_s)


def standard_error(
    budget_s: float, startup_s: float, seconds: float, arms: int, spread: Spread
) -> float:
    """Predict the standard error of a mean log ratio when a budget goes into such executions.

    Each execution pays start-up and `seconds` once per arm; infinite where none fits.
    """
    executions = math.floor(budget_s / (arms * (startup_s + seconds)))
    if executions < 1:
        return math.inf
    return math.sqrt((spread.between + spread.within_s / seconds) / executions)
