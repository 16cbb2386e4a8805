"""Builders of trials and of sweeps, so that tests say only what matters to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ensign.model.trials import ArmTotals, Metric, Mode, SliceRecord, Trial
from ensign.stats.sweeps import SweepCosts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def arm_totals(arm: str, cpu_ns: int, wall_ns: int, operations: int = 1) -> ArmTotals:
    return ArmTotals(
        arm=arm,
        wall_ns=wall_ns,
        cpu_ns=cpu_ns,
        user_ns=cpu_ns * 3 // 4,
        system_ns=cpu_ns - cpu_ns * 3 // 4,
        load_cpu_ns=0,
        operations=operations,
        peak_memory_bytes=1 << 20,
        voluntary_switches=0,
        involuntary_switches=0,
        slices=10,
    )


def build_trial(
    arms: Mapping[str, tuple[int, int, int]],
    workload: str = "set",
    sweep: int = 0,
    slices: tuple[SliceRecord, ...] = (),
) -> Trial:
    """`arms` maps a name to CPU nanoseconds, wall nanoseconds and operations."""
    return Trial(
        workload=workload,
        sweep=sweep,
        seed=1,
        mode=Mode.GATED,
        freezer="cgroup",
        slice_ns=5_000_000,
        started_unix_s=0.0,
        wall_ns=10**9,
        running_share=0.98,
        arms=tuple(arm_totals(name, *values) for name, values in arms.items()),
        slices=slices,
    )


def build_costs(d: np.ndarray, workloads: tuple[str, ...] | None = None) -> SweepCosts:
    """Sweeps in which `arm` differs from `baseline` by d[workload, sweep]."""
    count, sweeps = d.shape
    baseline = np.linspace(5, 9, count * sweeps).reshape(d.shape)
    return SweepCosts(
        metric=Metric.CPU,
        arms=("baseline", "arm"),
        workloads=workloads or tuple(f"w{i}" for i in range(count)),
        sweeps=tuple(range(sweeps)),
        left_out=(),
        y=np.stack([baseline, baseline + d]),
    )


@pytest.fixture
def make_trial() -> Callable[..., Trial]:
    return build_trial


@pytest.fixture
def make_costs() -> Callable[..., SweepCosts]:
    return build_costs
