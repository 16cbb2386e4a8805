"""Tests of whether slow relinks spend more of their time in a function than fast ones. Pure.

A relink is the unit: its executions share its layout, so their samples are added up first. Tested
is the correlation of a function's share with the relink's cost. Samples do not know what an
execution cost, so where shares are the same the test is as often wrong as it says, however costs
differ (docs/background/statistics/relink-shares.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ensign.stats.holm import holm_adjusted
from ensign.stats.layouts import nested_split, no_layouts_p, relink_groups
from ensign.stats.student import two_sided_p

Floats = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")

_FEWEST_RELINKS = 6
_FEWEST_SERIES = 3
_FEWEST_SAMPLES = 20  # of a relink, and of a function in all
_SMALLEST_SHARE = 0.02  # of a function that may matter; others would only dilute the level
_LEVEL = 0.99
_CERTAIN = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class ShareChange(Generic[Key]):
    """Mean shares of a key in the slower and the faster half, its samples there, and the p.

    That is of no growth with the cost.
    """

    key: Key
    slow: float
    fast: float
    slow_samples: int
    fast_samples: int
    p: float


def own_layout_sds(y: Floats, columns: Sequence[int], relinks: int) -> Floats | None:
    """Each series' own standard deviation between layouts, of y[series, column] (log costs).

    `columns` are numbers of rounds. The variance between relinks of a difference of two is the sum
    of both (Grubbs, JASA 43, 1948), which three or more can be told from. None with fewer, or
    where no relink ran twice.
    """
    count = len(y)
    if count < _FEWEST_SERIES:
        return None
    sums, total = np.zeros(count), 0.0
    for i, j in combinations(range(count), 2):
        split = nested_split(relink_groups(y[i] - y[j], columns, relinks))
        if split is None:
            return None
        between = split.layout_sd**2
        total += between
        sums[[i, j]] += between
    own = (sums - total / (count - 1)) / (count - 2)
    return np.asarray(np.sqrt(np.maximum(own, 0.0)))


def shows_layouts(d: Floats, columns: Sequence[int], relinks: int) -> bool:
    """True if executions of one relink of d[column] are nearer to each other than to others'."""
    return no_layouts_p(relink_groups(d, columns, relinks)) <= 1 - _LEVEL


def slowest_first(
    costs: Mapping[str, Sequence[float]], samples: Mapping[str, int]
) -> tuple[str, ...]:
    """Relinks by their mean cost; those with few samples are left out.

    Empty where fewer than six are left.
    """
    told = [name for name in costs if samples.get(name, 0) >= _FEWEST_SAMPLES]
    if len(told) < _FEWEST_RELINKS:
        return ()
    return tuple(sorted(told, key=lambda name: -float(np.mean(costs[name]))))


def halves(relinks: Sequence[T]) -> tuple[tuple[T, ...], tuple[T, ...]]:
    """The slower and the faster half; the middle one of an odd number is in neither."""
    half = len(relinks) // 2
    return tuple(relinks[:half]), tuple(relinks[len(relinks) - half :])


def share_changes(
    costs: Sequence[float], counts: Sequence[Mapping[Key, int]]
) -> tuple[ShareChange[Key], ...]:
    """For each key with a part of the time: log costs of relinks, slowest first, and samples."""
    total = _sum(counts)
    slow, fast = halves(counts)
    slower, faster = _sum(slow), _sum(fast)
    return tuple(
        ShareChange(
            key,
            float(_shares(slow, key).mean()),
            float(_shares(fast, key).mean()),
            slower[key],
            faster[key],
            _no_growth(np.asarray(costs), _shares(counts, key)),
        )
        for key, count in total.items()
        if count >= max(_FEWEST_SAMPLES, _SMALLEST_SHARE * total.total())
    )


def _no_growth(costs: Floats, shares: Floats) -> float:
    """One-sided p of no correlation, by Student's t."""
    if not costs.std() or not shares.std():
        return 1.0
    r = min(float(np.corrcoef(costs, shares)[0, 1]), _CERTAIN)
    degrees = len(costs) - 2
    t = r * math.sqrt(degrees / (1 - r * r))
    both = float(two_sided_p(t, degrees))
    return both / 2 if t > 0 else 1 - both / 2


def shown_growths(
    families: Sequence[Sequence[ShareChange[Key]]], level: float
) -> tuple[tuple[ShareChange[Key], ...], ...]:
    """Functions of each family whose share is larger in slow relinks: Holm's method over all."""
    adjusted = iter(holm_adjusted([change.p for family in families for change in family]))
    tested = [[replace(change, p=next(adjusted)) for change in family] for family in families]
    return tuple(
        tuple(change for change in family if change.p <= 1 - level and change.slow > change.fast)
        for family in tested
    )


def _sum(counts: Sequence[Mapping[Key, int]]) -> Counter[Key]:
    total: Counter[Key] = Counter()
    for count in counts:
        total.update(count)
    return total


def _shares(counts: Sequence[Mapping[Key, int]], key: Key) -> Floats:
    return np.array([count.get(key, 0) / sum(count.values()) for count in counts])
