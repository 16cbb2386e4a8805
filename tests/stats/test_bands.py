from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ensign.stats.suite import band_edges, count_bands, variant_bands

if TYPE_CHECKING:
    from collections.abc import Callable

    from ensign.stats.rounds import RoundCosts

EDGES = band_edges()


@pytest.mark.parametrize(
    ("speedup", "rank"),
    [
        (-0.02, 0),
        (-0.01, 1),
        (0.01, 1),
        (0.011, 2),
        (0.05, 2),
        (0.07, 3),
        (0.15, 4),
        (0.2, 4),
        (0.21, 5),
        (3.0, 5),
    ],
)
def test_a_band_includes_its_upper_edge(speedup: float, rank: int) -> None:
    counts = count_bands([speedup], EDGES)
    assert counts.index(1) == rank
    assert len(counts) == 6


@pytest.mark.parametrize("margin", [0.005, 0.03, 0.05, 0.07, 0.3])
def test_any_width_of_about_equal_gives_bands_without_gaps(margin: float) -> None:
    edges = band_edges(margin)
    assert list(edges) == sorted(set(edges))
    speedups = [-margin, 0.0, margin]
    assert count_bands(speedups, edges)[1] == 3
    assert sum(count_bands([-0.5, -0.1, 0.03, 0.05, 0.2, 1.0], edges)) == 6


def test_minimum_and_mean_are_both_counted(make_costs: Callable[..., RoundCosts]) -> None:
    speedups = np.array([[0.12, 0.12, 0.04], [0.0, 0.005, -0.03], [0.3, 0.25, 0.22]])
    bands = variant_bands(make_costs(-np.log1p(speedups)), "variant", "baseline", EDGES)
    assert bands.variant == "variant"
    assert bands.by_mean == (0, 1, 0, 1, 0, 1)
    assert bands.by_minimum == (1, 0, 1, 0, 0, 1)


def test_without_rounds_there_is_nothing_to_count(make_costs: Callable[..., RoundCosts]) -> None:
    bands = variant_bands(make_costs(np.empty((2, 0))), "variant", "baseline", EDGES)
    assert sum(bands.by_mean) == sum(bands.by_minimum) == 0
