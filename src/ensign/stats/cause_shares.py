"""Shares of a difference, from variants with and without each part of it. Pure.

The effect of a part is the mean of what it adds to the one end and what the other end loses without
it. That is its Shapley value wherever no three parts interact, and whatever they do for up to two
(docs/background/statistics/causes.md). A column of values is a round, or a relink: cells of one
column were raced side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ensign.stats.holm import holm_adjusted
from ensign.stats.student import two_sided_critical, two_sided_p

Floats = NDArray[np.float64]
_FEWEST = 2


@dataclass(frozen=True, slots=True)
class Effect:
    """Mean of a log ratio with its interval, its share of the whole with that, and its p."""

    mean: float
    low: float
    high: float
    share: float
    share_low: float
    share_high: float
    p: float


@dataclass(frozen=True, slots=True)
class Shares:
    """The whole, its parts in order, and what they leave; p of parts are adjusted by Holm."""

    total: Effect
    parts: tuple[Effect, ...]
    rest: Effect


def part_effect(
    ends: tuple[Floats, Floats], added: Floats | None, removed: Floats | None
) -> Floats | None:
    """What a part adds in each column; by one end alone where the other is missing."""
    effects = [] if added is None else [added - ends[0]]
    effects += [] if removed is None else [ends[1] - removed]
    return np.asarray(sum(effects) / len(effects)) if effects else None


def depends(
    ends: tuple[Floats, Floats],
    toggled: Sequence[tuple[Floats | None, Floats | None]],
    level: float,
) -> tuple[bool, ...]:
    """Whether a part adds something else alone than beside all others (paired t-tests, Holm).

    `toggled` are added and removed of each part; without both of them, nothing is shown.
    """
    both = [(a, r) for a, r in toggled if a is not None and r is not None]
    tested = [_effect((a - ends[0]) - (ends[1] - r), ends[1], level).p for a, r in both]
    shown = iter(p <= 1 - level for p in holm_adjusted(tested))
    return tuple(a is not None and r is not None and next(shown) for a, r in toggled)


def cause_shares(total: Floats, parts: Sequence[Floats], level: float) -> Shares | None:
    """Shares of total[column] that each part[column] has. None with fewer than two columns.

    Intervals are Student's; those of shares are of a ratio of means, by linearization (Cochran,
    Sampling Techniques, 6.4), and mean something only where the whole differs from 0.
    """
    if len(total) < _FEWEST:
        return None
    rest = total - sum(parts, np.zeros_like(total))
    whole, *effects, remainder = (_effect(part, total, level) for part in (total, *parts, rest))
    adjusted = holm_adjusted([effect.p for effect in effects]) if effects else ()
    named = tuple(replace(effect, p=p) for effect, p in zip(effects, adjusted, strict=True))
    return Shares(whole, named, remainder)


def _effect(values: Floats, total: Floats, level: float) -> Effect:
    count, mean, whole = len(values), float(values.mean()), float(total.mean())
    critical = two_sided_critical(level, count - 1) / math.sqrt(count)
    sd = float(values.std(ddof=1))
    half = critical * sd
    share = mean / whole if whole else 0.0
    reach = critical * float((values - share * total).std(ddof=1)) / abs(whole) if whole else 0.0
    t = mean * math.sqrt(count) / sd if sd else math.copysign(math.inf, mean) if mean else 0.0
    p = float(two_sided_p(t, count - 1))
    return Effect(mean, mean - half, mean + half, share, share - reach, share + reach, p)
