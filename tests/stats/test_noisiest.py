from __future__ import annotations

import numpy as np
import pytest

from ensign.model.findings import Severity
from ensign.model.trials import TWIN, Metric
from ensign.stats.disturbed import noisiest_findings
from ensign.stats.rounds import RoundCosts
from ensign.stats.suite import SuiteRule, compare_suite

VARIANTS = ("old", "new", TWIN)


def costs_of(deviations: list[float], rounds: int = 400) -> RoundCosts:
    rng = np.random.default_rng(3)
    y = rng.normal(0, 1, (3, len(deviations), rounds)) * np.array(deviations)[None, :, None]
    names = tuple(f"w{number}" for number in range(len(deviations)))
    return RoundCosts(Metric.CPU, VARIANTS, names, tuple(range(rounds)), (), y)


def width(costs: RoundCosts) -> float:
    found = compare_suite(costs, "new", "old", SuiteRule()).comparison
    return float(np.log(found.high / found.low))


def test_one_workload_with_most_of_the_noise_is_named() -> None:
    costs = costs_of([0.3, *[0.02] * 9])
    (found,) = noisiest_findings(costs, VARIANTS[1:], "old")
    assert (found.severity, found.subject) == (Severity.WARNING, "w0")
    assert "96 % of the" in found.text
    said = float(found.text.rsplit(" times")[0].rsplit(" ", 1)[1])
    without = RoundCosts(
        Metric.CPU, VARIANTS, costs.workloads[1:], costs.rounds, (), costs.y[:, 1:]
    )
    assert width(without) / width(costs) == pytest.approx(said, rel=0.1)


def test_ordinary_noise_is_no_finding() -> None:
    assert noisiest_findings(costs_of([0.05, *[0.02] * 9]), VARIANTS[1:], "old") == ()
    assert noisiest_findings(costs_of([0.3, 0.02]), VARIANTS[1:], "old") == ()
    assert noisiest_findings(costs_of([0.3, *[0.02] * 9], rounds=2), VARIANTS[1:], "old") == ()
    assert noisiest_findings(costs_of([0.0] * 9), VARIANTS[1:], "old") == ()
