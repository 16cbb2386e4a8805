"""Rules for ending a race before its budget, and doubts that travel with a pair.

Pure: the caller asks at every execution and acts on the answer. Without a margin and without a
precision nothing stops but the budget.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ensign.model.comparisons import Direction, Size
from ensign.model.finding_kinds.judgment import (
    CORRELATED_EXECUTIONS,
    FEW_EXECUTIONS_DECIDE,
    NO_SPREAD,
)
from ensign.model.findings import Finding
from ensign.model.results import Stopped
from ensign.stats.correlation import (
    are_correlated,
    lag_one,
    shared_correlation,
    widening,
    widening_for,
)
from ensign.stats.looks import is_look
from ensign.stats.pair import (
    PairRule,
    Rule,
    direction_of,
    half_width,
    has_spread,
    log_interval,
    size_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ensign.stats.rounds import RoundCosts

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence


SIGNED_RANK_LOOKS = (8, 11, 16, 22, 32, 40)
LARGEST_P = 0.0155
SIGNED_RANK_LEVEL = 0.95
_LARGEST_EXACT = 300

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def doubled_ranks(magnitudes: ArrayLike) -> Integers:
    """Twice the mid-rank of each magnitude: whole numbers, also where magnitudes are equal."""
    _, group, sizes = np.unique(
        np.asarray(magnitudes, dtype=np.float64), return_inverse=True, return_counts=True
    )
    last_rank = np.cumsum(sizes)
    return np.asarray((2 * last_rank - sizes + 1)[group], dtype=np.int64)


def null_distribution(ranks: Sequence[int] | Integers) -> Floats:
    """P(sum of the chosen ranks = k) for k = 0 … their total, each chosen with probability 1/2."""
    distribution = np.ones(1)
    for rank in ranks:
        longer = np.zeros(distribution.size + int(rank))
        longer[: distribution.size] = distribution
        longer[int(rank) :] += distribution
        distribution = longer / 2
    return distribution


def signed_rank_p(log_ratios: Sequence[float]) -> float:
    """Two-sided p for "symmetric around 0"; 1 without a value other than 0.

    Exact up to 300 values, beyond that by the normal approximation of the same statistic.
    """
    d = np.asarray(log_ratios, dtype=np.float64)
    ranks = doubled_ranks(np.abs(d))[d != 0] if d.size else np.zeros(0, dtype=np.int64)
    positive = d[d != 0] > 0
    total = int(ranks.sum())
    if total == 0:
        return 1.0
    statistic = int(ranks[positive].sum())
    upper = max(statistic, total - statistic)
    if ranks.size > _LARGEST_EXACT:
        deviation = (upper - total / 2) / math.sqrt(
            float((ranks.astype(np.float64) ** 2).sum()) / 4
        )
        return min(1.0, math.erfc(deviation / math.sqrt(2)))
    return min(1.0, 2 * float(null_distribution(ranks)[upper:].sum()))


def signed_rank_excludes_zero(log_ratios: Sequence[float]) -> bool | None:
    """True if p is at most 0.0155; None with fewer than 8 executions, which cannot say."""
    if len(log_ratios) < SIGNED_RANK_LOOKS[0]:
        return None
    return signed_rank_p(log_ratios) <= LARGEST_P


_SLOWLY = "what changes slowly (a warm-up, a file or server that grows) should be looked for"


def may_stop(log_ratios: Sequence[float], rule: PairRule) -> Stopped | None:
    """Why this pair may end now, or None: it goes on.

    Only at a look and only under the sequential rule. With a precision, when the half-width is at
    most that, whatever else is known; else, with a margin, when the size is settled (within or
    beyond).
    It goes on while a few executions decide, and while the executions have no spread.
    """
    if rule.rule is Rule.T or not is_look(len(log_ratios), rule.first_look):
        return None
    if not has_spread(log_ratios) or few_executions_decide(log_ratios, rule):
        return None
    interval = log_interval(log_ratios, rule)
    if rule.precision is not None:
        return Stopped.PRECISION if half_width(interval) <= rule.precision else None
    if size_of(interval, rule.margin) in (Size.WITHIN, Size.BEYOND):
        return Stopped.DECIDED
    return None


def race_may_stop(pairs: Iterable[Sequence[float]], rule: PairRule) -> Stopped | None:
    """Why the race may end, when every pair of it may: all have the same rule. Else None."""
    reasons = {may_stop(log_ratios, rule) for log_ratios in pairs}
    return reasons.pop() if len(reasons) == 1 else None


def few_executions_decide(log_ratios: Sequence[float], rule: PairRule) -> bool:
    """True if only one of the interval and the signed-rank test excludes "no difference".

    False where the signed-rank test cannot say (fewer than 8 executions, or a level other than
    0.95, the one that it is calibrated for).
    """
    if not math.isclose(rule.level, SIGNED_RANK_LEVEL):
        return False
    by_ranks = signed_rank_excludes_zero(log_ratios)
    if by_ranks is None:
        return False
    by_interval = direction_of(log_interval(log_ratios, rule)) is not Direction.UNCLEAR
    return by_interval is not by_ranks


def pair_findings(
    log_ratios: Sequence[float], rule: PairRule, subject: str = ""
) -> tuple[Finding, ...]:
    """Doubts about one pair: `few-executions-decide`, `correlated-executions`, `no-spread`."""
    n = len(log_ratios)
    if n > 1 and not has_spread(log_ratios):
        text = (
            f"all {n} executions gave the same ratio: the clock is too coarse for this program, or "
            "its cost is not measured; the interval has no width because there is no spread"
        )
        return (NO_SPREAD.found(text, subject),)
    findings: list[Finding] = []
    if are_correlated(log_ratios):
        text = _correlated_text(log_ratios, rule)
        findings.append(CORRELATED_EXECUTIONS.found(text, subject))
    if few_executions_decide(log_ratios, rule):
        text = _few_text(log_ratios, rule)
        findings.append(FEW_EXECUTIONS_DECIDE.found(text, subject))
    return tuple(findings)


def round_correlation(costs: RoundCosts) -> float:
    """The correlation of neighboring rounds, from all variants and workloads together."""
    if not costs.rounds:
        return 0.0
    return shared_correlation(
        [costs.log_ratios(variant, costs.variants[0]) for variant in costs.variants[1:]]
    )


def correlated_rounds(costs: RoundCosts, correlation: float) -> tuple[Finding, ...]:
    """`correlated-executions` of each workload where that shows, and what is done about it."""
    names, others = costs.workloads, costs.variants[1:]
    pairs = len(names) * len(others)
    wider = float(widening_for(correlation, len(costs.rounds)))
    findings: dict[str, Finding] = {}
    for variant in others:
        for name, row in zip(
            names, costs.log_ratios(variant, costs.variants[0]).tolist(), strict=True
        ):
            if name in findings or not are_correlated(row, pairs):
                continue
            text = (
                f"each round resembles the one before (correlation {float(lag_one(row)):.2f} for "
                f"{variant}; "
                f"{correlation:.2f} over all variants and workloads, for which intervals are "
                f"{wider:.2g} times as wide): {_SLOWLY}"
            )
            findings[name] = CORRELATED_EXECUTIONS.found(text, name)
    return tuple(findings.values())


def _correlated_text(log_ratios: Sequence[float], rule: PairRule) -> str:
    r = f"{float(lag_one(log_ratios)):.2f}"
    text = f"each execution resembles the one before (correlation {r})"
    if rule.rule is Rule.T:
        return f"{text}: the interval is too narrow for that"
    wider = f"{float(widening(log_ratios)):.2g}"
    return f"{text}: the interval is {wider} times as wide for it; {_SLOWLY}"


def _few_text(log_ratios: Sequence[float], rule: PairRule) -> str:
    direction = direction_of(log_interval(log_ratios, rule))
    count = len(log_ratios)
    if direction is Direction.UNCLEAR:
        return (
            f"a few executions decide this: by the ranks of {count} executions there is a "
            "difference, by the interval there may be none; more executions are needed"
        )
    return (
        f"a few executions decide this: the interval says {direction.value}, by the ranks of "
        f"{count} executions it may be chance; more executions are needed"
    )
