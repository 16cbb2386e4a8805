"""Readings that are not what they seem: on the grid of a timer, or standing still.

A load generator that ends on a timer (some look every 250 ms) makes
running times jump by whole steps; a kernel that counts CPU time in ticks makes all of it a multiple
of one; a reading that is exactly the same again and again was not taken anew.

Times of a variant jump from execution to execution. On a grid of g, jumps of more than g/2 are near
multiples of g: the mean of cos(2π·jump/g) is near 1. For jumps without a grid it is near 0 with
standard deviation 1/√(2n) (the V test of circular statistics: Mardia and Jupp, Directional
Statistics, 2000, 6.3.1).
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from statistics import quantiles
from typing import TYPE_CHECKING

from ensign.model.finding_kinds.judgment import STALE_READING, TICK_COUNTED, TIMER_GRID
from ensign.model.findings import Finding, FindingKind
from ensign.model.units import format_duration
from ensign.stats.student import largest_share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ensign.model.trials import Trial

_MS = 1_000_000
_GRIDS_NS = tuple(ms * _MS for ms in (1000, 500, 250, 200, 100, 50))
_FEWEST_JUMPS, _FEWEST_EVENTS, _LEAST_COSINE = 8, 6, 0.8
_FEWEST_READINGS, _LEAST_TICK_NS = 6, _MS
_TICK_NS, _TICK_LEVEL = 4 * _MS, 0.99
_FEWEST_OF_VARIANT, _FEWEST_REPEATS = 4, 3
_CHANCE = 1e-4


def timer_grid_ns(durations_ns: Mapping[str, Sequence[int]]) -> int | None:
    """The largest grid on which the running times of variants jump; None where none is seen.

    `durations_ns` has the executions of each variant, in their order.
    """
    jumps = [
        (number, abs(b - a))
        for readings in durations_ns.values()
        for number, (a, b) in enumerate(pairwise(readings))
    ]
    for grid_ns in _GRIDS_NS:
        far = [(number, jump) for number, jump in jumps if jump > grid_ns / 2]
        # What disturbs one execution makes all its variants jump alike: that is one event, not
        # many.
        if len(far) < _FEWEST_JUMPS or len({number for number, _ in far}) < _FEWEST_EVENTS:
            continue
        cosine = sum(math.cos(2 * math.pi * jump / grid_ns) for _, jump in far) / len(far)
        if cosine >= _LEAST_COSINE:
            return grid_ns
    return None


def most_at_ticks(share: float, whole_ns: float) -> float:
    """Upper limit (99 %, one-sided) of a share of so much CPU time that was told at ticks.

    Most kernels see at each tick (4 ms at 250 Hz) whether a task is in its own code or in the
    kernel's, so a share is that of so many samples.
    """
    return largest_share(share, whole_ns / _TICK_NS, _TICK_LEVEL)


def most_gain(user_ns: float, cpu_ns: float, cost_ns: float) -> float:
    """Upper limit (99 %) of the speedup of a program whose own code took no time at all.

    Its cost is CPU time or wall time; infinite where that may be all of it.
    """
    if not cpu_ns or not cost_ns:
        return math.inf
    share = most_at_ticks(user_ns / cpu_ns, cpu_ns) * cpu_ns / cost_ns
    return share / (1 - share) if share < 1 else math.inf


def tick_ns(readings_ns: Sequence[int]) -> int | None:
    """The tick of which all readings are multiples, if it is a millisecond or more."""
    if len(set(readings_ns)) < _FEWEST_READINGS:
        return None
    tick = math.gcd(*readings_ns)
    return tick if tick >= _LEAST_TICK_NS else None


def repeated(readings_ns: Mapping[str, Sequence[int]]) -> int | None:
    """A reading that is there too often to be a coincidence; None where there is none.

    Readings have a resolution (their greatest common divisor; control groups count microseconds).
    Where the n of a variant are densest, about 0.54 · n · resolution / interquartile range fall on
    one value (that of a normal distribution), those of all variants at worst on the same one; how
    many there are is Poisson. Nothing is said where a variant has fewer than four, or half of them
    alike.
    """
    variants = [
        [reading for reading in readings if reading > 0] for readings in readings_ns.values()
    ]
    every = [reading for variant in variants for reading in variant]
    if not variants or min(map(len, variants)) < _FEWEST_OF_VARIANT:
        return None
    value, count = Counter(every).most_common(1)[0]
    ranges = [high - low for low, _, high in (quantiles(variant, n=4) for variant in variants)]
    if count < _FEWEST_REPEATS or min(ranges) <= 0:
        return None
    densities = (len(readings) / wide for readings, wide in zip(variants, ranges, strict=True))
    on_one_value = 0.54 * math.gcd(*every) * sum(densities)
    by_chance = len(every) * _poisson_tail(count - 1, on_one_value)
    return value if by_chance < _CHANCE else None


def _poisson_tail(least: int, mean: float) -> float:
    """P(X ≥ least)."""
    below = sum(math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(least))
    return max(0.0, 1.0 - below)


def reading_findings(trials: Sequence[Trial]) -> tuple[Finding, ...]:
    """Problems with the readings of each workload, one finding per workload and kind."""
    of_workload: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=lambda trial: trial.round_index):
        of_workload.setdefault(trial.workload, []).append(trial)
    findings: list[Finding] = []
    for workload, readings in of_workload.items():
        findings += (kind.found(text, workload) for kind, text in _doubts(readings))
    return tuple(findings)


def _doubts(trials: Sequence[Trial]) -> list[tuple[FindingKind, str]]:
    wall: dict[str, list[int]] = {}
    cpu: dict[str, list[int]] = {}
    for trial in trials:
        for totals in trial.variants:
            wall.setdefault(totals.variant, []).append(totals.wall_ns)
            cpu.setdefault(totals.variant, []).append(totals.cpu_ns)
    doubts: list[tuple[FindingKind, str]] = []
    grid = timer_grid_ns(wall)
    if grid is not None:
        text = (
            f"running times jump by steps of {format_duration(grid)}: the load generator ends on a "
            "timer, so wall times mean little"
        )
        doubts.append((TIMER_GRID, text))
    tick = tick_ns([reading for readings in cpu.values() for reading in readings])
    if tick is not None:
        text = f"all CPU times are multiples of {format_duration(tick)}: they are counted in ticks"
        doubts.append((TICK_COUNTED, text))
        return doubts
    value = repeated(cpu)
    if value is not None:
        text = (
            f"the CPU time of {format_duration(value)} was read again and again, to the last "
            "digit: a reading that stands still"
        )
        doubts.append((STALE_READING, text))
    return doubts
