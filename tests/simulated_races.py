"""Races with a known truth, many at once: what the statistics are tested and calibrated with.

Every row of an array is one race, every column one execution. The rules are those of `pair` and
`stopping`; here they are applied to all rows together. Randomness comes in as a generator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ensign.stats.looks import looks, looks_up_to
from ensign.stats.pair import PairRule, mean_and_half_width
from ensign.stats.stopping import (
    LARGEST_P,
    SIGNED_RANK_LEVEL,
    SIGNED_RANK_LOOKS,
    null_distribution,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Noise = Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float64]]

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]

_SHIFTED_SHARE, _SHIFT = 0.05, 5.0
_LOGNORMAL_SIGMA = 0.5


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw standard normal noise."""
    return rng.standard_normal(shape)


def student_3(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw noise with heavy tails: t with 3 degrees of freedom, scaled to standard deviation 1."""
    return np.asarray(rng.standard_t(3, shape) / math.sqrt(3))


def shifted(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw normal noise in which 5 % of executions are 5 standard deviations slower; mean 0."""
    hit = rng.random(shape) < _SHIFTED_SHARE
    return rng.standard_normal(shape) + _SHIFT * (hit - _SHIFTED_SHARE)


def exponential(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw exponential noise, centered on its mean: skewness 2."""
    return rng.exponential(1.0, shape) - 1.0


def lognormal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Draw lognormal noise (sigma 0.5), centered on its mean, sd 1: skewness 1.75."""
    mean = math.exp(_LOGNORMAL_SIGMA**2 / 2)
    sd = mean * math.sqrt(math.expm1(_LOGNORMAL_SIGMA**2))
    return np.asarray((rng.lognormal(0.0, _LOGNORMAL_SIGMA, shape) - mean) / sd)


def drifting(rng: np.random.Generator, shape: tuple[int, ...], correlation: float = 0.5) -> Floats:
    """Draw noise in which executions resemble the one before: autoregression of order 1, sd 1."""
    fresh = rng.standard_normal(shape) * math.sqrt(1 - correlation**2)
    noise = np.empty(shape)
    noise[..., 0] = rng.standard_normal(shape[:-1])
    for i in range(1, shape[-1]):
        noise[..., i] = correlation * noise[..., i - 1] + fresh[..., i]
    return noise


def of_two_variants(noise: Noise) -> Noise:
    """Make the noise of d where both have this one, independently: symmetric for any law."""

    def difference(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        return noise(rng, shape) - noise(rng, shape)

    return difference


INDEPENDENT_NOISE: Mapping[str, Noise] = MappingProxyType(
    {
        "normal": normal,
        "t, 3 degrees of freedom": student_3,
        "5 % of executions shifted": shifted,
        "exponential": exponential,
        "lognormal": lognormal,
    }
)


def exclusions(d: Floats, truth: float, rule: PairRule, at: Sequence[int]) -> Booleans:
    """Whether the interval after each of the numbers of executions `at` misses the truth."""
    missed = np.empty((d.shape[0], len(at)), dtype=np.bool_)
    for column, n in enumerate(at):
        mean, half = mean_and_half_width(d[:, :n], rule)
        missed[:, column] = np.abs(mean - truth) > half
    return missed


def signed_rank_rejections(d: Floats, at: Sequence[int] = SIGNED_RANK_LOOKS) -> Booleans:
    """Whether the signed-rank test rejects after each of the numbers of executions `at`.

    For values without ties; never for fewer executions than the test's first look.
    """
    rejected = np.zeros((d.shape[0], len(at)), dtype=np.bool_)
    for column, n in enumerate(at):
        if n < SIGNED_RANK_LOOKS[0]:
            continue
        part = d[:, :n]
        order = np.argsort(np.abs(part), axis=1)
        positive = np.take_along_axis(part > 0, order, axis=1)
        statistic = positive @ np.arange(1, n + 1)
        upper = np.maximum(statistic, n * (n + 1) // 2 - statistic)
        tail = np.cumsum(null_distribution(range(1, n + 1))[::-1])[::-1]
        rejected[:, column] = 2 * tail[upper] <= LARGEST_P
    return rejected


@dataclass(frozen=True, slots=True)
class SimulatedStops:
    """How each race ended: after how many executions, and its interval there.

    `early` is False where the budget ended it.
    """

    executions: Integers
    mean: Floats
    half_width: Floats
    early: Booleans

    def covers(self, truth: float) -> float:
        """Share of the races whose interval contains the truth."""
        return float(np.mean(np.abs(self.mean - truth) <= self.half_width))


def run_races(d: Floats, rule: PairRule) -> SimulatedStops:
    """Stop each race as `stopping.may_stop` does; the last column is the end of the budget."""
    races, budget = d.shape
    at = looks_up_to(budget, rule.first_look)
    stopped = SimulatedStops(
        executions=np.full(races, budget),
        mean=np.empty(races),
        half_width=np.empty(races),
        early=np.zeros(races, dtype=np.bool_),
    )
    stopped.mean[:], stopped.half_width[:] = mean_and_half_width(d, rule)
    by_ranks = signed_rank_rejections(d, at)
    has_companion = math.isclose(rule.level, SIGNED_RANK_LEVEL)
    companion_from = SIGNED_RANK_LOOKS[0] if has_companion else math.inf
    for column, n in enumerate(at):
        mean, half = mean_and_half_width(d[:, :n], rule)
        agree = (by_ranks[:, column] == (np.abs(mean) > half)) | (n < companion_from)
        now = _settled(mean, half, rule) & agree & ~stopped.early
        stopped.executions[now] = n
        stopped.mean[now] = mean[now]
        stopped.half_width[now] = half[now]
        stopped.early[now] = True
    return stopped


def _settled(mean: Floats, half: Floats, rule: PairRule) -> Booleans:
    if rule.precision is not None:
        return np.asarray((np.exp(mean + half) - np.exp(mean - half)) / 2 <= rule.precision)
    if rule.margin is None:
        return np.zeros(mean.shape, dtype=np.bool_)
    m = math.log1p(rule.margin)
    return np.asarray((np.abs(mean) + half <= m) | (np.abs(mean) - half > m))


def largest_log_bounds(
    rng: np.random.Generator, races: int, horizon: int, first: int = 5
) -> Mapping[int, Floats]:
    """For each look, the largest ln b that any look so far of normal A/A races would exclude 0 at.

    c_n solved for b: A = kappa(t² + n - 1) / ((n - 1)kappa + t²), b² = A^n / kappa. Only sums and
    sums of squares are drawn, so a horizon of a million executions costs 36 draws.
    """
    total, squares = np.zeros(races), np.zeros(races)
    largest = np.full(races, -math.inf)
    by_look: dict[int, Floats] = {}
    before = 0
    for n in looks(first):
        if n > horizon:
            return by_look
        added = n - before
        block = rng.standard_normal(races) * math.sqrt(added)
        within = rng.chisquare(added - 1, races) if added > 1 else 0.0
        total += block
        squares += block * block / added + within
        before = n
        t2 = total * total / n * (n - 1) / (squares - total * total / n)
        kappa = 1.0 + n
        a = kappa * (t2 + n - 1) / ((n - 1) * kappa + t2)
        largest = np.maximum(largest, (n * np.log(a) - math.log(kappa)) / 2)
        by_look[n] = largest
    return by_look
