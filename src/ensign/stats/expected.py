"""How precise a study is going to be, from a few trials of baseline and twin before its sweeps.

The twin's log ratios d[w, i] of workload w have mean 0, so their mean square estimates the variance
of one execution without losing a degree of freedom. With three of them that is rough; half of it is
taken from the mean over all workloads:

    s²[w] = ½ · mean over i of d[w, i]²  +  ½ · mean over w and i of d²
    half-width of a workload      t(n - 1) · √¾ · s[w] / √n
    half-width of the suite       t(n - 1) · √¾ · √(sum over w of s²[w]) / W / √n

for n sweeps and W workloads; ¾ because a variant's ratio is to the mean of baseline and twin (1½
variances of an arm), the twin's to the baseline (2). It knows nothing of relinks that take turns,
nor of sweeps that are disturbed as a whole.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from ensign.model.precision import Precision
from ensign.stats.pair import PairRule, Rule, critical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FEWEST_SWEEPS = 5
# A half-width is itself a random number: with 8 sweeps one in five is a quarter above the expected.
_HEADROOM = 0.8
_OWN = 0.5
_TO_THE_MEAN_OF_TWO = 0.75


def expected_precision(twin: Mapping[str, Sequence[float]], sweeps: int, level: float) -> Precision:
    """Half-widths to expect of so many sweeps (two or more). `twin`: log ratios per workload."""
    variances = _variances(twin)
    critical_value = critical(sweeps, PairRule(level=level, rule=Rule.T))
    factor = critical_value * math.sqrt(_TO_THE_MEAN_OF_TWO / sweeps)
    return Precision(
        suite=factor * math.sqrt(sum(variances)) / len(variances),
        workload=factor * math.sqrt(median(variances)),
    )


def sweeps_for(
    twin: Mapping[str, Sequence[float]], precision: float, most: int, level: float
) -> int:
    """The fewest sweeps of which the suite's `precision` (a half-width) can be expected.

    At least 5, at most `most`, with room for half-widths coming out wider than expected.
    """
    for sweeps in range(FEWEST_SWEEPS, most):
        if expected_precision(twin, sweeps, level).suite <= precision * _HEADROOM:
            return sweeps
    return most


def _variances(twin: Mapping[str, Sequence[float]]) -> list[float]:
    own = [sum(d * d for d in each) / len(each) for each in twin.values()]
    pooled = sum(own) / len(own)
    return [_OWN * each + (1 - _OWN) * pooled for each in own]
