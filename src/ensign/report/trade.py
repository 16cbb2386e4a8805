"""Speed against the size of the binary and the time of its build; what hardening costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ensign.model.builds import BuildFacts
from ensign.model.comparisons import Effect
from ensign.model.results import Result
from ensign.model.variants import DEFAULTS
from ensign.report import figures
from ensign.report.effects import EffectRow, EffectsView
from ensign.report.view import ResultView
from ensign.report.words import clean, listed, percent
from ensign.stats.winner import barred


@dataclass(frozen=True, slots=True)
class TradePoint:
    """One build; speed and its costs as shares against the baseline (0.05 for +5 %).

    `number` counts from the fastest. A cost is None where it is not known.
    """

    number: int
    label: str
    interval: str
    speedup: float
    size: str
    size_change: float | None
    time: str
    time_change: float | None
    on_size_front: bool = False
    on_time_front: bool = False

    @property
    def fronts(self) -> str:
        """Name of its front: `size`, `build time`, both, or neither."""
        names = ((self.on_size_front, "size"), (self.on_time_front, "build time"))
        return " and ".join(name for is_on, name in names if is_on)

    @property
    def size_said(self) -> str:
        """The change of size in words; empty where it is not known."""
        return "" if self.size_change is None else percent(self.size_change)

    @property
    def time_said(self) -> str:
        """As `size_said`, of the time of the build."""
        return "" if self.time_change is None else percent(self.time_change, 0)


@dataclass(frozen=True, slots=True)
class Trade:
    """All builds that were measured and that nothing speaks against, the fastest first."""

    points: tuple[TradePoint, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HardeningRow:
    """One option against the same build without it; changes of size and build time."""

    effect: EffectRow
    size: str
    time: str


def trade_view(result: Result, view: ResultView) -> Trade | None:
    """None where fewer than two builds are known by speed and size."""
    builds = {build.variant: build for build in result.builds}
    base = builds.get(result.baseline)
    measured = [(row.name, row.label, row.interval, row.span.point) for row in view.compared]
    measured.append((result.baseline, clean(result.baseline), "baseline", 0.0))
    unfit = barred(result.findings, result.builds)
    usable = [pair for pair in measured if pair[0] in builds and pair[0] not in unfit]
    if base is None or len(usable) < 2:  # noqa: PLR2004  # one point trades nothing
        return None
    usable.sort(key=lambda each: -each[3])
    points = [
        TradePoint(
            number=number,
            label=label,
            interval=interval,
            speedup=speedup,
            size=figures.size(builds[name].size_bytes),
            size_change=_change(builds[name].size_bytes, base.size_bytes),
            time=figures.seconds(builds[name].build_s),
            time_change=_change(builds[name].build_s, base.build_s),
        )
        for number, (name, label, interval, speedup) in enumerate(usable, 1)
    ]
    small = _front([(point.speedup, point.size_change) for point in points])
    quick = _front([(point.speedup, point.time_change) for point in points])
    shown = tuple(
        replace(point, on_size_front=place in small, on_time_front=place in quick)
        for place, point in enumerate(points)
    )
    return Trade(shown, tuple(_sentences(shown)))


def hardening_rows(result: Result, effects: EffectsView | None) -> tuple[HardeningRow, ...]:
    """Costs of each option of hardening, where the study varies it."""
    changes = () if effects is None else effects.changes
    unfit = barred(result.findings, result.builds)
    fit = [build for build in result.builds if build.variant not in unfit]
    return tuple(
        HardeningRow(
            view.row,
            _mean_change(effect, fit, lambda build: build.size_bytes),
            _mean_change(effect, fit, lambda build: build.build_s),
        )
        for view, effect in zip(changes, result.factorial.main, strict=True)
        if view.change.axis == "hardening"
    )


def _sentences(points: Sequence[TradePoint]) -> list[str]:
    small = tuple(point.label for point in points if point.on_size_front)
    quick = tuple(point.label for point in points if point.on_time_front)
    return [
        f"Speed against {name}: no build is both faster and {better} than "
        f"{listed(front, limit=len(front))} (the Pareto front, by estimates)."
        for name, better, front in (
            ("size", "smaller", small),
            ("build time", "quicker to build", quick),
        )
        if front
    ]


def _front(costs: Sequence[tuple[float, float | None]]) -> set[int]:
    """Places of the front of speed and a cost; those whose cost is unknown are not on it."""
    known = [
        (place, (-speedup, cost)) for place, (speedup, cost) in enumerate(costs) if cost is not None
    ]
    return {known[place][0] for place in pareto_front([cost for _, cost in known])}


def _change(value: float, base: float) -> float | None:
    return value / base - 1 if value > 0 and base > 0 else None


def _mean_change(
    effect: Effect, builds: Sequence[BuildFacts], cost: Callable[[BuildFacts], float]
) -> str:
    """Geometric mean over the pairs that differ in this change alone; empty where unknown."""
    (change,) = effect.changes
    sides: dict[str, dict[tuple[str, ...], float]] = {change.old: {}, change.new: {}}
    for build in builds:
        levels = {**DEFAULTS, **dict(build.choices)}
        value = levels.pop(change.axis)
        if value in sides and cost(build) > 0 and build.check != "failed":
            sides[value][tuple(levels.values())] = cost(build)
    old, new = sides[change.old], sides[change.new]
    ratios = [math.log(new[point] / old[point]) for point in new if point in old]
    return percent(math.expm1(math.fsum(ratios) / len(ratios))) if ratios else ""


def pareto_front(costs: Sequence[tuple[float, ...]]) -> tuple[int, ...]:
    """Places of the points that no other point beats: as good in all costs and better in one.

    Lower is better. Points that are equal in all costs do not beat each other.
    """
    return tuple(
        place
        for place, point in enumerate(costs)
        if not any(_beats(other, point) for other in costs)
    )


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
