"""Ratios of variants that race in groups, dealt anew in each round, with known truth."""

from __future__ import annotations

import numpy as np
import pytest

from ensign.experiment.groups import merged
from ensign.model.trials import TWIN, Metric, Mode, Trial, VariantTotals
from ensign.stats.rounds import round_costs
from ensign.stats.suite import SuiteRule, compare_workloads

BASE, TRUTH = "base", 0.02
VARIANTS = [f"v{number}" for number in range(6)]
ROUNDS, STUDIES, LEVEL = 8, 400, 0.95


def a_round(rng: np.random.Generator, number: int, size: int) -> Trial:
    """Two or more races; each is faster or slower as a whole, each variant has noise of its own."""
    dealt = list(rng.permutation(VARIANTS))
    races = []
    for start in range(0, len(dealt), size):
        race = rng.normal(0, 0.1)
        names = (BASE, *dealt[start : start + size], TWIN)
        noise = rng.normal(0, 0.01, len(names))
        variants = tuple(
            VariantTotals(
                name, 1, round(1e9 * np.exp(race + own + effect(name))), 1, 0, 0, 1, 0, 0, 0, 0
            )
            for name, own in zip(names, noise, strict=True)
        )
        races.append(Trial("w", number, 1, Mode.INTERLEAVED, "", 5, 0.0, 40, 0.5, variants, ()))
    return merged(races, BASE)


def effect(name: str) -> float:
    return TRUTH if name == "v0" else 0.0


@pytest.mark.parametrize("size", [2, 3])
def test_ratios_are_unbiased_and_their_intervals_cover(size: int) -> None:
    rng = np.random.default_rng(size)
    covered, pairs, means, spread = 0, 0, [], []
    for _ in range(STUDIES):
        trials = [a_round(rng, number, size) for number in range(ROUNDS)]
        costs = round_costs(trials, (BASE, *VARIANTS, TWIN), ("w",), Metric.CPU)
        ((_, found),) = compare_workloads(costs, "v0", BASE, SuiteRule(level=LEVEL))
        covered += found.low <= np.exp(TRUTH) <= found.high
        ((_, pair),) = compare_workloads(costs, "v0", "v1", SuiteRule(level=LEVEL))
        pairs += pair.low <= np.exp(TRUTH) <= pair.high
        d = costs.log_ratios("v0", BASE)[0]
        means.append(d.mean())
        spread.append(d.std(ddof=1))
    assert np.mean(means) == pytest.approx(TRUTH, abs=4 * 0.01 / np.sqrt(STUDIES * ROUNDS / 2))
    # One and a half variances of a variant, in whatever group it raced; no race's own speed.
    assert np.sqrt(np.mean(np.square(spread))) == pytest.approx(0.01 * np.sqrt(1.5), rel=0.05)
    assert 0.92 < covered / STUDIES < 0.98
    assert 0.92 < pairs / STUDIES < 0.98
