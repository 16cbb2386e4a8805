"""The worst layout to expect of a variant. Pure.

The slowest of k relinks is slower the more there are, so that it compares nothing. In its place
stands what a fresh link stays below 19 times in 20: the one-sided prediction bound of one further
draw from a normal law (Hahn and Meeker, Statistical Intervals, 4),

    d̄ + t(0.95, k - 1)·√(v + s²/k)

with d[relink] a variant's log ratios to the mean of both copies of the baseline, s² their variance,
and v the variance of the variant's own layouts. In s² are those of both: Var(d) = v + v₀/2. The
copies have relinks of their own, Var(baseline - twin) = 2·v₀, and what is left is v (Grubbs, JASA
1948: differences of three or more tell the variance of each). The noise of executions is left in,
the same for all: bounds lie a little high, and their order stays. Simulated, 92 to 96 % of fresh
links stay below: least with three relinks, or beside a baseline whose layouts differ far more.
"""

from __future__ import annotations

import math

import numpy as np

from ensign.model.results import WorstLayout
from ensign.model.trials import TWIN
from ensign.stats.rounds import RoundCosts
from ensign.stats.student import one_sided_critical
from ensign.stats.suite import round_geomeans

_PROBABILITY = 0.95
_FEWEST = 3  # with two a bound says hardly more than that there are two


def worst_layouts(costs: RoundCosts) -> tuple[WorstLayout, ...]:
    """A bound for each variant, the baseline first; `costs` have a column for each relink.

    None without a twin with relinks of its own, or with fewer than three.
    """
    baseline, relinks = costs.variants[0], len(costs.rounds)
    if TWIN not in costs.variants or not costs.twin_apart or relinks < _FEWEST:
        return ()
    copies = round_geomeans(costs.log_ratios(TWIN, baseline))
    own = float(copies.var(ddof=1)) / 2
    quantile = one_sided_critical(_PROBABILITY, relinks - 1)
    found = [WorstLayout(baseline, math.exp(quantile * math.sqrt(own * (1 + 1 / (2 * relinks)))))]
    for variant in costs.compared:
        if variant == TWIN:
            continue
        d = round_geomeans(costs.log_ratios(variant, baseline))
        both = float(d.var(ddof=1))
        reach = quantile * math.sqrt(max(0.0, both - own / 2) + both / relinks)
        found.append(WorstLayout(variant, math.exp(float(np.mean(d)) + reach)))
    return tuple(found)
