from __future__ import annotations

from itertools import pairwise

import pytest

from ensign.report.bands import band_counts, bands


def ratio(speedup: float) -> float:
    return 1 / (1 + speedup)


def test_the_edges_are_those_of_the_redis_study() -> None:
    assert [band.label for band in bands()] == [
        "worse than −1 %", "within 1 %", "+1 to +5 %", "+5 to +10 %", "+10 to +20 %", "above +20 %",
    ]  # fmt: skip


def test_each_workload_falls_into_one_band() -> None:
    speedups = (-0.3, -0.011, -0.009, 0.0, 0.009, 0.011, 0.049, 0.051, 0.11, 0.21, 3.0)
    assert band_counts(map(ratio, speedups), bands()) == (2, 3, 2, 1, 1, 2)


@pytest.mark.parametrize("margin", [0.005, 0.03, 0.05, 0.07, 0.3])
def test_any_margin_gives_bands_without_gaps(margin: float) -> None:
    edges = bands(margin)
    for lower, upper in pairwise(edges):
        assert lower.high == upper.low
        assert lower.low < lower.high
    assert sum(band_counts([0.5, 0.9, 0.97, 1.0, 1.03, 2.0], edges)) == 6
