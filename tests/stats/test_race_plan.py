from __future__ import annotations

import math

import numpy as np
import pytest

from ensign.stats.race_plan import Spread, between_variance, execution_seconds, standard_error

SPREAD = Spread(within_s=9e-6, between=4e-5)


def test_the_formula() -> None:
    assert execution_seconds(0.9, SPREAD, 0.01, 100) == pytest.approx(math.sqrt(0.9 * 9e-6 / 4e-5))


def test_bounds_hold() -> None:
    assert execution_seconds(0.9, SPREAD, 1.0, 100) == 1.0
    assert execution_seconds(0.9, SPREAD, 0.01, 0.2) == 0.2
    assert execution_seconds(0.9, Spread(1.0, 0.0), 0.01, 30.0) == 30.0


def test_no_other_length_gives_a_smaller_error() -> None:
    best = execution_seconds(0.9, SPREAD, 0.01, 100)
    # A budget so long that whole executions are as good as fractions of one.
    errors = [standard_error(10**6, 0.9, s, 2, SPREAD) for s in best * np.geomspace(0.2, 5, 41)]
    assert min(errors) == pytest.approx(standard_error(10**6, 0.9, best, 2, SPREAD), rel=1e-5)
    assert errors[0] > 1.05 * min(errors)


def test_the_error_counts_whole_executions_of_all_arms() -> None:
    spread = Spread(within_s=0.0, between=1e-4)
    assert standard_error(10, 1, 1, 2, spread) == pytest.approx(0.01 / math.sqrt(2))
    assert standard_error(3, 1, 1, 2, spread) == math.inf


def test_between_variance_is_what_averaging_leaves() -> None:
    assert between_variance(5e-5, 1e-5, 0.5) == pytest.approx(3e-5)
    assert between_variance(1e-5, 1e-5, 0.5) == 0.0
