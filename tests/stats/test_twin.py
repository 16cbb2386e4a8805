from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from ensign.model.errors import InputError
from ensign.model.trials import Metric
from ensign.stats.pair import PairNames, PairRule, compare
from ensign.stats.rounds import RoundCosts
from ensign.stats.twin import binomial_tail, exits_for_finding, judge_twin, twin_findings

Make = Callable[..., RoundCosts]


@pytest.mark.parametrize(
    ("workloads", "exits"), [(50, 7), (1, 2), (5, 3), (12, 4), (20, 5), (100, 11)]
)
def test_exits_that_are_a_finding(workloads: int, exits: int) -> None:
    assert exits_for_finding(workloads) == exits


@pytest.mark.parametrize("workloads", [1, 3, 12, 37, 50, 200])
def test_the_false_alarm_probability_is_that_of_7_of_50(workloads: int) -> None:
    needed = exits_for_finding(workloads)
    reference = scipy.stats.binom.sf(6, 50, 0.05)
    assert scipy.stats.binom.sf(needed - 1, workloads, 0.05) <= reference * (1 + 1e-9)
    if needed > 2:
        assert scipy.stats.binom.sf(needed - 2, workloads, 0.05) > reference


def test_the_tail_agrees_with_scipy() -> None:
    assert binomial_tail(7, 50, 0.05) == pytest.approx(scipy.stats.binom.sf(6, 50, 0.05))
    assert binomial_tail(0, 50, 0.05) == 1.0


def differing(workloads: int, exits: int) -> np.ndarray:
    """Twins that differ on some workloads, half of them either way, and not on average."""
    alternate = np.tile([0.01, -0.01, 0.012, -0.012], 2)
    d = np.tile(alternate, (workloads, 1))
    for i in range(exits):
        d[i] = 0.1 * alternate + (0.02 if i % 2 else -0.02)
    return d


def test_single_exits_are_shown_but_no_finding(make_costs: Make) -> None:
    judgment = judge_twin(make_costs(differing(12, 2)), "variant", "baseline")
    assert (judgment.exits, judgment.exits_allowed, judgment.findings) == (("w0", "w1"), 3, ())


def test_many_exits_are_a_finding(make_costs: Make) -> None:
    judgment = judge_twin(make_costs(differing(12, 4)), "variant", "baseline")
    (finding,) = judgment.findings
    assert (finding.code, finding.subject) == ("twin-exits", "variant")
    assert "4 of 12 workloads (w0, w1, w2, w3)" in finding.text


def test_a_geomean_off_one_is_a_finding(make_costs: Make) -> None:
    shifted = np.tile(0.01 + 0.001 * np.array([1, -1, 1, -1, 1, -1, 1, -1]), (2, 1))
    codes = [f.code for f in judge_twin(make_costs(shifted), "variant", "baseline").findings]
    assert codes == ["twin-exits", "twin-geomean"]


def test_no_round_cannot_be_judged(make_costs: Make) -> None:
    with pytest.raises(InputError):
        judge_twin(make_costs(np.empty((3, 0))), "variant", "baseline")


def test_the_twin_of_one_race() -> None:
    names = PairNames("twin", "old", Metric.CPU)
    equal = compare(names, [0.01, -0.012, 0.004, -0.003, 0.001], PairRule())
    assert twin_findings(equal) == ()
    off = compare(names, [0.010, 0.012, 0.011, 0.009, 0.010], PairRule())
    (finding,) = twin_findings(off)
    assert (finding.code, finding.subject) == ("twin-differs", "twin")
    assert "is slower (cost ratio 1.00" in finding.text
