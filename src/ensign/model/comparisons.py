"""Statements about a pair of variants. Ratios are cost ratios: below 1 is faster."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from ensign.model.trials import Metric

_MUCH_LESS = 0.5


class Direction(StrEnum):
    """Direction in which the whole interval lies."""

    FASTER = "faster"
    SLOWER = "slower"
    UNCLEAR = "unclear"


class Size(StrEnum):
    """Position of the whole interval with respect to the margin."""

    WITHIN = "within"
    BEYOND = "beyond"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class TimeShares:
    """Shares of the running wall time of a variant; `system` is of its CPU time.

    `cpu` and `load` (of the load generator) exceed 1 where several CPUs were busy. `taken` is the
    share in which the variant wanted a CPU and others had it; None where that was not read.
    """

    cpu: float
    system: float
    load: float = 0.0
    taken: float | None = None

    @property
    def waiting(self) -> float:
        """The share in which it neither ran nor wanted to: disk, network, locks, timers, load."""
        return max(0.0, 1.0 - self.cpu - (self.taken or 0.0))


@dataclass(frozen=True, slots=True)
class OtherMetric:
    """The same pair by the other cost, CPU or wall time.

    `disagrees`: a reader of both would conclude otherwise, and that difference is itself shown.
    `baseline` and `variant` say where their time went, which may tell why.
    """

    other: Comparison
    disagrees: bool = False
    baseline: TimeShares | None = None
    variant: TimeShares | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A cost ratio (variant over baseline) with its confidence interval and two statements.

    `size` is None without a margin. `low` is 0 and `high` infinite where `executions` are too few
    for an interval. `rule` names how the interval was made: `sequential`, `t`. `withheld` says why
    nothing is claimed whatever the numbers are; the direction is unclear then. `correlation` is
    that of neighboring executions (lag 1), None where there are too few.
    """

    variant: str
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
    withheld: str = ""
    correlation: float | None = None
    beside: OtherMetric | None = None

    def says_much_less(self, than: Comparison) -> bool:
        """True if its effect is less than half of the other's, in logarithms."""
        return abs(math.log(self.ratio)) < _MUCH_LESS * abs(math.log(than.ratio))

    def without_claim(self, reason: str) -> Comparison:
        """The same numbers, of which nothing is claimed for that reason (a clause, no stop)."""
        size = None if self.size is None else Size.UNCLEAR
        return replace(self, direction=Direction.UNCLEAR, size=size, withheld=reason)


@dataclass(frozen=True, slots=True)
class AxisChange:
    """The value `new` of an axis instead of `old`."""

    axis: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Effect:
    """One change: what it is worth. Two changes of different axes: their interaction.

    `comparison` is over all workloads; its ratio is that of costs, geometric mean over `groups`
    matched groups of builds: pairs that differ in the change alone, or squares of two changes. The
    ratio of an interaction is what both changes do together over the product of what each does
    alone. `given` are the values of other axes that the groups were chosen by; `only` are those
    that all groups share although the study varies them. `significant` says whether a direction is
    shown after Holm's adjustment within the list that the effect belongs to. `other` is by the
    other metric.
    """

    changes: tuple[AxisChange, ...]
    given: tuple[tuple[str, str], ...]
    only: tuple[tuple[str, str], ...]
    groups: int
    comparison: Comparison
    other: Comparison | None
    significant: bool


@dataclass(frozen=True, slots=True)
class Factorial:
    """Three lists of effects, each adjusted by itself.

    `main` averages over all matched pairs of a change, `conditional` over those of one value of
    another axis, down to single pairs; `interactions` compare the two halves of matched squares.
    """

    main: tuple[Effect, ...]
    conditional: tuple[Effect, ...]
    interactions: tuple[Effect, ...]

    def conditions_of(self, change: AxisChange) -> tuple[Effect, ...]:
        """The conditional effects of a change."""
        return tuple(effect for effect in self.conditional if effect.changes == (change,))


NO_EFFECTS = Factorial((), (), ())
