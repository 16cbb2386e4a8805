"""Builders of trials and of rounds, so that tests say only what matters to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from ensign.model.trials import Metric, Mode, SliceRecord, Trial, VariantTotals
from ensign.stats.rounds import RoundCosts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def variant_totals(variant: str, cpu_ns: int, wall_ns: int, operations: int = 1) -> VariantTotals:
    return VariantTotals(
        variant=variant,
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
    variants: Mapping[str, tuple[int, int, int]],
    workload: str = "set",
    round_index: int = 0,
    slices: tuple[SliceRecord, ...] = (),
) -> Trial:
    """`variants` maps a name to CPU nanoseconds, wall nanoseconds and operations."""
    return Trial(
        workload=workload,
        round_index=round_index,
        seed=1,
        mode=Mode.INTERLEAVED,
        freezer="cgroup",
        slice_ns=5_000_000,
        started_unix_s=0.0,
        wall_ns=10**9,
        running_share=0.98,
        variants=tuple(variant_totals(name, *values) for name, values in variants.items()),
        slices=slices,
    )


def build_costs(d: np.ndarray, workloads: tuple[str, ...] | None = None) -> RoundCosts:
    """Rounds in which `variant` differs from `baseline` by d[workload, round]."""
    count, rounds = d.shape
    baseline = np.linspace(5, 9, count * rounds).reshape(d.shape)
    return RoundCosts(
        metric=Metric.CPU,
        variants=("baseline", "variant"),
        workloads=workloads or tuple(f"w{i}" for i in range(count)),
        rounds=tuple(range(rounds)),
        left_out=(),
        y=np.stack([baseline, baseline + d]),
    )


@pytest.fixture
def make_trial() -> Callable[..., Trial]:
    return build_trial


@pytest.fixture
def make_costs() -> Callable[..., RoundCosts]:
    return build_costs
