"""Whether relinks differ by more than matters, by few rounds. Pure.

Where relinks ran again, by the analysis of variance of rounds within relinks: shown by its F test,
and large by its estimate (`layouts.nested_split`). Where each ran once, layouts and executions
cannot be told apart: then by the variance of all rounds, which must be shown to exceed the margin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensign.model.trials import TWIN
from ensign.stats.layouts import nested_split
from ensign.stats.rounds import RoundCosts
from ensign.stats.student import chi_squared_tail
from ensign.stats.suite import round_geomeans

_FEWEST = 3
_FEWEST_AGAIN = 3


@dataclass(frozen=True, slots=True)
class RelinksDiffer:
    """The standard deviation of a variant's log ratios to the baseline, above the margin.

    It is that of layouts, of both, where they are `told_apart` from executions; else of rounds.
    """

    variant: str
    sd: float
    told_apart: bool


def relinks_differ(
    costs: RoundCosts, relinks: int, margin: float, level: float
) -> tuple[RelinksDiffer, ...]:
    """The variants for which they do, the greatest first; the level is that of all together.

    `costs` are of rounds, which used their relinks in turn.
    """
    variants = [each for each in costs.compared if each != TWIN]
    if len(costs.rounds) < _FEWEST or not variants:
        return ()
    error, limit = (1 - level) / len(variants), math.log1p(margin)
    found = []
    for variant in variants:
        g = round_geomeans(costs.log_ratios(variant, costs.variants[0]))
        groups: dict[int, list[float]] = {}
        for round_index, value in zip(costs.rounds, g.tolist(), strict=True):
            groups.setdefault(round_index % relinks, []).append(value)
        again = len(g) - len(groups)
        if again >= _FEWEST_AGAIN:
            split = nested_split(tuple(groups.values()))
            sd = 0.0 if split is None else split.layout_sd
            shown = _p_of_groups(tuple(groups.values())) < error
        else:
            sd, degrees = float(np.std(g, ddof=1)), len(g) - 1
            shown = chi_squared_tail(degrees * (sd / limit) ** 2, degrees) < error
        if shown and sd > limit:
            found.append(RelinksDiffer(variant, sd, again >= _FEWEST_AGAIN))
    return tuple(sorted(found, key=lambda each: -each.sd))


def _p_of_groups(groups: Sequence[Sequence[float]]) -> float:
    """P of at least so large an F, were all groups of one mean."""
    from scipy.special import fdtrc  # noqa: PLC0415 - a quarter of a second, at first use

    total, k = sum(map(len, groups)), len(groups)
    grand = sum(map(sum, groups)) / total
    means = [sum(group) / len(group) for group in groups]
    between = sum(len(g) * (m - grand) ** 2 for g, m in zip(groups, means, strict=True)) / (k - 1)
    inside = sum((value - m) ** 2 for g, m in zip(groups, means, strict=True) for value in g)
    within = inside / (total - k)
    return float(fdtrc(k - 1, total - k, between / within)) if within else float(between == 0)
