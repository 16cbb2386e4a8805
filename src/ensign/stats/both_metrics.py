"""Whether CPU time and wall time say the same of a pair, and where a variant's time went.

The two costs of one execution share its noise, so they are compared within executions: e_i is the
log ratio of the pair by one cost minus that by the other. They disagree where the interval of e
excludes 0 and they differ in direction or, by their estimates, by more than the margin (1 % where
there is none). That one is shown and the other is not is no disagreement by itself: wall time is
the noisier one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ensign.model.comparisons import Direction, OtherMetric, TimeShares
from ensign.stats.disturbed import taken_share
from ensign.stats.pair import LogInterval, direction_of, log_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ensign.model.comparisons import Comparison
    from ensign.model.trials import Trial
    from ensign.stats.pair import PairRule

_MARGIN = 0.01


def disagree(
    chosen: Comparison, other: Comparison, difference: LogInterval, margin: float | None
) -> bool:
    """Whether the two costs disagree; `difference` is the interval of e."""
    if direction_of(difference) is Direction.UNCLEAR:
        return False
    limit = math.log1p(_MARGIN if margin is None else margin)
    return chosen.direction is not other.direction or abs(difference.mean) > limit


def beside(
    chosen: Comparison,
    other: Comparison,
    differences: Sequence[float],
    rule: PairRule,
    shares: tuple[TimeShares | None, TimeShares | None],
) -> OtherMetric:
    """The other cost of a pair. `differences` are e of each execution or round."""
    said = disagree(chosen, other, log_interval(differences, rule), rule.margin)
    return OtherMetric(other, said, *shares)


def time_shares(trials: Iterable[Trial], variant: str) -> TimeShares | None:
    """Where the variant's running wall time went, over all trials; None where it had none."""
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
