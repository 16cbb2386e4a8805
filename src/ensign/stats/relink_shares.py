"""Whether slow relinks spend more of their time in a function than fast ones. Pure.

A relink is the unit: its executions share its layout, so their samples are added up first. Relinks
are ordered by cost, and shares of the slower half are held against those of the faster half.
Samples do not know what an execution cost, so where shares are the same a test is as often wrong
as it says, however relinks were ordered (docs/background/statistics/relink-shares.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ensign.stats.holm import holm_adjusted
from ensign.stats.layouts import Split, nested_split
from ensign.stats.student import f_tail
from ensign.stats.welch import welch

Floats = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)

_FEWEST_RELINKS = 6  # three on a side
_FEWEST_SERIES = 3
_FEWEST_SAMPLES = 20  # of a relink, and of a function in all
_LEVEL = 0.99


@dataclass(frozen=True, slots=True)
class ShareChange(Generic[Key]):
    """Mean shares of a key, its samples on both sides, and the p of no growth in slow relinks."""

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
        split = _split(y[i] - y[j], columns, relinks)
        if split is None:
            return None
        between = split.layout_sd**2
        total += between
        sums[[i, j]] += between
    own = (sums - total / (count - 1)) / (count - 2)
    return np.asarray(np.sqrt(np.maximum(own, 0.0)))


def shows_layouts(d: Floats, columns: Sequence[int], relinks: int) -> bool:
    """Whether executions of one relink of d[column] are nearer to each other than to others'."""
    split = _split(d, columns, relinks)
    if split is None or not split.layout_sd:
        return False
    each = split.executions / split.relinks
    if not split.execution_sd:
        return True
    f = 1 + each * (split.layout_sd / split.execution_sd) ** 2
    return f_tail(f, split.relinks - 1, split.executions - split.relinks) <= 1 - _LEVEL


def halves_of(
    costs: Mapping[str, Sequence[float]], samples: Mapping[str, int]
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The slower and the faster half of relinks; the middle one of an odd number is in neither.

    Relinks with few samples are left out. None where fewer than six are left.
    """
    told = [name for name in costs if samples.get(name, 0) >= _FEWEST_SAMPLES]
    if len(told) < _FEWEST_RELINKS:
        return None
    told.sort(key=lambda name: float(np.mean(costs[name])))
    half = len(told) // 2
    return tuple(told[-half:]), tuple(told[:half])


def share_changes(
    slow: Sequence[Mapping[Key, int]], fast: Sequence[Mapping[Key, int]]
) -> tuple[ShareChange[Key], ...]:
    """Of counts by key, one mapping for each relink; of keys with enough samples in all."""
    slower, faster = _sum(slow), _sum(fast)
    keys = [key for key, count in (slower + faster).items() if count >= _FEWEST_SAMPLES]
    changes = []
    for key in keys:
        a, b = _shares(fast, key), _shares(slow, key)
        found = welch(a, b, _LEVEL)
        p = float(found.p) / 2 if found.mean > 0 else 1 - float(found.p) / 2
        changes.append(
            ShareChange(key, float(b.mean()), float(a.mean()), slower[key], faster[key], p)
        )
    return tuple(changes)


def shown_growths(
    families: Sequence[Sequence[ShareChange[Key]]], level: float
) -> tuple[tuple[ShareChange[Key], ...], ...]:
    """Of each family those whose share is larger in slow relinks: Holm's method over all."""
    adjusted = iter(holm_adjusted([each.p for family in families for each in family]))
    tested = [[replace(each, p=next(adjusted)) for each in family] for family in families]
    return tuple(tuple(each for each in family if each.p <= 1 - level) for family in tested)


def _split(d: Floats, columns: Sequence[int], relinks: int) -> Split | None:
    groups: dict[int, list[float]] = {}
    for column, value in zip(columns, d.tolist(), strict=True):
        groups.setdefault(column % relinks, []).append(value)
    return nested_split(tuple(groups.values()))


def _sum(counts: Sequence[Mapping[Key, int]]) -> Counter[Key]:
    total: Counter[Key] = Counter()
    for each in counts:
        total.update(each)
    return total


def _shares(counts: Sequence[Mapping[Key, int]], key: Key) -> Floats:
    return np.array([each.get(key, 0) / sum(each.values()) for each in counts])
