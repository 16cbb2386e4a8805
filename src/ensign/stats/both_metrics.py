"""Agreement of CPU time and wall time on a pair, and the shares of a variant's time.

The two costs of one execution share its noise, so they are compared within executions: e_i is the
log ratio of the pair by one cost minus that by the other. They disagree where the interval of e
excludes 0 and a reader would conclude something else: the directions shown are opposite, or the
ratio of the ratios exceeds the margin (1 % where there is none) and what start-up and waiting
explain. That one is shown and the other is not is no disagreement by itself: wall time is the
noisier one.

Start-up and waiting that both variants have alike dilute a ratio of wall times: with CPU times c
and C and a common waiting w it is (C + w)/(c + w) where that of CPU time is C/c. That is no other
conclusion as long as both say about the same size; where the waiting leaves less than half of it
(in logarithms), a reader would conclude something else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ensign.model.comparisons import Direction, OtherMetric, TimeShares
from ensign.model.trials import Metric
from ensign.stats.disturbed import taken_share
from ensign.stats.pair import LogInterval, direction_of, log_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ensign.model.comparisons import Comparison
    from ensign.model.trials import Trial
    from ensign.stats.pair import PairRule

_MARGIN = 0.01
_NOT_MEASURED = (None, None)

SharesOfPair = tuple["TimeShares | None", "TimeShares | None"]
"""Costs of the baseline and of the variant."""


def disagree(
    chosen: Comparison,
    other: Comparison,
    difference: LogInterval,
    margin: float | None,
    shares: SharesOfPair = _NOT_MEASURED,
) -> bool:
    """True if the two costs disagree; `difference` is the interval of e."""
    if direction_of(difference) is Direction.UNCLEAR:
        return False
    directions = {chosen.direction, other.direction}
    if directions in ({Direction.FASTER, Direction.SLOWER}, {Direction.UNCLEAR}):
        return directions != {Direction.UNCLEAR}
    limit = math.log1p(_MARGIN if margin is None else margin)
    unexplained = abs(difference.mean)
    much = chosen.says_much_less(other) or other.says_much_less(chosen)
    if chosen.direction is other.direction and not much:
        unexplained -= _by_common_waiting(chosen, other, shares)
    return unexplained > limit


def _by_common_waiting(chosen: Comparison, other: Comparison, shares: SharesOfPair) -> float:
    """Excess of the CPU ratio that waiting of both explains, as a log ratio; 0 at least."""
    baseline, variant = shares
    if baseline is None or variant is None:
        return 0.0
    by_wall = chosen if chosen.metric is Metric.WALL else other
    # In units of the baseline's wall time.
    waiting = min(baseline.waiting, variant.waiting * by_wall.ratio)
    before, after = baseline.cpu, variant.cpu * by_wall.ratio
    if min(before, after) <= 0:
        return 0.0
    return max(
        0.0, abs(math.log(after / before)) - abs(math.log((after + waiting) / (before + waiting)))
    )


def beside(
    chosen: Comparison,
    other: Comparison,
    differences: Sequence[float],
    rule: PairRule,
    shares: SharesOfPair,
) -> OtherMetric:
    """The other cost of a pair. `differences` are e of each execution or round."""
    disagreement = disagree(chosen, other, log_interval(differences, rule), rule.margin, shares)
    return OtherMetric(other, disagreement, *shares)


def time_shares(trials: Iterable[Trial], variant: str) -> TimeShares | None:
    """Shares of the variant's running wall time, over all trials; None where it had none."""
    totals = [one for trial in trials for one in trial.variants if one.variant == variant]
    wall = sum(one.wall_ns for one in totals)
    cpu = sum(one.cpu_ns for one in totals)
    if wall <= 0:
        return None
    return TimeShares(
        cpu=cpu / wall,
        system=sum(one.system_ns for one in totals) / cpu if cpu else 0.0,
        load=sum(one.load_cpu_ns for one in totals) / wall,
        taken=taken_share(totals),
    )
