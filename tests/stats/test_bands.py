from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ensign.stats.bands import Band, band_counts, band_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ensign.stats.sweeps import SweepCosts


@pytest.mark.parametrize(
    ("speedup", "band"),
    [
        (-0.02, Band.WORSE),
        (-0.01, Band.ABOUT_EQUAL),
        (0.01, Band.ABOUT_EQUAL),
        (0.011, Band.UP_TO_5),
        (0.05, Band.UP_TO_5),
        (0.07, Band.UP_TO_10),
        (0.15, Band.UP_TO_20),
        (0.21, Band.MORE),
    ],
)
def test_bands(speedup: float, band: Band) -> None:
    assert band_of(speedup) is band


def test_the_width_of_about_equal_can_be_the_margin() -> None:
    assert band_of(0.015, about_equal=0.02) is Band.ABOUT_EQUAL


def test_minimum_and_mean_are_both_counted(make_costs: Callable[..., SweepCosts]) -> None:
    speedups = np.array([[0.12, 0.12, 0.04], [0.0, 0.005, -0.03], [0.3, 0.25, 0.22]])
    minimum, mean = band_counts(make_costs(-np.log1p(speedups)), "arm", "baseline")
    assert (minimum.by, mean.by) == ("minimum", "mean")
    assert dict(minimum.counts) == dict.fromkeys(Band, 0) | {
        Band.UP_TO_5: 1,
        Band.WORSE: 1,
        Band.MORE: 1,
    }
    assert dict(mean.counts) == dict.fromkeys(Band, 0) | {
        Band.UP_TO_10: 1,
        Band.ABOUT_EQUAL: 1,
        Band.MORE: 1,
    }
    assert [band for band, _ in mean.counts] == list(Band)


def test_without_sweeps_there_is_nothing_to_count(make_costs: Callable[..., SweepCosts]) -> None:
    for counts in band_counts(make_costs(np.empty((2, 0))), "arm", "baseline"):
        assert sum(count for _, count in counts.counts) == 0
