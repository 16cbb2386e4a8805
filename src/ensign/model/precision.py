"""How narrow a study's intervals are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Precision:
    """Half-widths of intervals of log ratios (0.01 is about 1 %).

    `suite` is that of a geometric mean over all workloads, `workload` the median over workloads.
    """

    suite: float
    workload: float
