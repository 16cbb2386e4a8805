from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from ensign.stats.rounds import RoundCosts
from ensign.stats.suite import NoSlowerClaim, non_inferiority_claim, upper_bounds

Make = Callable[..., RoundCosts]
D = np.random.default_rng(2).normal(0.0, 0.004, (6, 8))


def claim_of(costs: RoundCosts) -> NoSlowerClaim:
    bounds = upper_bounds(costs.log_ratios("variant", "baseline"), 0.95)
    return non_inferiority_claim(costs.workloads, bounds, 0.01)


def test_upper_bounds_agree_with_scipy() -> None:
    for d, bound in zip(D, upper_bounds(D, 0.975), strict=True):
        one_sided = scipy.stats.ttest_1samp(d, 0, alternative="less").confidence_interval(0.975)
        assert bound == pytest.approx(one_sided.high)


def test_one_bad_workload_is_named(make_costs: Make) -> None:
    d = D.copy()
    d[3] += 0.012
    claim = claim_of(make_costs(d))
    assert (claim.shown, claim.not_shown) == (False, ("w3",))
    assert claim_of(make_costs(D)).shown


def test_being_faster_on_others_does_not_help(make_costs: Make) -> None:
    d = D - 1.0
    d[0] = D[0] + math.log(1.01)
    assert claim_of(make_costs(d)).not_shown == ("w0",)


def test_noise_is_not_evidence(make_costs: Make) -> None:
    # No workload is significantly slower here, and yet nothing is shown.
    noisy = make_costs(20 * D)
    assert not claim_of(noisy).shown


def test_a_higher_level_shows_less() -> None:
    assert (upper_bounds(D, 0.99) > upper_bounds(D, 0.95)).all()
