from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from ensign.stats.stopping import (
    doubled_ranks,
    null_distribution,
    signed_rank_excludes_zero,
    signed_rank_p,
)
from simulated_races import signed_rank_rejections


@pytest.mark.parametrize("n", [8, 11, 16, 22, 32, 40])
def test_p_agrees_with_scipy_without_ties(n: int) -> None:
    rng = np.random.default_rng(n)
    for shift in (0.0, 0.3, 0.8):
        d = rng.normal(shift, 1, n)
        expected = scipy.stats.wilcoxon(d, method="exact").pvalue
        assert signed_rank_p(d.tolist()) == pytest.approx(expected, rel=1e-10)


def all_sign_flips(d: list[float]) -> float:
    """Two-sided p by trying every assignment of signs to the ranks."""
    ranks = [r for r, x in zip(scipy.stats.rankdata(np.abs(d)), d, strict=True) if x != 0]
    signs = [x > 0 for x in d if x != 0]
    observed = sum(r for r, s in zip(ranks, signs, strict=True) if s)
    sums = [
        sum(r for r, s in zip(ranks, flip, strict=True) if s)
        for flip in product((False, True), repeat=len(ranks))
    ]
    upper = sum(s >= observed for s in sums) / len(sums)
    lower = sum(s <= observed for s in sums) / len(sums)
    return float(min(1.0, 2 * min(upper, lower)))


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9))
def test_ties_and_zeros_are_exact(values: list[int]) -> None:
    d = [float(v) for v in values]
    assert signed_rank_p(d) == pytest.approx(all_sign_flips(d))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_p_does_not_depend_on_the_side(d: list[float]) -> None:
    assert signed_rank_p(d) == pytest.approx(signed_rank_p([-x for x in d]))


def test_ranks_are_doubled_mid_ranks() -> None:
    assert doubled_ranks([0.3, 0.1, 0.3, 0.2]).tolist() == [7, 2, 7, 4]


def test_the_distribution_of_three() -> None:
    assert (null_distribution([1, 2, 3]) * 8).tolist() == [1, 1, 1, 2, 1, 1, 1]


def test_nothing_but_zeros_says_nothing() -> None:
    assert signed_rank_p([0.0] * 10) == 1.0
    assert signed_rank_p([]) == 1.0


def test_the_normal_approximation_continues_the_exact_one() -> None:
    d = np.random.default_rng(3).normal(0.1, 1, 320)
    exact = 2 * scipy.stats.wilcoxon(d, method="exact", alternative="greater").pvalue
    assert signed_rank_p(d.tolist()) == pytest.approx(exact, rel=0.02)


def test_the_smallest_number_of_executions_that_can_reject() -> None:
    assert signed_rank_excludes_zero([0.1 + i for i in range(7)]) is None
    assert signed_rank_excludes_zero([0.1 + i for i in range(8)]) is True
    # One small execution on the other side: p = 4/256 = 0.0156, a hair too much.
    assert signed_rank_excludes_zero([-0.1] + [1.0 + i for i in range(7)]) is False


def test_the_vectorised_form_agrees() -> None:
    d = np.random.default_rng(5).normal(0.5, 1, (200, 16))
    vectorised = signed_rank_rejections(d, [8, 16])
    for race, (at_8, at_16) in zip(d, vectorised, strict=True):
        assert signed_rank_excludes_zero(race[:8].tolist()) == at_8
        assert signed_rank_excludes_zero(race.tolist()) == at_16
