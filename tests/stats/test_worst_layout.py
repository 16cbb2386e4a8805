from __future__ import annotations

import numpy as np
import pytest

from ensign.model.trials import TWIN, Metric
from ensign.stats.layouts import worst_layouts
from ensign.stats.rounds import RoundCosts

VARIANTS = ("baseline", "wide", "narrow", TWIN)


def costs_of(
    rng: np.random.Generator, relinks: int, spreads: dict[str, float], means: dict[str, float]
) -> RoundCosts:
    """Log costs by relink: what a round does to all, each variant's layouts, a little noise."""
    drift = rng.normal(0, 0.1, relinks)
    own = {**spreads, TWIN: spreads["baseline"]}
    y = [
        drift + means.get(name, 0.0) + rng.normal(0, own[name], relinks) for name in VARIANTS
    ] + rng.normal(0, 0.001, (len(VARIANTS), relinks))
    return RoundCosts(Metric.CPU, VARIANTS, ("w",), tuple(range(relinks)), (), y[:, None, :])


@pytest.mark.parametrize("relinks", [4, 12, 30])
@pytest.mark.parametrize("baseline_spread", [0.0, 0.03])
def test_a_fresh_link_of_each_variant_is_below_it_19_times_in_20(
    relinks: int, baseline_spread: float
) -> None:
    rng = np.random.default_rng(5)
    spreads = {"baseline": baseline_spread, "wide": 0.04, "narrow": 0.004}
    means = {"wide": -0.08, "narrow": -0.06}
    below = dict.fromkeys(spreads, 0)
    for _ in range(1500):
        worst = worst_layouts(costs_of(rng, relinks, spreads, means))
        assert [each.variant for each in worst] == ["baseline", "wide", "narrow"]
        for each in worst:
            fresh = means.get(each.variant, 0.0) + rng.normal(0, spreads[each.variant])
            below[each.variant] += fresh < np.log(each.ratio)
    shares = {name: count / 1500 for name, count in below.items()}
    assert 0.93 < shares["wide"] < 0.98
    assert min(shares.values()) > 0.91


def test_a_better_mean_does_not_hide_a_worse_worst_layout() -> None:
    rng = np.random.default_rng(6)
    spreads = {"baseline": 0.03, "wide": 0.05, "narrow": 0.004}
    right = 0
    for _ in range(300):
        found = worst_layouts(costs_of(rng, 12, spreads, {"wide": -0.08, "narrow": -0.06}))
        ratios = {each.variant: each.ratio for each in found}
        right += ratios["narrow"] < ratios["wide"]
    assert right > 280


def test_nothing_is_said_of_too_few_relinks_or_without_a_twin() -> None:
    rng = np.random.default_rng(7)
    spreads = {"baseline": 0.03, "wide": 0.05, "narrow": 0.004}
    assert worst_layouts(costs_of(rng, 2, spreads, {})) == ()
    costs = costs_of(rng, 5, spreads, {})
    without = RoundCosts(costs.metric, VARIANTS[:3], ("w",), costs.rounds, (), costs.y[:3])
    assert worst_layouts(without) == ()
