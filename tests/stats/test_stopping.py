from __future__ import annotations

import numpy as np
import pytest

from ensign.model.findings import Severity
from ensign.model.results import Stopped
from ensign.stats.looks import looks_up_to
from ensign.stats.pair import PairRule, Rule
from ensign.stats.stopping import (
    few_executions_decide,
    may_stop,
    pair_findings,
    race_may_stop,
)
from simulated_races import normal, run_races

STEADY = [0.020, 0.021, 0.019, 0.0205, 0.0195, 0.020, 0.0201, 0.0199, 0.0202, 0.0198]
PRECISE = PairRule(precision=0.005)


def test_precision_is_reached() -> None:
    assert may_stop(STEADY[:5], PRECISE) is Stopped.PRECISION
    assert may_stop(STEADY[:5], PairRule(precision=0.0001)) is None


@pytest.mark.parametrize("margin", [0.01, 0.1])
def test_size_is_settled_beyond_or_within(margin: float) -> None:
    assert may_stop(STEADY[:5], PairRule(margin=margin)) is Stopped.DECIDED


def test_size_on_the_margin_is_not_settled_but_precision_suffices() -> None:
    assert may_stop(STEADY[:5], PairRule(margin=0.02)) is None
    both = PairRule(margin=0.02, precision=0.005)
    assert may_stop(STEADY[:5], both) is Stopped.PRECISION


def test_nothing_stops_without_margin_and_precision() -> None:
    assert [may_stop(STEADY[:n], PairRule()) for n in range(1, 11)] == [None] * 10


def test_only_looks_stop() -> None:
    stops = [n for n in range(1, 11) if may_stop(STEADY[:n], PRECISE)]
    assert stops == [5, 7, 10]
    late = PairRule(precision=0.005, first_look=10)
    assert [n for n in range(1, 11) if may_stop(STEADY[:n], late)] == [10]


def test_the_t_rule_never_peeks() -> None:
    assert may_stop(STEADY[:5], PairRule(precision=0.005, rule=Rule.T)) is None


def test_executions_without_spread_do_not_stop_and_say_so() -> None:
    assert may_stop([0.0] * 5, PRECISE) is None
    (finding,) = pair_findings([0.0] * 5, PRECISE, "new")
    assert (finding.code, finding.severity, finding.subject) == (
        "no-spread",
        Severity.WARNING,
        "new",
    )


# Nine of ten at +1 %, one far away on the same side: the ranks are sure, the interval is not.
OUTLIER = [0.010, 0.011, 0.009, 0.0105, 0.0095, 0.010, 0.0101, 0.0099, 0.0102, 0.5]
# One of ten on the other side, in the middle of the ranks: t = 4.0 > 3.27, p = 0.0195 > 0.0155.
MIXED = [0.03, 0.031, 0.029, 0.030, 0.032, 0.03, -0.0306, 0.0305, 0.033, 0.031]


def test_a_far_execution_is_named_and_the_race_goes_on() -> None:
    assert few_executions_decide(OUTLIER, PairRule())
    (finding,) = pair_findings(OUTLIER, PairRule())
    assert finding.code == "few-executions-decide"
    assert "by the interval there may be none" in finding.text
    # Wide precision would stop here, were it not for the disagreement.
    assert may_stop(OUTLIER, PairRule(precision=0.5)) is None


def test_an_interval_that_the_ranks_do_not_support_is_named() -> None:
    assert few_executions_decide(MIXED, PairRule())
    (finding,) = pair_findings(MIXED, PairRule())
    assert "the interval says slower" in finding.text


def test_agreement_is_no_finding() -> None:
    assert pair_findings(STEADY, PairRule()) == ()
    assert pair_findings([0.01, -0.011, 0.02, -0.019, 0.005, -0.004, 0.01, -0.01], PairRule()) == ()


def test_the_companion_is_silent_below_eight_and_at_other_levels() -> None:
    assert not few_executions_decide(OUTLIER[-7:], PairRule())
    assert not few_executions_decide(OUTLIER, PairRule(level=0.99))


def test_a_race_ends_when_all_its_pairs_may() -> None:
    assert race_may_stop([STEADY[:5], STEADY[:5]], PRECISE) is Stopped.PRECISION
    assert race_may_stop([STEADY[:5], [0.1, -0.1, 0.2, -0.2, 0.0]], PRECISE) is None
    assert race_may_stop([], PRECISE) is None


@pytest.mark.parametrize(
    "rule", [PairRule(margin=0.01), PRECISE, PairRule(level=0.99, margin=0.01)]
)
def test_simulated_races_stop_as_real_ones_do(rule: PairRule) -> None:
    rng = np.random.default_rng(11)
    d = 0.006 + 0.008 * normal(rng, (150, 40))
    simulated = run_races(d, rule)
    for race, executions, early in zip(d, simulated.executions, simulated.early, strict=True):
        stops = [n for n in looks_up_to(40) if may_stop(race[:n].tolist(), rule)]
        assert (stops[0] if stops else 40) == executions
        assert bool(stops) is bool(early)
