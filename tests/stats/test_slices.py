from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ensign.model.trials import Metric, SliceRecord, Trial
from ensign.stats.slices import slice_costs_ns, within_sd, within_variance_s

if TYPE_CHECKING:
    from collections.abc import Callable


def record(arm: str, wall_ns: int, *, filler: bool = False) -> SliceRecord:
    return SliceRecord(arm, 0, wall_ns, wall_ns - 1, 0, filler)


def test_costs_of_an_arm_without_fillers(make_trial: Callable[..., Trial]) -> None:
    records = (record("a", 5), record("b", 7), record("a", 9), record("a", 8, filler=True))
    trial = make_trial({}, slices=records)
    assert slice_costs_ns(trial, "a", Metric.WALL) == (5, 9)
    assert slice_costs_ns(trial, "a", Metric.CPU) == (4, 8)


def test_spread_is_of_logs() -> None:
    assert within_sd([math.exp(1), math.exp(3)]) == pytest.approx(math.sqrt(2))
    assert within_sd([1.0]) is None
    assert within_sd([0.0, 2.0, 2.0]) == 0.0


def test_omega_predicts_the_error_of_an_execution() -> None:
    rng = np.random.default_rng(8)
    slices = 5e6 * np.exp(rng.normal(0, 0.1, (4000, 2, 50)))
    d = np.log(slices[:, 0].sum(axis=1) / slices[:, 1].sum(axis=1))
    seconds = 50 * 5e-3
    omega2 = within_variance_s(slices[0, 0].tolist(), slices[0, 1].tolist())
    all_omega2 = within_variance_s(slices[:, 0].ravel().tolist(), slices[:, 1].ravel().tolist())
    assert omega2 is not None
    assert all_omega2 is not None
    # 4000 executions give the variance of d to ± 2.2 % (one standard error).
    assert all_omega2 / seconds == pytest.approx(d.var(), rel=0.1)
    assert omega2 == pytest.approx(all_omega2, rel=0.5)


def test_omega_needs_two_slices_of_both() -> None:
    assert within_variance_s([1.0, 2.0], [1.0]) is None
