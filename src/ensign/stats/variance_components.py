"""Each variant's own variance between layouts, and where a fresh link of it will lie. Pure.

y[a, round] = μ_a + λ[a, relink] + c[round] + ε[a, round]: what a round does to all of its variants
(c) hides how far one variant's relinks lie apart, so variances come from differences within a
round. Baseline b and A/A twin t are independent draws from one law, so its variance is half that of
b - t. A variant's is Var(a - (b + t)/2) - Var(b - t)/4 = Cov(a - b, a - t) (Grubbs, JASA 43, 1948).
Arrays may have leading axes: one data set each. docs/background/statistics/layouts.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ensign.stats.student import chi_squared_quantile

Floats = NDArray[np.float64]

_FEWEST = 2
_LEAST_SHARE = 0.05  # of a variance that is taken to be a variant's own
_DRAWS, _HALVINGS, _NO_SPREAD = 1000, 26, 1e-300
PREDICTED = 0.9


@dataclass(frozen=True, slots=True)
class OwnSpread:
    """Standard deviations of log costs between a variant's relinks, [..., variant].

    `low` to `high` holds the true one at the level asked for. Without `executions` each relink ran
    once: the noise of executions is in `sd` and `high`, and nothing is known of the least.
    `deviations` [..., variant, relink] are relinks' mean log costs, without what their rounds did
    to all, as far as the other variants show that.
    """

    sd: Floats
    low: Floats
    high: Floats
    executions: Floats | None
    deviations: Floats


@dataclass(frozen=True, slots=True)
class FreshLink:
    """Range of the true log ratio of one fresh link over one of the baseline, with 90 %."""

    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class _Variances:
    """Estimates of variances with their intervals, [..., variant]."""

    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class _Levels:
    """Rounds by relink: means [..., variant, relink], and what is left [..., variant, round].

    `per_relink` is the mean of 1/executions of a relink.
    """

    means: Floats
    rest: Floats
    per_relink: float

    @property
    def relinks(self) -> int:
        return int(self.means.shape[-1])

    @property
    def repeats(self) -> int:
        """Degrees of freedom within relinks."""
        return int(self.rest.shape[-1]) - self.relinks


def own_spread(y: Floats, rounds: tuple[int, ...], relinks: int, level: float) -> OwnSpread | None:
    """Own spreads in y[..., variant, round], whose first two are baseline and twin, relinked.

    Round l used relink l modulo `relinks`. None where fewer than two were used.
    """
    parts = _levels(y, rounds, relinks)
    if parts.relinks < _FEWEST:
        return None
    centered = parts.means - parts.means.mean(axis=-1, keepdims=True)
    degrees = parts.relinks - 1
    weights = _weights(_covariance(centered, degrees))
    between = _variances(_covariance(centered, degrees), weights, degrees, level)
    # Relinks deviate from the mean of the baseline's, and both copies are the baseline.
    level_of = parts.means.mean(axis=-1, keepdims=True)
    level_of = level_of - level_of[..., :2, :].mean(axis=-2, keepdims=True)
    deviations = centered - weights @ centered + level_of
    if parts.repeats < 1:
        sd, high = np.sqrt(between.value), np.sqrt(between.high)
        return OwnSpread(sd, np.zeros_like(sd), high, None, deviations)
    rest = _covariance(parts.rest, parts.repeats)
    within = _variances(rest, _weights(rest), parts.repeats, level)
    variances = _less(between, within, parts.per_relink)
    return OwnSpread(
        np.sqrt(variances.value),
        np.sqrt(variances.low),
        np.sqrt(variances.high),
        np.sqrt(within.value),
        deviations,
    )


def fresh_link(
    d: Floats, twin: Floats | None, rounds: tuple[int, ...], relinks: int
) -> FreshLink | None:
    """Fresh link by d[..., round], a variant's log ratios, and the twin's over the baseline.

    d is to the mean of the two copies; without a twin (None) to the baseline alone. The generalized
    (fiducial) interval: the variance between pairs of fresh links and that of the mean are drawn
    from what their mean squares leave possible (Weerahandi, JASA 88, 1993). Where each relink ran
    once the noise of executions is in it. None with fewer than two relinks.
    """
    of_variant = _levels(d[..., None, :], rounds, relinks)
    k = of_variant.relinks
    if k < _FEWEST:
        return None
    copies = [] if twin is None else [(_levels(twin[..., None, :], rounds, relinks), 0.25)]
    draw = np.random.default_rng(0)
    fresh = of_mean = np.zeros(1)
    for parts, share in ((of_variant, 1.0), *copies):
        between = parts.means.var(axis=-1, ddof=1) * share
        drawn = between * (k - 1) / draw.chisquare(k - 1, _DRAWS)
        if parts is of_variant:
            of_mean = drawn / k
        fresh = fresh + drawn
        if parts.repeats:
            rest = (parts.rest**2).sum(axis=-1) * share * k / len(rounds)
            fresh = fresh - rest / draw.chisquare(parts.repeats, _DRAWS)
    mean = of_variant.means.mean(axis=(-1, -2))
    reach = _normal_mixture_reach(np.sqrt(np.maximum(fresh, 0.0) + of_mean))
    return FreshLink(mean - reach, mean + reach)


def _normal_mixture_reach(sd: Floats) -> Floats:
    """R that a normal variable of a standard deviation among sd[..., draw] exceeds by 5 %."""
    from scipy.special import ndtr, ndtri  # noqa: PLC0415 - a quarter of a second, at first use

    aim = (1 + PREDICTED) / 2
    low, high = (ndtri(aim) * end for end in (sd.min(axis=-1), sd.max(axis=-1)))
    scale = np.maximum(sd, _NO_SPREAD)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = ndtr(middle[..., None] / scale).mean(axis=-1) < aim
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.asarray(high)


def _levels(y: Floats, rounds: tuple[int, ...], relinks: int) -> _Levels:
    used = np.array(rounds, dtype=np.int64) % relinks
    present, index, counts = np.unique(used, return_inverse=True, return_counts=True)
    columns = [y[..., used == relink].mean(axis=-1) for relink in present]
    means = np.stack(columns, axis=-1) if columns else y[..., :0]
    rest = y - means[..., index] if columns else y
    return _Levels(means, rest, float((1 / counts).mean()) if columns else 1.0)


def _covariance(centered: Floats, degrees: int) -> Floats:
    return np.asarray(centered @ np.swapaxes(centered, -1, -2) / degrees)


def _weights(covariance: Floats) -> Floats:
    """w[..., variant, other]: what a round did to all is about Σ w·other; each variant's own is 0.

    By moments: what others have in common is their mean covariance, the rest is their own. The
    weights do not depend on the variant itself.
    """
    n = covariance.shape[-1]
    weights = np.zeros_like(covariance)
    for a in range(n):
        others = [b for b in range(n) if b != a]
        c = covariance[..., others, :][..., others]
        variances = np.diagonal(c, axis1=-2, axis2=-1)
        pairs = len(others) * (len(others) - 1)
        common = np.maximum((c.sum(axis=(-1, -2)) - variances.sum(axis=-1)) / max(pairs, 1), 0.0)
        own = variances - common[..., None]
        if a > 1:
            # The two copies of the baseline have one variance.
            own = np.concatenate(
                [np.repeat(own[..., :2].mean(axis=-1, keepdims=True), 2, axis=-1), own[..., 2:]],
                axis=-1,
            )
        own = np.maximum(own, _LEAST_SHARE * variances)
        own = np.where(own > 0, own, 1.0)
        share = common[..., None] / own
        weights[..., a, others] = share / (1 + share.sum(axis=-1, keepdims=True))
    return weights


def _variances(covariance: Floats, weights: Floats, degrees: int, level: float) -> _Variances:
    """Each variant's own variance.

    The upper bound is that of its difference to what others say of the round: given these, that is
    a non-central χ² of the variant's own variance, so the bound holds whatever the others do.
    The lower one is of the difference of two mean squares (modified large sample, Ting et al. 1990,
    without its cross term).
    """
    least = degrees / chi_squared_quantile(1 - (1 - level) / 2, degrees)
    most = degrees / chi_squared_quantile((1 - level) / 2, degrees)
    c = covariance
    diagonal = np.diagonal(c, axis1=-2, axis2=-1)
    both = c[..., 0, 0] + c[..., 1, 1]
    twins = np.maximum(both - 2 * c[..., 0, 1], 0.0)[..., None]
    mean = (both + 2 * c[..., 0, 1])[..., None] / 4
    to_both = diagonal - c[..., :, 0] - c[..., :, 1] + mean
    shift = np.sqrt(((1 - least) * to_both) ** 2 + ((most - 1) * twins / 4) ** 2)
    grubbs = to_both - twins / 4
    low = np.maximum(grubbs - shift, 0.0)
    product = weights @ c
    to_others = diagonal - 2 * np.diagonal(product, axis1=-2, axis2=-1)
    to_others = to_others + (product * weights).sum(axis=-1)
    high = most * to_others
    value = np.maximum(np.minimum(np.maximum(grubbs, low), to_others), 0.0)
    low = np.minimum(low, value)
    for copy in range(2):
        value[..., copy], low[..., copy], high[..., copy] = (
            factor * twins[..., 0] / 2 for factor in (1.0, least, most)
        )
    return _Variances(value, low, high)


def _less(between: _Variances, within: _Variances, share: float) -> _Variances:
    """Variance without the share of executions (Zou and Donner, Stat. Med. 27, 2008)."""
    value = between.value - share * within.value
    below = (between.value - between.low) ** 2 + share**2 * (within.high - within.value) ** 2
    above = (between.high - between.value) ** 2 + share**2 * (within.value - within.low) ** 2
    low, high = value - np.sqrt(below), value + np.sqrt(above)
    return _Variances(*(np.maximum(values, 0.0) for values in (value, low, high)))
