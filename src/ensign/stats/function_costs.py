"""CPU time by function, from samples of where programs stood, and how two variants' differ. Pure.

An execution's user time is shared out by its samples; a mean over executions estimates the time of
a function without bias, however few samples each execution has. The unit is the execution, in which
both variants are raced side by side (docs/background/statistics/function-costs.md).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ensign.stats.student import two_sided_critical

Floats = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)

_FEWEST = 2


@dataclass(frozen=True, slots=True)
class SampledExecution(Generic[Key]):
    """User and system time (ns per operation) of an execution, and samples in its own code."""

    user_ns: float
    system_ns: float
    samples: Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class CostDifference:
    """Mean costs of a part (ns), and how much that part adds, as a share of all cost before."""

    before_ns: float
    after_ns: float
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CostDifferences(Generic[Key]):
    """What the total of the parts, the kernel (system time) and each function add."""

    total: CostDifference
    kernel: CostDifference
    functions: Mapping[Key, CostDifference]


def cost_differences(
    before: Sequence[SampledExecution[Key]], after: Sequence[SampledExecution[Key]], level: float
) -> CostDifferences[Key] | None:
    """Differences of both by function, over executions that were raced in pairs.

    Intervals are of a ratio of means (Fieller's problem, by linearization: Cochran, Sampling
    Techniques, 6.4), with Student's t. None with fewer than two pairs, without time, or where one
    side was never sampled.
    """
    keys = tuple({key: None for execution in (*before, *after) for key in execution.samples})
    one, two = (_by_function(each, keys) for each in (before, after))
    if len(before) < _FEWEST or len(before) != len(after) or one is None or two is None:
        return None
    kernel = [
        np.asarray([execution.system_ns for execution in side])[:, None] for side in (before, after)
    ]
    one, two = np.hstack([one, kernel[0]]), np.hstack([two, kernel[1]])
    whole = one.sum(axis=1)
    if whole.mean() <= 0:
        return None
    parts = _differences(one, two, whole, level)
    (total,) = _differences(whole[:, None], two.sum(axis=1)[:, None], whole, level)
    return CostDifferences(total, parts[-1], dict(zip(keys, parts, strict=False)))


def _by_function(side: Sequence[SampledExecution[Key]], keys: Sequence[Key]) -> Floats | None:
    """User time by execution and key; one that has no samples is taken to be as all together."""
    counts = np.asarray(
        [[execution.samples.get(key, 0) for key in keys] for execution in side], dtype=float
    )
    counts = counts.reshape(len(side), len(keys))
    if not counts.sum():
        return None
    taken = counts.sum(axis=1, keepdims=True)
    shares = np.where(taken > 0, counts / np.maximum(taken, 1), counts.sum(axis=0) / counts.sum())
    return np.asarray(shares * np.asarray([[execution.user_ns] for execution in side]))


def _differences(one: Floats, two: Floats, whole: Floats, level: float) -> list[CostDifference]:
    """For each column; `whole` is the cost of each execution that shares are of."""
    count, scale = len(one), whole.mean()
    share = (two - one).mean(axis=0) / scale
    residuals = (two - one - share * whole[:, None]) / scale
    error = residuals.std(axis=0, ddof=1) / math.sqrt(count)
    half = two_sided_critical(level, count - 1) * error
    rows = zip(one.mean(axis=0), two.mean(axis=0), share, half, strict=True)
    return [CostDifference(*map(float, (b, a, s, s - h, s + h))) for b, a, s, h in rows]
