"""Statements about a pair of arms. Ratios are cost ratios: below 1 is faster."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ensign.model.trials import Metric


class Direction(StrEnum):
    """Which way the whole interval lies."""

    FASTER = "faster"
    SLOWER = "slower"
    UNCLEAR = "unclear"


class Size(StrEnum):
    """Where the whole interval lies with respect to the margin."""

    WITHIN = "within"
    BEYOND = "beyond"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A cost ratio (arm over baseline) with its confidence interval and two statements.

    `size` is None without a margin. `low` is 0 and `high` infinite where `executions` are too few
    for an interval. `rule` names how the interval was made: `sequential`, `t`.
    """

    arm: str
    baseline: str
    metric: Metric
    ratio: float
    low: float
    high: float
    level: float
    direction: Direction
    size: Size | None
    executions: int
    rule: str = "sequential"
