"""Each variant's own spread between layouts, and fresh links, against a known truth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from ensign.stats.variance_components import fresh_link, own_spread

STUDIES = 400
# Standard deviations between layouts: of the baseline and its twin, then of the variants.
SDS = (0.01, 0.01, 0.002, 0.03)


def drawn(
    relinks: int, rounds: int, share: float, sds: tuple[float, ...] = SDS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """y[study, variant, round] with drift of 5 % between rounds, and the sds of layouts in it.

    `share` is that of layouts of the baseline's variance; executions are as noisy for all.
    """
    rng = np.random.default_rng(relinks * 1000 + rounds)
    layout = np.sqrt(share) * np.array(sds)
    used = np.arange(rounds) % relinks
    places = rng.normal(0, 1, (STUDIES, len(sds), relinks)) * layout[:, None]
    y = places[..., used] + rng.normal(0, 0.05, (STUDIES, 1, rounds))
    noise = np.sqrt(1 - share) * sds[0]
    return y + rng.normal(0, 1, (STUDIES, len(sds), rounds)) * noise, layout


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("relinks", "rounds"), [(2, 6), (3, 9), (8, 16), (12, 18), (30, 60)], ids=str
)
def test_the_interval_holds_each_variants_own_standard_deviation(
    relinks: int, rounds: int, share: float
) -> None:
    y, layout = drawn(relinks, rounds, share)
    found = own_spread(y, tuple(range(rounds)), relinks, 0.95)
    assert found is not None
    assert found.executions is not None
    assert (found.low <= found.high).all()
    holds = (found.low <= layout + 1e-12) & (layout <= found.high + 1e-12)
    # 93 %, less what 400 studies leave to chance.
    assert holds.mean(axis=0).min() > 0.91


def test_where_each_relink_ran_once_executions_are_in_the_upper_end() -> None:
    y, layout = drawn(12, 12, 0.5)
    found = own_spread(y, tuple(range(12)), 12, 0.95)
    assert found is not None
    assert found.executions is None
    assert (found.low == 0).all()
    total = np.sqrt(layout**2 + 0.5 * SDS[0] ** 2)
    assert (total <= found.high).mean(axis=0).min() > 0.93


def test_a_robust_build_beside_a_fragile_baseline_is_told_by_another_robust_one() -> None:
    def high(sds: tuple[float, ...]) -> float:
        y, _ = drawn(12, 24, 0.99, sds)
        found = own_spread(y, tuple(range(24)), 12, 0.95)
        assert found is not None
        return float(np.median(found.high[:, 2]))

    assert high((0.04, 0.04, 0.01)) > 0.03
    assert high((0.04, 0.04, 0.01, 0.01)) < 0.03


def test_equal_rounds_have_no_spread() -> None:
    found = own_spread(np.zeros((3, 6)), tuple(range(6)), 3, 0.95)
    assert found is not None
    assert not found.high.any()
    assert own_spread(np.zeros((3, 4)), (0, 3, 6, 9), 3, 0.95) is None
    assert fresh_link(np.zeros(4), np.zeros(4), (0, 3, 6, 9), 3) is None


def test_relinks_deviate_from_the_mean_of_the_baselines() -> None:
    rng = np.random.default_rng(1)
    places = rng.normal(0, 0.01, (5, 6)) + np.array([0, 0, 0.1, -0.1, 0.0])[:, None]
    drift = rng.normal(0, 0.3, (1, 12))
    found = own_spread(np.tile(places, 2) + drift, tuple(range(12)), 6, 0.95)
    assert found is not None
    assert found.deviations.mean(axis=-1) == pytest.approx(
        places.mean(axis=-1) - places[:2].mean(), abs=1e-9
    )
    # Others' layouts are in what a round is thought to have done to all.
    assert found.deviations[2].std() == pytest.approx(0.01, rel=0.6)


@pytest.mark.parametrize(
    ("relinks", "rounds", "share", "least", "most"),
    [
        (6, 12, 0.0, 0.93, 1.0),
        (6, 12, 0.5, 0.86, 0.95),
        (12, 24, 0.9, 0.86, 0.94),
        (30, 30, 1.0, 0.86, 0.94),
        (2, 4, 1.0, 0.90, 1.0),
    ],
)
def test_the_true_ratio_of_a_fresh_link_to_one_of_the_baseline(
    relinks: int, rounds: int, share: float, least: float, most: float
) -> None:
    y, layout = drawn(relinks, rounds, share)
    rng = np.random.default_rng(9)
    fresh = rng.normal(0, 1, (STUDIES, 2))
    for variant in (2, 3):
        d = y[:, variant] - y[:, :2].mean(axis=1)
        truth = fresh[:, 0] * layout[variant] - fresh[:, 1] * layout[0]
        found = fresh_link(d, y[:, 1] - y[:, 0], tuple(range(rounds)), relinks)
        assert found is not None
        held = float(((found.low <= truth) & (truth <= found.high)).mean())
        assert least < held <= most, (variant, held)


def test_without_a_twin_of_its_own_a_fresh_link_is_told_by_the_baseline_alone() -> None:
    y, layout = drawn(8, 16, 0.8)
    found = fresh_link(y[:, 3] - y[:, 0], None, tuple(range(16)), 8)
    assert found is not None
    truth = np.random.default_rng(9).normal(0, np.hypot(layout[0], layout[3]), STUDIES)
    assert 0.85 < ((found.low <= truth) & (truth <= found.high)).mean() < 0.95
