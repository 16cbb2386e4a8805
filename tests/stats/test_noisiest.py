from __future__ import annotations

import numpy as np
import pytest

from ensign.model.findings import Severity
from ensign.model.trials import TWIN, Metric
from ensign.stats.noisiest import noisiest_findings
from ensign.stats.suite import SuiteRule, compare_suite
from ensign.stats.sweeps import SweepCosts

ARMS = ("old", "new", TWIN)


def costs_of(deviations: list[float], sweeps: int = 400) -> SweepCosts:
    rng = np.random.default_rng(3)
    y = rng.normal(0, 1, (3, len(deviations), sweeps)) * np.array(deviations)[None, :, None]
    names = tuple(f"w{number}" for number in range(len(deviations)))
    return SweepCosts(Metric.CPU, ARMS, names, tuple(range(sweeps)), (), y)


def width(costs: SweepCosts) -> float:
    found = compare_suite(costs, "new", "old", SuiteRule()).comparison
    return float(np.log(found.high / found.low))


def test_one_workload_with_most_of_the_noise_is_named() -> None:
    costs = costs_of([0.3, *[0.02] * 9])
    (found,) = noisiest_findings(costs, ARMS[1:], "old")
    assert (found.severity, found.subject) == (Severity.WARNING, "w0")
    assert "96% of the" in found.text
    said = float(found.text.rsplit(" times")[0].rsplit(" ", 1)[1])
    without = SweepCosts(Metric.CPU, ARMS, costs.workloads[1:], costs.sweeps, (), costs.y[:, 1:])
    assert width(without) / width(costs) == pytest.approx(said, rel=0.1)


def test_ordinary_noise_is_no_finding() -> None:
    assert noisiest_findings(costs_of([0.05, *[0.02] * 9]), ARMS[1:], "old") == ()
    assert noisiest_findings(costs_of([0.3, 0.02]), ARMS[1:], "old") == ()
    assert noisiest_findings(costs_of([0.3, *[0.02] * 9], sweeps=2), ARMS[1:], "old") == ()
    assert noisiest_findings(costs_of([0.0] * 9), ARMS[1:], "old") == ()
