"""The measured quantity and the rule that judges it: fixed before the first round."""

from __future__ import annotations

from dataclasses import dataclass

from ensign.model.trials import Metric


@dataclass(frozen=True, slots=True)
class Precision:
    """Half-widths of intervals of log ratios (0.01 is about 1 %).

    `suite` is that of a geometric mean over all workloads, `workload` the median over workloads.
    """

    suite: float
    workload: float


@dataclass(frozen=True, slots=True)
class Experiment:
    """Variants on workloads, in rounds.

    `workloads` are names in order. `level` is that of intervals; differences below `margin` (a
    share, 0.01 for 1 %) do not matter, None for no statement of size. `precision` is the half-width
    that suffices (a share; None: not asked for). `sequential`: it is looked at while it is raced,
    and may end at a look; else it is judged once, at its end. `by_ranks`: what a few executions
    decide is not claimed. `budget_ns` is the time asked for, None without one. `time_unit` is that
    of tables, empty for the one that fits.
    """

    name: str
    title: str
    question: str
    workloads: tuple[str, ...]
    metric: Metric
    level: float
    margin: float | None
    precision: float | None = None
    sequential: bool = False
    by_ranks: bool = False
    slice_ns: int = 5_000_000
    seed: int = 0
    budget_ns: int | None = None
    score_unit: str = ""
    time_unit: str = ""
