"""Relinks as the units of a sample: what n counts, and where the spread comes from. Pure.

A relink is the highest level that is randomised. Executions of one relink share its layout, so
they are averaged first, and n counts relinks (Kalibera and Jones, ISMM 2013: repetition counts at
the highest level of variation).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ensign.model.errors import InputError
from ensign.stats.student import f_tail, two_sided_critical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensign.stats.rounds import RoundCosts

from ensign.model.results import WorstLayout
from ensign.model.trials import TWIN
from ensign.stats.rounds import RoundCosts
from ensign.stats.student import chi_squared_tail, one_sided_critical
from ensign.stats.suite import round_geomeans

# Half-widths over those of another relink in every round; 12 relinks come to it by themselves
# where layouts do not matter: t(11) / t(∞) is 1.12.
_WIDER = 1.125
_FEWEST_COUNTED = 2


def relinks_worth(layout_part: float, rounds: int, level: float) -> int:
    """The fewest relinks whose half-width is at most an eighth above the least possible."""
    if rounds <= _FEWEST_COUNTED:
        return _FEWEST_COUNTED

    def half_width(relinks: int) -> float:
        variance = layout_part / relinks + (1 - layout_part) / rounds
        return two_sided_critical(level, relinks - 1) * math.sqrt(variance)

    most = _WIDER * half_width(rounds)
    return next(k for k in range(_FEWEST_COUNTED, rounds + 1) if half_width(k) <= most)


_PROBABILITY = 0.95
_FEWEST_WORST = 3  # with two a bound says hardly more than that there are two


def worst_layouts(costs: RoundCosts) -> tuple[WorstLayout, ...]:
    """A bound for each variant, the baseline first; `costs` have a column for each relink.

    None without a twin with relinks of its own, or with fewer than three.
    """
    baseline, relinks = costs.variants[0], len(costs.rounds)
    if TWIN not in costs.variants or not costs.twin_apart or relinks < _FEWEST_WORST:
        return ()
    copies = round_geomeans(costs.log_ratios(TWIN, baseline))
    own = float(copies.var(ddof=1)) / 2
    quantile = one_sided_critical(_PROBABILITY, relinks - 1)
    worst = [WorstLayout(baseline, math.exp(quantile * math.sqrt(own * (1 + 1 / (2 * relinks)))))]
    for variant in costs.compared:
        if variant == TWIN:
            continue
        d = round_geomeans(costs.log_ratios(variant, baseline))
        both = float(d.var(ddof=1))
        reach = quantile * math.sqrt(max(0.0, both - own / 2) + both / relinks)
        worst.append(WorstLayout(variant, math.exp(float(np.mean(d)) + reach)))
    return tuple(worst)


Floats = NDArray[np.float64]

_FEWEST = 2


@dataclass(frozen=True, slots=True)
class Split:
    """Spread of log ratios in its parts: standard deviations between layouts, and of executions.

    `layout_high` is an upper bound of the first, at the level asked for, one-sided.
    """

    relinks: int
    executions: int
    layout_sd: float
    layout_high: float
    execution_sd: float


@dataclass(frozen=True, slots=True)
class RelinkSpread:
    """Log ratios of relinks over the natural link: the least, the greatest, and the mean.

    `low` to `high` holds the true ratio of one more relink with the probability asked for.
    """

    relinks: int
    least: float
    greatest: float
    mean: float
    low: float
    high: float


def by_relink(costs: RoundCosts, relinks: int, *, twin_apart: bool = True) -> RoundCosts:
    """One column for each relink: the mean over the rounds that used it (round modulo relinks).

    Intervals over these columns count relinks, not executions. The twin counts with the baseline
    where its relinks are others (`twin_apart`).
    """
    used = [round_index % relinks for round_index in costs.rounds]
    present = tuple(sorted(set(used)))
    columns = [costs.y[..., [u == relink for u in used]].mean(axis=-1) for relink in present]
    y = np.stack(columns, axis=-1) if columns else costs.y
    return replace(costs, rounds=present, y=y, twin_apart=twin_apart)


def relink_groups(values: Floats, rounds: Sequence[int], relinks: int) -> list[list[float]]:
    """Values of rounds by the relink that each used (round modulo relinks)."""
    used = np.asarray(rounds, dtype=int) % relinks
    return [values[used == relink].tolist() for relink in np.unique(used)]


def nested_split(groups: Sequence[Sequence[float]], level: float = 0.95) -> Split | None:
    """One-way random effects: each group holds the executions of one relink.

    layout variance = (MSB - MSW) / n0 with n0 = (N - Σ nᵢ²/N)/(k - 1), never below 0 (analysis of
    variance; Searle, Casella and McCulloch, Variance Components, 3.6). The bound is Williams':
    (MSB - F·MSW)/ (n0·χ²) turned to an upper end. None without a relink executed twice.
    """
    squares = _nested_squares(groups)
    if squares is None:
        return None
    sizes = [len(group) for group in groups]
    total, k = sum(sizes), len(groups)
    n0 = (total - sum(size**2 for size in sizes) / total) / (k - 1)
    return _split(squares, n0, (k, total), level)


def no_layouts_p(groups: Sequence[Sequence[float]]) -> float:
    """P of so large an F, were there nothing between relinks; 1 without one executed twice."""
    squares = _nested_squares(groups)
    if squares is None:
        return 1.0
    if squares.within <= 0:
        return float(squares.between == 0)
    f = squares.between / squares.within
    return f_tail(f, squares.between_degrees, squares.within_degrees)


def blocked_split(d: Floats, level: float = 0.95) -> Split | None:
    """As `nested_split` for d[relink, execution] where each execution has every relink.

    What an execution does to all of them is taken out: a two-way layout without interaction.
    None without two relinks in two executions.
    """
    k, n = d.shape
    if k < _FEWEST or n < _FEWEST:
        return None
    rows, columns, grand = d.mean(axis=1), d.mean(axis=0), float(d.mean())
    between = n * float(((rows - grand) ** 2).sum()) / (k - 1)
    rest = d - rows[:, None] - columns[None, :] + grand
    within = float((rest**2).sum()) / ((k - 1) * (n - 1))
    squares = _Squares(between, within, k - 1, (k - 1) * (n - 1))
    return _split(squares, float(n), (k, k * n), level)


def relink_spread(d: Floats, level: float = 0.95) -> RelinkSpread:
    """The spread of d[relink, execution], the log ratios of relinks over the natural link.

    low, high = mean ± t(k - 1)·s·√(1 + 1/k) with s over the relinks' means: the interval of one
    more draw from a normal law. It is for the true ratio: the noise that the draw would have had
    stands for that of the natural link, which all ratios share and s does not see (and which is
    half as large where they are ratios to the mean of two). InputError without two relinks.
    """
    means = d.mean(axis=1)
    k = len(means)
    if k < _FEWEST:
        raise InputError("a spread needs two relinks or more")
    reach = two_sided_critical(level, k - 1) * float(means.std(ddof=1)) * math.sqrt(1 + 1 / k)
    mean = float(means.mean())
    return RelinkSpread(k, float(means.min()), float(means.max()), mean, mean - reach, mean + reach)


@dataclass(frozen=True, slots=True)
class _Squares:
    between: float
    within: float
    between_degrees: int
    within_degrees: int


def _nested_squares(groups: Sequence[Sequence[float]]) -> _Squares | None:
    """Mean squares between and within groups; None without two, or one of several values."""
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    total, k = float(sizes.sum()), len(groups)
    if k < _FEWEST or total <= k:
        return None
    means = np.array([float(np.mean(group)) for group in groups])
    grand = float((sizes * means).sum() / total)
    between = float((sizes * (means - grand) ** 2).sum()) / (k - 1)
    inside = sum(
        float(((np.asarray(g) - m) ** 2).sum()) for g, m in zip(groups, means, strict=True)
    )
    return _Squares(between, inside / (total - k), k - 1, int(total) - k)


def _split(squares: _Squares, n0: float, counts: tuple[int, int], level: float) -> Split:
    """Upper bound: the layout variance that leaves so small an MSB with probability 1 - level.

    MSB ~ (n0·σ²_layout + σ²_execution)·χ²/(k - 1), with the estimate of σ²_execution put in.
    """
    from scipy.special import chdtri  # noqa: PLC0415 - a quarter of a second, at first use

    variance = max(0.0, (squares.between - squares.within) / n0)
    quantile = float(chdtri(squares.between_degrees, level))
    most = squares.between * squares.between_degrees / quantile
    high = max(variance, (most - squares.within) / n0)
    return Split(
        relinks=counts[0],
        executions=counts[1],
        layout_sd=math.sqrt(variance),
        layout_high=math.sqrt(high),
        execution_sd=math.sqrt(squares.within),
    )


_FEWEST_DIFFERENT = 3
_FEWEST_AGAIN = 3  # so many second executions tell their noise, roughly


@dataclass(frozen=True, slots=True)
class RelinksDiffer:
    """The standard deviation of a variant's log costs between relinks, above the margin.

    It is of layouts alone where they are `told_apart` from executions.
    """

    variant: str
    sd: float
    told_apart: bool


def relinks_differ(
    costs: RoundCosts, relinks: int, margin: float, level: float
) -> tuple[RelinksDiffer, ...]:
    """The variants whose relinks do, the baseline among them, the greatest first.

    `costs` are of rounds, which used their relinks in turn. The level is that of all together.
    Nothing is said of races without a twin.
    """
    if TWIN not in costs.variants:
        return ()
    baseline, *others = (each for each in costs.variants if each != TWIN)
    copies = _Spread.of(costs, relinks, TWIN)
    if copies.degrees + 1 < _FEWEST_DIFFERENT:
        return ()
    limit, error = math.log1p(margin) ** 2, (1 - level) / (1 + len(others))
    p = chi_squared_tail(copies.degrees * copies.variance / (2 * limit), copies.degrees)
    variances = [(baseline, copies.of_layouts / 2, max(p, copies.p))]
    for variant in others:
        both = _Spread.of(costs, relinks, variant)
        least = limit + copies.variance / 4
        p = f_tail(both.variance / least, both.degrees, both.degrees)
        variances.append((variant, both.of_layouts - copies.of_layouts / 4, max(p, both.p)))
    shown = sorted((v for v in variances if v[1] > limit and v[2] < error), key=lambda v: -v[1])
    return tuple(RelinksDiffer(name, math.sqrt(v), copies.told_apart) for name, v, _ in shown)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Variance of the means of relinks, of a variant's log ratios to the baseline.

    `of_layouts` is what is left of it without executions, and `p` the chance of so much between
    relinks were there none; the whole, and 0, where that cannot be told.
    """

    variance: float
    degrees: int
    of_layouts: float
    p: float
    told_apart: bool

    @classmethod
    def of(cls, costs: RoundCosts, relinks: int, variant: str) -> _Spread:
        g = round_geomeans(costs.log_ratios(variant, costs.variants[0]))
        groups = relink_groups(g, costs.rounds, relinks)
        degrees = len(groups) - 1
        variance = float(np.var([np.mean(group) for group in groups], ddof=1)) if degrees else 0.0
        if len(g) - len(groups) < _FEWEST_AGAIN or degrees < 1:
            return cls(variance, degrees, variance, 0.0, told_apart=False)
        split = nested_split(groups)
        of_layouts = 0.0 if split is None else split.layout_sd**2
        return cls(variance, degrees, of_layouts, no_layouts_p(groups), told_apart=True)
