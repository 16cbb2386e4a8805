import math

import numpy as np
import pytest
from scipy import stats

from ensign.model.findings import Severity
from ensign.stats.pair import LogInterval
from ensign.stats.slice_length import change_of_log_ratio, slice_length_finding


def test_the_interval_is_welchs() -> None:
    rng = np.random.default_rng(5)
    usual, longer = rng.normal(0.01, 0.004, 8), rng.normal(0.02, 0.009, 5)
    change = change_of_log_ratio(usual.tolist(), longer.tolist(), 0.95)
    other = stats.ttest_ind(longer, usual, equal_var=False).confidence_interval(0.95)
    assert (change.low, change.high) == pytest.approx((other.low, other.high))
    assert change.mean == pytest.approx(longer.mean() - usual.mean())


def test_two_executions_of_each_are_needed() -> None:
    change = change_of_log_ratio([0.1], [0.2, 0.3], 0.95)
    assert (change.low, change.high) == (-math.inf, math.inf)


def test_without_spread_the_change_is_a_point() -> None:
    change = change_of_log_ratio([0.1, 0.1], [0.3, 0.3], 0.95)
    assert change.low == change.high == pytest.approx(0.2)


def test_it_covers_the_true_change_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(2000):
        change = change_of_log_ratio(
            rng.normal(0, 0.005, 8).tolist(), rng.normal(0.002, 0.008, 5).tolist(), 0.95
        )
        hits += change.low <= 0.002 <= change.high
    # Four standard errors of 2000 trials around 95 %.
    assert abs(hits / 2000 - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 2000)


def test_a_variant_that_moves_is_a_warning_that_names_it() -> None:
    still = {"gcc-O3": LogInterval(0.001, -0.002, 0.004)}
    assert slice_length_finding("set", (5, 20), still).severity is Severity.NOTE
    moved = slice_length_finding("set", (5, 20), still | {"lto": LogInterval(0.01, 0.005, 0.015)})
    assert moved.severity is Severity.WARNING
    assert "20 ms instead of 5 ms" in moved.text
    assert "bias lto (+0.50 % to +1.51 %)" in moved.text
