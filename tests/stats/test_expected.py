"""What is told of half-widths after a few rounds, against what comes, with known truth."""

import numpy as np
import pytest

from ensign.stats.expected import expected_precision, pilot_rounds, rounds_for
from ensign.stats.student import chi_squared_median, chi_squared_tail, two_sided_critical

Half = tuple[float, float]


def a_study(rng: np.random.Generator, shape: tuple[int, int, int], shared: float) -> np.ndarray:
    """d[variant, workload, round]: unequal workloads, and rounds that have something in common."""
    variants, workloads, rounds = shape
    own = 0.01 * np.exp(rng.normal(0, 0.5, workloads))
    y = rng.normal(size=(variants + 2, workloads, rounds)) * own[None, :, None]
    y += rng.normal(0, 0.01 * shared, (variants + 2, 1, rounds))
    d: np.ndarray = y[2:] - y[:2].mean(axis=0)
    return d


def reached(d: np.ndarray) -> Half:
    factor = two_sided_critical(0.95, d.shape[2] - 1) / np.sqrt(d.shape[2])
    suite = np.median(d.mean(axis=1).std(axis=1, ddof=1))
    return factor * suite, factor * np.median(d.std(axis=2, ddof=1))


@pytest.mark.parametrize("shared", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(3, 6, 24), (5, 16, 12), (7, 6, 24), (23, 12, 12)])
def test_what_is_told_is_within_a_fifth_of_what_is_reached_in_most_studies(
    shape: tuple[int, int, int], shared: float
) -> None:
    rng = np.random.default_rng(1)
    variants, workloads, rounds = shape
    pilots = pilot_rounds(variants, workloads, rounds)
    ratios = []
    for _ in range(150):
        d = a_study(rng, shape, shared)
        told, came = expected_precision(d[:, :, :pilots], rounds, 0.95), reached(d)
        ratios.append((told.suite / came[0], told.workload / came[1]))
    middle = np.median(ratios, axis=0)
    assert middle == pytest.approx([1, 1], abs=0.12)
    suite, workload = np.mean(np.abs(np.array(ratios) - 1) <= 0.2, axis=0)
    assert suite > 0.5
    assert workload > 0.66


def test_more_rounds_are_pilots_where_there_are_few_variants_and_workloads() -> None:
    assert pilot_rounds(23, 67, 12) == 3
    assert pilot_rounds(1, 1, 9) == 3
    assert pilot_rounds(1, 1, 60) == 20
    assert pilot_rounds(1, 1, 600) == 25


def test_enough_rounds_are_planned_for_what_is_asked_and_never_too_many() -> None:
    rng = np.random.default_rng(2)
    d = a_study(rng, (5, 16, 4), 0.0)
    needed = rounds_for(d, 0.003, 200, 0.95)
    assert expected_precision(d, needed, 0.95).suite <= 0.003
    assert needed == 5 or expected_precision(d, needed - 1, 0.95).suite > 0.003
    assert rounds_for(d, 0.00001, 16, 0.95) == 16


def test_medians_and_tails_of_chi_squared() -> None:
    assert chi_squared_median(2) == pytest.approx(2 * np.log(2))
    assert chi_squared_tail(3.0, 2) == pytest.approx(np.exp(-1.5))
