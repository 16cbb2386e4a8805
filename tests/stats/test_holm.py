from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensign.stats.holm import holm_adjusted, significant_workloads
from ensign.stats.rounds import RoundCosts

Make = Callable[..., RoundCosts]


def test_the_textbook_example() -> None:
    # 0.01·4, then 0.013·3 = 0.039 is raised to 0.04, 0.014·2 likewise, 0.19 stays.
    assert holm_adjusted([0.014, 0.01, 0.19, 0.013]) == pytest.approx([0.04, 0.04, 0.19, 0.04])
    assert holm_adjusted([]) == ()
    assert holm_adjusted([0.9, 0.8]) == (1.0, 1.0)


def step_down(p_values: list[float], alpha: float) -> set[int]:
    """Holm's procedure as he wrote it: reject in order of p while p <= alpha/(tests left)."""
    rejected: set[int] = set()
    for left, i in zip(
        range(len(p_values), 0, -1),
        sorted(range(len(p_values)), key=p_values.__getitem__),
        strict=True,
    ):
        if p_values[i] > alpha / left:
            break
        rejected.add(i)
    return rejected


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20, unique=True))
def test_adjusting_rejects_what_stepping_down_does(p_values: list[float]) -> None:
    alpha = 0.05
    by_adjusting = {i for i, p in enumerate(holm_adjusted(p_values)) if p <= alpha}
    # Equal but for rounding where p · k is alpha to the last bit.
    assert by_adjusting <= step_down(p_values, alpha * (1 + 1e-12))
    assert by_adjusting >= step_down(p_values, alpha * (1 - 1e-12))


def test_slower_and_faster_workloads_are_named(make_costs: Make) -> None:
    d = np.random.default_rng(4).normal(0, 0.002, (20, 8))
    d[3] += 0.05
    d[11] -= 0.05
    named = significant_workloads(make_costs(d), "variant", "baseline")
    assert (named.variant, named.slower, named.faster) == ("variant", ("w3",), ("w11",))


def test_unadjusted_exits_are_not_named(make_costs: Make) -> None:
    d = np.random.default_rng(6).normal(0, 1, (50, 8))
    named = significant_workloads(make_costs(d), "variant", "baseline")
    assert (named.slower, named.faster) == ((), ())


def test_without_spread_a_difference_is_named_and_none_is_not(make_costs: Make) -> None:
    d = np.array([[0.0] * 4, [0.5] * 4])
    costs = make_costs(d)
    costs.y[0] = 0.0
    costs.y[1] = d
    named = significant_workloads(costs, "variant", "baseline")
    assert (named.slower, named.faster) == (("w1",), ())


def test_one_round_names_nothing(make_costs: Make) -> None:
    named = significant_workloads(make_costs(np.ones((3, 1))), "variant", "baseline")
    assert (named.slower, named.faster) == ((), ())
