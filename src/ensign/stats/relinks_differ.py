"""Whether relinks of a variant differ by more than matters, by few rounds. Pure.

As in `worst_layout`, the copies of the baseline tell its own variance v₀, and a variant's d, which
has v + v₀/2, what is left: v. That v exceeds the margin m² is tested by

    the baseline:  (k - 1)·Var(baseline - twin)/2m² ~ χ²(k - 1)
    a variant:     Var(d)/(m² + Var(baseline - twin)/4) ~ F(k - 1, k - 1)

over the means of k relinks; the two variances are independent. The noise of executions is in them.
Where relinks ran again it is told apart: then rounds must differ between relinks by the F test of
the analysis of variance as well, and the estimates are of layouts alone (`nested_split`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ensign.model.trials import TWIN
from ensign.stats.layouts import nested_split, no_layouts_p, relink_groups
from ensign.stats.rounds import RoundCosts
from ensign.stats.student import chi_squared_tail, f_tail
from ensign.stats.suite import round_geomeans

_FEWEST = 3
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
    if copies.degrees + 1 < _FEWEST:
        return ()
    limit, error = math.log1p(margin) ** 2, (1 - level) / (1 + len(others))
    p = chi_squared_tail(copies.degrees * copies.variance / (2 * limit), copies.degrees)
    found = [(baseline, copies.of_layouts / 2, max(p, copies.p))]
    for variant in others:
        both = _Spread.of(costs, relinks, variant)
        least = limit + copies.variance / 4
        p = f_tail(both.variance / least, both.degrees, both.degrees)
        found.append((variant, both.of_layouts - copies.of_layouts / 4, max(p, both.p)))
    shown = sorted((v for v in found if v[1] > limit and v[2] < error), key=lambda v: -v[1])
    return tuple(RelinksDiffer(name, math.sqrt(v), copies.told_apart) for name, v, _ in shown)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Of a variant's log ratios to the baseline: the variance of the means of relinks.

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
