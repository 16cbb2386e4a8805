"""Precision that a study will reach, from its own first rounds: all variants, as they race.

d[variant, workload, round] are log ratios to the baseline, as reports make them. With k first
rounds:

    s²[w]   mean over the variants of the variance over the rounds
    s       median over w of s[w]/√m(f), f degrees of freedom each
    S²      mean over the variants of the variance over the rounds of g (means over workloads)
    half-width of a workload    t(n - 1) · √m(n - 1) · s / √n
    half-width of the suite     t(n - 1) · √m(n - 1) · √max(own, shared) / √n

m(f) is the median of χ²(f)/f: what is told is the median of what will be reached. Variants share
the baseline, and with it a third of their variance, so that V of them count as V/(1 + (V - 1)/9).
The suite's variance is Σ s²[w]/W² (own) where workloads vary by themselves. Where S² exceeds that
by more than chance does in one study of ten, the rounds share something (a relink, a disturbed
machine), and S² itself is taken.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ensign.model.experiment import Precision
from ensign.stats.pair import PairRule, Rule, critical
from ensign.stats.student import chi_squared_median, chi_squared_tail

if TYPE_CHECKING:
    from ensign.stats.rounds import RoundCosts

from collections.abc import Iterable, Sequence
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
    """The pair that takes longest among the undecided ones; None where there is none.

    The difference is the margin, or the largest of 5, 2, 1 and 0.5 % that these executions would
    not find.
    """
    smallest = [_findable(pair) for pair in pairs if _is_open(pair)]
    most = max((value for value in smallest if math.isfinite(value)), default=0.0)
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


Floats = NDArray[np.float64]

FEWEST_ROUNDS = 5
_FEWEST_PILOTS = 3
# So many degrees of freedom of all variants and workloads together tell a spread to a seventh.
_DEGREES = 24
_SHARED_WITH_BASELINE = 1 / 9  # squared correlation of two variants' ratios to a mean of two copies
_BY_CHANCE = 0.1


def pilot_rounds(variants: int, workloads: int, rounds: int) -> int:
    """Number of the first of so many rounds that tell the spread of `variants` variants.

    At least 3; more, up to a third of all, where few variants and workloads are raced.
    """
    needed = 1 + math.ceil(_DEGREES / (workloads * _effective(variants)))
    return max(_FEWEST_PILOTS, min(needed, rounds // 3))


def dealt_executions(
    d: Floats, execution_ns: Sequence[float], left_ns: float, most: int
) -> tuple[int, ...]:
    """Executions of each workload in a round, from d[variant, workload, round] of the first ones.

    One each; then, as long as it fits into `left_ns`, one more of the workload whose mean of a
    round is the least sure. That depends on widths alone, never on a ratio.
    """
    spreads = np.sqrt(d.var(axis=-1, ddof=1).mean(axis=0))
    counts = np.ones(len(execution_ns), dtype=int)
    while True:
        fits = [w for w, ns in enumerate(execution_ns) if counts[w] < most and ns <= left_ns]
        if not fits:
            return tuple(map(int, counts))
        widest = max(fits, key=lambda w: spreads[w] / math.sqrt(counts[w]))
        counts[widest] += 1
        left_ns -= execution_ns[widest]


def log_ratios_of(costs: RoundCosts) -> Floats:
    """d[variant, workload, round] of all variants, or of the twin where there is none."""
    return np.stack([costs.log_ratios(variant, costs.variants[0]) for variant in costs.compared])


def expected_precision(d: Floats, rounds: int, level: float) -> Precision:
    """Half-widths to expect of so many rounds (two or more), from two or more of them."""
    workload, suite = _spreads(d)
    degrees = rounds - 1
    critical_value = critical(rounds, PairRule(level=level, rule=Rule.T))
    factor = critical_value * math.sqrt(chi_squared_median(degrees) / degrees / rounds)
    return Precision(suite=factor * suite, workload=factor * workload)


def rounds_for(d: Floats, precision: float, most: int, level: float) -> int:
    """The fewest rounds, 5 or more, of which the suite's `precision` can be expected; or `most`."""
    for rounds in range(FEWEST_ROUNDS, most):
        if expected_precision(d, rounds, level).suite <= precision:
            return rounds
    return most


def _spreads(d: Floats) -> tuple[float, float]:
    """Standard deviations of one round: of the median workload, and of the suite."""
    variants, workloads, rounds = d.shape
    per_variant = (rounds - 1) * _effective(variants)
    own = d.var(axis=2, ddof=1).mean(axis=0)
    middle = math.sqrt(float(np.median(own)) / chi_squared_median(per_variant) * per_variant)
    alone = float(own.sum()) / workloads**2
    together = float(d.mean(axis=1).var(axis=1, ddof=1).mean())
    if alone > 0 and chi_squared_tail(per_variant * together / alone, per_variant) < _BY_CHANCE:
        return middle, math.sqrt(together)
    return middle, math.sqrt(alone)


def _effective(variants: int) -> float:
    return variants / (1 + (variants - 1) * _SHARED_WITH_BASELINE)
