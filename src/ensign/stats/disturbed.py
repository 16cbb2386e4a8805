"""Time that others took: what the variants wanted of the CPUs and did not get, and what it did.

A variant that wants a CPU while others have it waits; the meter reads for how long, slice by slice.
CPU time does not count that, wall time does, and both are noisier for it: caches are cold after.
"""

from __future__ import annotations

from statistics import stdev
from typing import TYPE_CHECKING

from ensign.model.finding_kinds.judgment import CPU_TAKEN
from ensign.model.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensign.model.trials import Trial, VariantTotals

import math

import numpy as np

from ensign.model.finding_kinds.judgment import NOISIEST_WORKLOAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensign.stats.rounds import RoundCosts


_FEWEST_WORKLOADS = 5
_FEWEST_ROUNDS = 3
_TOO_MUCH = 0.5


def noisiest_findings(
    costs: RoundCosts, variants: Sequence[str], baseline: str
) -> tuple[Finding, ...]:
    """A warning where a workload has more than half of the variance, pooled over the `variants`."""
    number = len(costs.workloads)
    if number < _FEWEST_WORKLOADS or len(costs.rounds) < _FEWEST_ROUNDS or not variants:
        return ()
    d = np.stack([costs.log_ratios(variant, baseline) for variant in variants])
    variances = d.var(axis=-1, ddof=1).mean(axis=0)
    total = float(variances.sum())
    worst = int(variances.argmax())
    share = float(variances[worst]) / total if total else 0.0
    if share <= _TOO_MUCH:
        return ()
    deviation, narrower = math.sqrt(variances[worst]), math.sqrt(1 - share) * number / (number - 1)
    text = (
        f"its log ratios vary by {deviation * 100:.1f} % from round to round, which is "
        f"{share * 100:.0f} % of the variance of all {number} workloads' geometric means: "
        f"without it their intervals would be {narrower:.2f} times as wide"
    )
    return (NOISIEST_WORKLOAD.found(text, costs.workloads[worst]),)


_MUCH = 0.05
_FEWEST_OF_HALF = 4


def taken_share(totals: Sequence[VariantTotals]) -> float | None:
    """Share of the wall time of these in which others had the CPU; None where it was not read."""
    read = [one for one in totals if one.cpu_wait_ns is not None]
    wall = sum(one.wall_ns for one in read)
    return sum(one.cpu_wait_ns or 0 for one in read) / wall if wall else None


def taken_findings(
    trials: Sequence[Trial], log_ratios: Sequence[float] = ()
) -> tuple[Finding, ...]:
    """`cpu-taken`, where others had much of the time; `log_ratios` are one pair's, by trial."""
    share = taken_share([one for trial in trials for one in trial.variants])
    if share is None or share < _MUCH:
        return ()
    text = (
        f"other processes used the CPU for {share * 100:.0f} % of the race: "
        "wall times contain that, CPU times do not"
    )
    return (CPU_TAKEN.found(f"{text}{_effect(trials, log_ratios)}"),)


def _effect(trials: Sequence[Trial], log_ratios: Sequence[float]) -> str:
    """Ratio of the variance of the more disturbed half of the executions to that of the other."""
    half = len(log_ratios) // 2
    if half < _FEWEST_OF_HALF or len(log_ratios) != len(trials):
        return ""
    order = sorted(range(len(trials)), key=lambda index: taken_share(trials[index].variants) or 0.0)
    quiet, loud = ([log_ratios[index] for index in part] for part in (order[:half], order[-half:]))
    return (
        f"; ratios of the half with the least of it vary by {stdev(quiet) * 100:.2f} %, of the "
        f"other half by {stdev(loud) * 100:.2f} %"
    )
