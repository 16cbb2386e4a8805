from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensign.model.errors import InputError
from ensign.model.trials import Metric, Trial
from ensign.stats.trials import log_costs, log_ratios, mean_cost_ns, user_share

from .conftest import build_trial

Make = Callable[..., Trial]


def test_the_estimate_is_the_ratio_of_costs_per_operation(make_trial: Make) -> None:
    trial = make_trial({"old": (2_000, 9_000, 10), "new": (1_500, 12_000, 5)})
    assert log_ratios([trial], "new", "old", Metric.CPU) == pytest.approx([math.log(1.5)])
    assert log_ratios([trial], "new", "old", Metric.WALL) == pytest.approx([math.log(24 / 9)])


def test_any_two_variants_are_compared_directly(make_trial: Make) -> None:
    trial = make_trial({"old": (100, 1, 1), "a": (110, 1, 1), "b": (121, 1, 1)})
    assert log_ratios([trial], "b", "a", Metric.CPU) == pytest.approx([math.log(1.1)])


costs = st.lists(st.integers(1_000, 10**12), min_size=1, max_size=5)


@given(costs, st.integers(1, 1000))
def test_speed_of_the_machine_cancels(cpu: list[int], factor: int) -> None:
    slow = [build_trial({"old": (c, 1, 1), "new": (2 * c, 1, 1)}) for c in cpu]
    slower = [build_trial({"old": (c * factor, 1, 1), "new": (2 * c * factor, 1, 1)}) for c in cpu]
    assert log_ratios(slower, "new", "old", Metric.CPU) == pytest.approx(
        log_ratios(slow, "new", "old", Metric.CPU)
    )


def test_a_drift_common_to_both_variants_leaves_no_trace(make_trial: Make) -> None:
    trials = [
        make_trial({"old": (10**6 * day, 1, 1), "new": (1_020_000 * day, 1, 1)})
        for day in range(1, 30)
    ]
    ratios = log_ratios(trials, "new", "old", Metric.CPU)
    assert ratios == pytest.approx([math.log(1.02)] * 29)
    assert len(set(log_costs(trials, "new", Metric.CPU))) == 29


def test_mean_cost_is_geometric(make_trial: Make) -> None:
    trials = [make_trial({"old": (c, 1, 2)}) for c in (200, 800)]
    assert mean_cost_ns(trials, "old", Metric.CPU) == pytest.approx(200)


def test_user_share_is_of_the_totals(make_trial: Make) -> None:
    assert user_share([make_trial({"old": (4_000, 1, 1)})], "old") == 0.75
    assert user_share([make_trial({"old": (0, 1, 1)})], "old") == 0.0


@pytest.mark.parametrize(
    ("variants", "message"),
    [
        ({"old": (1, 1, 1)}, "variant 'new' took no part in an execution"),
        ({"new": (5, 5, 0)}, r"variant 'new' completed no operation \(set, round 3\)"),
        ({"new": (0, 5, 1)}, "variant 'new' used no measurable cpu time"),
    ],
)
def test_variants_without_a_cost_are_named(
    make_trial: Make, variants: dict[str, tuple[int, int, int]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        log_costs([make_trial(variants, round_index=3)], "new", Metric.CPU)


def test_no_executions_have_no_mean_cost() -> None:
    with pytest.raises(InputError, match="no executions of variant 'new'"):
        mean_cost_ns([], "new", Metric.CPU)
