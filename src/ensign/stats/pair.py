"""Deciding one pair of variants from the log cost ratios of their executions.

d_i = ln(cost of the variant / cost of the baseline) in execution i; below 0 is faster. The interval
is mean ± c · s/√n, s with divisor n - 1. c is the calibrated t mixture of `looks` (rule
`sequential`), or the ordinary quantile of Student's t (1908) with n - 1 degrees of freedom (rule
`t`), which is valid for one look at a number of executions fixed beforehand. Both are widened where
neighboring executions resemble each other (`correlation`).

Executions that all give the same d have no spread to judge by: the interval is the point itself,
the limit of the formula, but no race stops on it (`stopping`) and a finding says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensign.model.comparisons import Comparison, Direction, Size
from ensign.model.errors import InputError
from ensign.stats.correlation import FEWEST, lag_one, widening, widening_for
from ensign.stats.looks import critical_value, mixture_bound
from ensign.stats.student import two_sided_critical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensign.model.trials import Metric

FEWEST_FOR_LOOKS = 8
_NO_SPREAD = 1e-12
_LARGEST_EXPONENT = 709.0

Floats = NDArray[np.float64]


class Rule(StrEnum):
    """Kind of interval: for looking while it grows, or for one look at the end."""

    SEQUENTIAL = "sequential"
    T = "t"


@dataclass(frozen=True, slots=True)
class PairRule:
    """Rule for a pair, fixed before the race.

    `margin` is a share of the cost (0.01 for 1 %), `precision` the half-width of the interval on
    the ratio scale at which the race may stop; None for neither. `first_look` is 5 or 10. Where the
    spread of the `first` executions decided how many more there were (rule `t`), the interval is
    the wider one of Student's and Stein's (1945), which rests on their spread alone; 0: it did not.
    `correlation` of neighboring executions widens an interval by rule `t`; the sequential one is
    widened for the pair's own.
    """

    level: float = 0.95
    margin: float | None = None
    precision: float | None = None
    rule: Rule = Rule.SEQUENTIAL
    first_look: int = 5
    first: int = 0
    correlation: float = 0.0


@dataclass(frozen=True, slots=True)
class PairNames:
    """Variants that are compared, and the cost by which they are."""

    variant: str
    baseline: str
    metric: Metric


@dataclass(frozen=True, slots=True)
class LogInterval:
    """A mean log ratio and its interval; infinite where there are too few executions."""

    mean: float
    low: float
    high: float


def rule_for(executions_allowed: int) -> Rule:
    """`t` for a budget of fewer than 8 executions: not peeked into, one interval at its end."""
    return Rule.T if executions_allowed < FEWEST_FOR_LOOKS else Rule.SEQUENTIAL


def critical(executions: int, rule: PairRule) -> float:
    """C of mean ± c · s/√n; infinite where n is too small. InputError for an odd level."""
    if executions < 2:  # noqa: PLR2004 - one execution has no spread
        return math.inf
    if rule.rule is Rule.T:
        return two_sided_critical(rule.level, executions - 1)
    return critical_value(executions, mixture_bound(rule.level, rule.first_look))


def mean_and_half_width(log_ratios: ArrayLike, rule: PairRule) -> tuple[Floats, Floats]:
    """Mean and half-width of the interval over the last axis; the width may be infinite."""
    d = np.asarray(log_ratios, dtype=np.float64)
    executions = d.shape[-1]
    mean = np.asarray(d.mean(axis=-1))
    c = critical(executions, rule)
    if math.isinf(c):
        return mean, np.full_like(mean, math.inf)
    wide = c * d.std(axis=-1, ddof=1)
    if rule.rule is Rule.T and 1 < rule.first < executions:
        spread = d[..., : rule.first].std(axis=-1, ddof=1)
        wide = np.maximum(wide, critical(rule.first, rule) * spread)
    by_own = rule.rule is Rule.SEQUENTIAL
    wide = wide * (widening(d) if by_own else widening_for(rule.correlation, executions))
    return mean, np.asarray(wide / math.sqrt(executions))


def log_interval(log_ratios: Sequence[float], rule: PairRule) -> LogInterval:
    """Interval of the mean log ratio. InputError without executions or with a non-number."""
    d = _checked(log_ratios)
    mean, half = mean_and_half_width(d, rule)
    return LogInterval(float(mean), float(mean - half), float(mean + half))


def has_spread(log_ratios: Sequence[float]) -> bool:
    """True if the executions differ by more than rounding; one execution alone has no spread."""
    return len(log_ratios) > 1 and float(np.ptp(log_ratios)) > _NO_SPREAD


def direction_of(interval: LogInterval) -> Direction:
    """Slower when the whole interval is above 0, faster when below."""
    if interval.low > 0:
        return Direction.SLOWER
    if interval.high < 0:
        return Direction.FASTER
    return Direction.UNCLEAR


def size_of(interval: LogInterval, margin: float | None) -> Size | None:
    """Within when the whole interval is inside ±ln(1 + margin), beyond when it is outside.

    Never inferred from a failure to reject: an interval that reaches over the margin is unclear.
    """
    if margin is None:
        return None
    m = math.log1p(margin)
    if -m <= interval.low and interval.high <= m:
        return Size.WITHIN
    if interval.low > m or interval.high < -m:
        return Size.BEYOND
    return Size.UNCLEAR


def compare(names: PairNames, log_ratios: Sequence[float], rule: PairRule) -> Comparison:
    """Both statements about a pair, as a cost ratio. InputError as for `log_interval`."""
    compared = compared_by(
        names,
        log_interval(log_ratios, rule),
        (rule.level, rule.margin),
        len(log_ratios),
        rule.rule.value,
    )
    correlation = float(lag_one(log_ratios)) if len(log_ratios) >= FEWEST else None
    return replace(compared, correlation=correlation)


def compared_by(
    names: PairNames,
    interval: LogInterval,
    level_and_margin: tuple[float, float | None],
    executions: int,
    rule: str,
) -> Comparison:
    """Both statements about a pair whose interval is known."""
    level, margin = level_and_margin
    return Comparison(
        variant=names.variant,
        baseline=names.baseline,
        metric=names.metric,
        ratio=exp(interval.mean),
        low=exp(interval.low),
        high=exp(interval.high),
        level=level,
        direction=direction_of(interval),
        size=size_of(interval, margin),
        executions=executions,
        rule=rule,
    )


def exp(log_ratio: float) -> float:
    """Ratio of a log ratio; infinite where it is too large for a float."""
    return math.exp(log_ratio) if log_ratio < _LARGEST_EXPONENT else math.inf


def half_width(interval: LogInterval) -> float:
    """Half the interval's length on the ratio scale (0.005 for ±0.5 %); infinite without one."""
    if math.isinf(interval.high):
        return math.inf
    return (exp(interval.high) - exp(interval.low)) / 2


def _checked(log_ratios: Sequence[float]) -> Floats:
    d = np.asarray(log_ratios, dtype=np.float64)
    if d.size == 0:
        raise InputError("there are no executions to compare; run at least one")
    if not np.isfinite(d).all():
        raise InputError("a cost ratio is zero, infinite or not a number; nothing can be compared")
    return d
