from __future__ import annotations

import math

import numpy as np
import pytest

from ensign.model.comparisons import Direction
from ensign.model.errors import CommandFailed
from ensign.model.trials import TWIN, Better, Metric, Mode, NamedScore, Trial, VariantTotals
from ensign.stats.named_scores import judged_tests, workload_of
from ensign.stats.rounds import round_costs
from ensign.stats.suite import SuiteRule, compare_suite

VARIANTS = ("a", "b", TWIN)


def _totals(variant: str, *scores: NamedScore) -> VariantTotals:
    return VariantTotals(variant, 9, 9, 9, 0, 0, 1, 1, 0, 0, 1, scores=scores)


def _score(name: str, value: float | None, failed: str = "") -> NamedScore:
    return NamedScore(name, value, "s", Better.LOWER, failed)


def _trial(round_index: int, *variants: VariantTotals, workload: str = "w") -> Trial:
    return Trial(workload, round_index, 1, Mode.ALTERNATING, "none", 1, 0.0, 9, 1.0, variants, ())


def _round(round_index: int, **values: float) -> Trial:
    scores = [_score(name, value) for name, value in values.items()]
    return _trial(round_index, *(_totals(variant, *scores) for variant in VARIANTS))


def test_each_score_is_a_test_with_its_value() -> None:
    found = judged_tests(["plain", "w"], [_round(0, x=2.0, y=3.0), _trial(0, workload="plain")])
    assert found.names == ("plain", "w/x", "w/y")
    costs = {
        trial.workload: trial.variant("b").cost(Metric.CPU)
        for trial in found.trials
        if trial.variants
    }
    assert costs == {"w/x": 2.0, "w/y": 3.0}
    assert not found.findings
    assert workload_of("w/x/8") == "w"


def test_trials_without_named_scores_stay_as_they_are() -> None:
    trials = (_trial(0, _totals("a")),)
    assert judged_tests(["w"], trials).trials == trials


@pytest.mark.parametrize(
    ("score", "why"),
    [(None, "it is missing"), (_score("y", None, "it failed: planted"), "it failed: planted")],
)
def test_what_one_variant_lacks_is_withheld_from_all(score: NamedScore | None, why: str) -> None:
    given = [_score("x", 1.0), *([score] if score else [])]
    whole = (_score("x", 1.0), _score("y", 1.0))
    trials = [
        _round(0, x=1.0, y=1.0),
        _trial(1, _totals("a", *whole), _totals("b", *given), _totals(TWIN, *whole)),
    ]
    found = judged_tests(["w"], trials)
    assert found.names == ("w/x",)
    assert found.lacking == (("w/y", "b"),)
    (finding,) = found.findings
    assert (finding.code, finding.subject) == ("score-missing", "w/y")
    assert finding.text == f"not judged: in round 2 of b {why}"


def test_a_workload_of_which_nothing_is_left_is_named() -> None:
    trials = [
        _trial(0, _totals("a", _score("x", 1.0)), _totals("b", _score("y", 1.0))),
    ]
    with pytest.raises(CommandFailed, match=r"^w: none of its 2 benchmarks has a time in every"):
        judged_tests(["w"], trials)


def test_correlated_benchmarks_of_one_execution_raise_no_more_false_alarms() -> None:
    """A/A: 40 benchmarks share most of an execution's noise; taken as independent it were 70 %."""
    rng, races, rounds, benchmarks = np.random.default_rng(7), 400, 10, 40
    alarms = naive = 0
    for _ in range(races):
        shared = rng.normal(0, 0.02, (rounds, len(VARIANTS), 1))
        noise = shared + rng.normal(0, 0.01, (rounds, len(VARIANTS), benchmarks))
        trials = [
            _trial(
                index,
                *(
                    _totals(variant, *(_score(f"b{n}", math.exp(e)) for n, e in enumerate(row)))
                    for variant, row in zip(VARIANTS, values.tolist(), strict=True)
                ),
            )
            for index, values in enumerate(noise)
        ]
        found = judged_tests(["w"], trials)
        costs = round_costs(found.trials, VARIANTS, found.names, Metric.SCORE)
        claimed = compare_suite(costs, "b", "a", SuiteRule()).comparison.direction
        alarms += claimed is not Direction.UNCLEAR
        d = costs.log_ratios("b", "a")
        naive += abs(d.mean()) > 1.966 * d.std(ddof=1) / math.sqrt(d.size)
    # Two standard errors around 5 % in 400 races; as if all were independent it is most of them.
    assert alarms <= 0.05 * races + 2 * math.sqrt(0.05 * 0.95 * races)
    assert naive > 0.4 * races
