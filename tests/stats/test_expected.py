import numpy as np
import pytest

from ensign.stats.expected import expected_precision, sweeps_for


def twins(seed: int, sds: list[float]) -> dict[str, list[float]]:
    rng = np.random.default_rng(seed)
    return {f"w{i}": list(rng.normal(0, sd, 3)) for i, sd in enumerate(sds)}


def reached(rng: np.random.Generator, sds: list[float], sweeps: int) -> tuple[float, float]:
    d = rng.normal(0, np.array(sds)[:, None], (len(sds), sweeps))
    half = expected_precision({"all": [1.0]}, sweeps, 0.95).suite  # t(n - 1)/√n
    return half * d.mean(axis=0).std(ddof=1), half * np.median(d.std(axis=1, ddof=1))


def test_what_is_expected_is_on_average_what_is_reached() -> None:
    # Half of the workloads three times as noisy as the others.
    rng = np.random.default_rng(1)
    sds = [0.005, 0.015] * 20
    told = [expected_precision(twins(seed, sds), 12, 0.95) for seed in range(400)]
    came = [reached(rng, sds, 12) for _ in range(400)]
    suite = np.mean([each.suite for each in told]) / np.mean([each[0] for each in came])
    assert suite == pytest.approx(1, abs=0.06)
    # The median over unequal workloads is drawn towards their mean by pooling.
    workload = np.mean([each.workload for each in told]) / np.mean([each[1] for each in came])
    assert 0.9 < workload < 1.3


def test_enough_sweeps_are_planned_for_what_is_asked() -> None:
    rng = np.random.default_rng(2)
    sds = [0.01] * 25
    met = []
    for seed in range(300):
        sweeps = sweeps_for(twins(seed, sds), 0.0015, 40, 0.95)
        assert 5 <= sweeps < 20
        met.append(reached(rng, sds, sweeps)[0] <= 0.0015)
    assert np.mean(met) > 0.85


def test_no_more_sweeps_than_allowed_are_planned() -> None:
    assert sweeps_for({"a": [0.1, -0.1, 0.1]}, 0.001, 16, 0.95) == 16
