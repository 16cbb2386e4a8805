"""Costs by function from samples: simulated with known shares, with few samples, and with drift."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from ensign.stats.function_costs import CostDifferences, SampledExecution, cost_differences

BEFORE = {"hot": 50.0, "warm": 30.0, "cool": 15.0, "rare": 5.0}
AFTER = {**BEFORE, "hot": 60.0, "rare": 0.0, "new": 5.0}
TRUTH = {"hot": 0.1, "warm": 0.0, "cool": 0.0, "rare": -0.05, "new": 0.05}


def raced(
    rng: np.random.Generator, executions: int, samples: float, drift: float = 0.0
) -> CostDifferences[str] | None:
    """Both variants in each execution, which moves both of them alike; `samples` of each."""
    sides: list[list[SampledExecution[str]]] = [[], []]
    for number in range(executions):
        speed = rng.normal(1, 0.05) + drift * number / executions
        for side, costs in zip(sides, (BEFORE, AFTER), strict=True):
            user = sum(costs.values()) * speed * rng.normal(1, 0.01)
            shares = np.asarray([*costs.values()]) / sum(costs.values())
            counts = rng.multinomial(rng.poisson(samples), shares)
            taken = Counter(dict(zip(costs, counts.tolist(), strict=True)))
            side.append(SampledExecution(user, 2 * speed, +taken))
    return cost_differences(sides[0], sides[1], 0.95)


@pytest.mark.parametrize(
    ("executions", "samples", "drift"), [(5, 200, 0.0), (12, 40, 0.0), (40, 15, 0.0), (20, 40, 0.5)]
)
def test_intervals_hold_the_truth(executions: int, samples: float, drift: float) -> None:
    rng = np.random.default_rng(executions)
    races = 600
    held: Counter[str] = Counter()
    errors: dict[str, list[float]] = {name: [] for name in TRUTH}
    scale = sum(BEFORE.values()) / (sum(BEFORE.values()) + 2)
    for _ in range(races):
        found = raced(rng, executions, samples, drift)
        assert found is not None
        for name, share in TRUTH.items():
            row = found.functions[name]
            held[name] += row.low <= share * scale <= row.high
            errors[name].append(row.share - share * scale)
    for name, values in errors.items():
        assert held[name] / races > 0.95 - 5 * math.sqrt(0.05 * 0.95 / races)
        assert abs(np.mean(values)) < 5 * np.std(values) / math.sqrt(races)


def test_parts_add_up_to_the_whole() -> None:
    found = raced(np.random.default_rng(1), 10, 100)
    assert found is not None
    parts = [found.kernel, *found.functions.values()]
    assert sum(part.share for part in parts) == pytest.approx(found.total.share)
    assert sum(part.before_ns for part in parts) == pytest.approx(found.total.before_ns)


def test_an_execution_without_samples_is_as_the_others() -> None:
    one = [SampledExecution(100.0, 0.0, {"a": 3, "b": 1}), SampledExecution(100.0, 0.0, {})]
    two = [SampledExecution(100.0, 0.0, {"a": 1}), SampledExecution(300.0, 0.0, {"a": 1})]
    found = cost_differences(one, two, 0.95)
    assert found is not None
    assert found.functions["a"].before_ns == pytest.approx(75)
    assert found.functions["b"].after_ns == 0
    assert found.total.share == pytest.approx(1)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ([], []),
        ([SampledExecution(1.0, 0.0, {"a": 1})], [SampledExecution(1.0, 0.0, {"a": 1})]),
        ([SampledExecution(1.0, 0.0, {})] * 2, [SampledExecution(1.0, 0.0, {"a": 1})] * 2),
        ([SampledExecution(0.0, 0.0, {"a": 1})] * 2, [SampledExecution(1.0, 0.0, {"a": 1})] * 2),
    ],
    ids=["nothing", "one execution", "no samples", "no time"],
)
def test_nothing_is_said_of_too_little(
    one: list[SampledExecution[str]], two: list[SampledExecution[str]]
) -> None:
    assert cost_differences(one, two, 0.95) is None
