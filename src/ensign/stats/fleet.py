"""What is true of many hosts: a mean for each kind of host, and one for the fleet. Pure.

Kinds are strata with given weights; hosts of a kind are a random sample of it. A host's mean log
ratio is y_i = mu + u_i + e_i, where e_i has a known error s_i and u_i is how that host differs.

- Variance between hosts: Paule and Mandel (J. Res. NBS 87, 1982).
- Mean of a kind and its interval: Hartung and Knapp (Statistics in Medicine 20, 2001), with k - 1
  degrees of freedom, never narrower than hosts' own errors allow (Roever, Knapp and Friede, BMC
  Medical Research Methodology 15, 2015).
- The next host of a kind: the prediction interval of a normal sample (Hahn and Meeker, Statistical
  Intervals, 1991) of the means as they were measured. With few hosts, those that are made of an
  estimated variance between hosts hold too seldom (Partlett and Riley, Statistics in Medicine 36,
  2017).
- Fleet: the weighted mean of kinds, with the degrees of freedom of Satterthwaite (Biometrics
  Bulletin 2, 1946).

Coverage is simulated in tests/stats/test_fleet.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ensign.stats.pair import LogInterval
from ensign.stats.student import f_tail, two_sided_critical, two_sided_criticals

Floats = NDArray[np.float64]

FEWEST_HOSTS = 2
FEWEST_TO_PREDICT = 5
_LEAST_ERROR = 1e-9
_NOISY_P = 0.01
_NOISY_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean log ratio with its standard error, and the degrees of freedom of that.

    Of several hosts `between` is the standard deviation of their true values.
    """

    mean: float
    error: float
    degrees: float
    between: float = 0.0

    def interval(self, level: float) -> LogInterval:
        """The confidence interval of the mean."""
        half = float(two_sided_criticals(level, self.degrees)) * self.error
        return LogInterval(self.mean, self.mean - half, self.mean + half)


def host_mean(log_ratios: Floats) -> Estimate | None:
    """Of the log ratios of a host's rounds; None where there are fewer than two."""
    rounds = len(log_ratios)
    if rounds < 2:  # noqa: PLR2004 - one value has no spread
        return None
    error = float(log_ratios.std(ddof=1)) / math.sqrt(rounds)
    return Estimate(float(log_ratios.mean()), error, rounds - 1)


def kind_mean(hosts: Sequence[Estimate]) -> Estimate | None:
    """The mean of a kind, of which these are a sample; None of fewer than two hosts."""
    if len(hosts) < FEWEST_HOSTS:
        return None
    y = np.array([host.mean for host in hosts])
    variances = np.array([max(host.error, _LEAST_ERROR) ** 2 for host in hosts])
    between = _paule_mandel(y, variances)
    mean, spread = _weighted(y, variances + between)
    degrees = len(hosts) - 1
    scale = max(1.0, spread / degrees)
    error = math.sqrt(scale / float((1 / (variances + between)).sum()))
    return Estimate(mean, error, degrees, math.sqrt(between))


def next_host(hosts: Sequence[Estimate], level: float) -> LogInterval | None:
    """Where the value of one more host of their kind lies; None from fewer than five hosts."""
    k = len(hosts)
    if k < FEWEST_TO_PREDICT:
        return None
    y = np.array([host.mean for host in hosts])
    mean = float(y.mean())
    half = two_sided_critical(level, k - 1) * float(y.std(ddof=1)) * math.sqrt(1 + 1 / k)
    return LogInterval(mean, mean - half, mean + half)


def fleet_mean(kinds: Sequence[tuple[float, Estimate]]) -> Estimate:
    """The mean of a fleet of kinds with these weights, which sum to 1."""
    parts = [(weight * kind.error) ** 2 for weight, kind in kinds]
    variance = sum(parts)
    below = sum(
        part**2 / kind.degrees for part, (_, kind) in zip(parts, kinds, strict=True) if part
    )
    mean = sum(weight * kind.mean for weight, kind in kinds)
    return Estimate(mean, math.sqrt(variance), variance**2 / below if below else math.inf)


def noisy_hosts(spreads: Sequence[tuple[float, int]]) -> tuple[int, ...]:
    """Which hosts are noisier than all others: standard deviations and their degrees of freedom.

    An F test of each against the others' pooled variance, at 1 % by Bonferroni, and at least twice
    their standard deviation.
    """
    noisy = []
    for index, (spread, degrees) in enumerate(spreads):
        others = [pair for other, pair in enumerate(spreads) if other != index]
        below = sum(count for _, count in others)
        pooled = sum(sd**2 * count for sd, count in others) / below if below else 0.0
        if not pooled or not degrees:
            continue
        ratio = spread**2 / pooled
        small = f_tail(ratio, degrees, below) * len(spreads) < _NOISY_P
        if small and ratio >= _NOISY_RATIO**2:
            noisy.append(index)
    return tuple(noisy)


def _weighted(y: Floats, variances: Floats) -> tuple[float, float]:
    """The mean with weights of 1 over the variances, and the weighted sum of squares about it."""
    weights = 1 / variances
    mean = float((weights * y).sum() / weights.sum())
    return mean, float((weights * (y - mean) ** 2).sum())


def _paule_mandel(y: Floats, variances: Floats) -> float:
    """The variance between hosts at which the weighted sum of squares is what it should be."""
    from scipy.optimize import brentq  # noqa: PLC0415

    def excess(between: float) -> float:
        return _weighted(y, variances + between)[1] - (len(y) - 1)

    if excess(0.0) <= 0:
        return 0.0
    # There each weight is at most 1 over the sum of squares, which leaves no excess.
    most = float(((y - y.mean()) ** 2).sum())
    return float(brentq(excess, 0.0, most))
