from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from ensign.model.errors import InputError
from ensign.model.trials import TWIN, Metric, Trial
from ensign.stats.rounds import RoundCosts, round_costs, round_findings
from ensign.stats.suite import SuiteRule, compare_suite

Make = Callable[..., Trial]
VARIANTS = ("old", "new")


def round_index(
    make_trial: Make, number: int, workloads: tuple[str, ...] = ("get", "set")
) -> list[Trial]:
    return [
        make_trial(
            {"old": (1000 + w, 1, 1), "new": (2000 + w + number, 1, 1)},
            workload,
            round_index=number,
        )
        for w, workload in enumerate(workloads)
    ]


def test_whole_rounds_become_a_table(make_trial: Make) -> None:
    trials = round_index(make_trial, 1) + round_index(make_trial, 0)[::-1]
    costs = round_costs(trials, VARIANTS, ("set", "get"), Metric.CPU)
    assert (costs.rounds, costs.left_out) == ((0, 1), ())
    assert costs.y.shape == (2, 2, 2)
    # The order of workloads is the one asked for, whatever the order of the trials.
    assert np.exp(costs.y[1]) == pytest.approx(np.array([[2001, 2002], [2000, 2001]]))
    assert costs.log_ratios("new", "old")[0, 1] == pytest.approx(math.log(2002 / 1001))
    assert costs.log_ratios("old", "new") == pytest.approx(-costs.log_ratios("new", "old"))


def test_incomplete_rounds_count_nowhere_and_are_said(make_trial: Make) -> None:
    trials = (
        round_index(make_trial, 0) + round_index(make_trial, 1)[:1] + round_index(make_trial, 2)
    )
    costs = round_costs(trials, VARIANTS, ("get", "set"), Metric.CPU)
    assert (costs.rounds, costs.left_out) == ((0, 2), (1,))
    (finding,) = round_findings(costs)
    assert finding.code == "incomplete-rounds"
    assert "1 incomplete round is left out" in finding.text
    assert "that of the 2 complete ones" in finding.text


def test_a_round_without_a_variant_is_not_whole(make_trial: Make) -> None:
    short = [make_trial({"old": (1, 1, 1)}, "get", round_index=1)]
    costs = round_costs(
        round_index(make_trial, 0, ("get",)) + short, VARIANTS, ("get",), Metric.CPU
    )
    assert (costs.rounds, costs.left_out) == ((0,), (1,))
    # Leaving the missing variant out makes both whole.
    assert round_costs(short, ("old",), ("get",), Metric.CPU).rounds == (1,)


def test_whole_rounds_are_no_finding(make_trial: Make) -> None:
    assert (
        round_findings(round_costs(round_index(make_trial, 0), VARIANTS, ("get",), Metric.CPU))
        == ()
    )


def test_two_trials_of_one_round_are_refused(make_trial: Make) -> None:
    with pytest.raises(InputError, match="workload 'get' has two trials of round 4"):
        round_costs(round_index(make_trial, 4) * 2, VARIANTS, ("get", "set"), Metric.CPU)


def test_an_unknown_variant_is_named(make_trial: Make) -> None:
    costs = round_costs(round_index(make_trial, 0), VARIANTS, ("get", "set"), Metric.CPU)
    with pytest.raises(InputError, match="variant 'newer' is not among the variants: old, new"):
        costs.log_ratios("newer", "old")


def with_twin(y: np.ndarray) -> RoundCosts:
    rounds = tuple(range(y.shape[-1]))
    return RoundCosts(Metric.CPU, ("old", "new", TWIN), ("get",), rounds, (), y)


def test_the_twin_stands_for_the_baseline_as_well() -> None:
    costs = with_twin(np.array([[[1.0]], [[2.0]], [[4.0]]]))
    assert costs.log_ratios("new", "old") == pytest.approx(-0.5)
    assert costs.log_ratios("old", "new") == pytest.approx(0.5)
    assert costs.log_ratios(TWIN, "old") == pytest.approx(3.0)
    assert costs.log_ratios("new", TWIN) == pytest.approx(-2.0)


def test_ratios_to_both_cover_the_truth_and_are_narrower() -> None:
    rng = np.random.default_rng(9)
    hits, widths, alone = 0, [], []
    for _ in range(2000):
        y = rng.normal(0, 0.02, (3, 1, 8)) + rng.normal(0, 0.1, (1, 1, 8))
        y[1] -= 0.03
        result = compare_suite(with_twin(y), "new", "old", SuiteRule()).comparison
        hits += math.log(result.low) <= -0.03 <= math.log(result.high)
        widths.append((math.log(result.high) - math.log(result.low)) ** 2)
        own = compare_suite(with_twin(y), TWIN, "old", SuiteRule()).comparison
        alone.append((math.log(own.high) - math.log(own.low)) ** 2)
    assert 0.935 < hits / 2000 < 0.965
    assert np.mean(widths) / np.mean(alone) == pytest.approx(0.75, rel=0.05)
