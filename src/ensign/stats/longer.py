"""How long a race would have to be to find a difference that this one could not. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ensign.model.comparisons import Comparison, Direction, Size
from ensign.stats.student import two_sided_criticals

_DIFFERENCES = (0.05, 0.02, 0.01, 0.005)
_POWER = 0.84162  # of the normal distribution, 80 % lie below


@dataclass(frozen=True, slots=True)
class Longer:
    """A difference, and how many times as many executions find it in 4 of 5 races."""

    difference: float
    times: float


def longer_race(pairs: Iterable[Comparison], margin: float | None) -> Longer | None:
    """Of the pair that takes longest among the undecided ones; None where there is none.

    The difference is the margin, or the largest of 5, 2, 1 and 0.5 % that these executions would
    not find.
    """
    smallest = [_findable(pair) for pair in pairs if _is_open(pair)]
    most = max((each for each in smallest if math.isfinite(each)), default=0.0)
    for difference in _DIFFERENCES if margin is None else (margin,):
        times = (most / math.log1p(difference)) ** 2
        if times > 1:
            return Longer(difference, times)
    return None


def _is_open(pair: Comparison) -> bool:
    return (
        pair.direction is Direction.UNCLEAR and not pair.withheld and pair.size is not Size.WITHIN
    )


def _findable(pair: Comparison) -> float:
    """The difference, on the log scale, that executions like these find in 4 of 5 races.

    The interval is taken as if the standard deviation were known beforehand: few executions pay
    for not knowing it, and that gets less by itself.
    """
    if pair.executions < 2 or pair.low <= 0 or math.isinf(pair.high):  # noqa: PLR2004
        return math.inf
    few, many = two_sided_criticals(pair.level, [pair.executions - 1, math.inf])
    standard_error = math.log(pair.high / pair.low) / 2 / float(few)
    return standard_error * (float(many) + _POWER)
