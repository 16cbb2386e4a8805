"""Curves over a parameter of a workload: what is asked for, and what came of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ensign.model.trials import Better


@dataclass(frozen=True, slots=True)
class AskedCurve:
    """Workloads that make one curve, by rising `values` of a parameter."""

    curve: str
    parameter: str
    unit: str
    values: tuple[float, ...]
    workloads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Nanoseconds per operation, or a score; `low` to `high` is its distance from the baseline's.

    The interval is that of the ratio to the baseline, times the baseline's mean: what all variants
    share, such as a slow hour of the machine, is not in it.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One variant over all values; `compiler` is the choice of it."""

    variant: str
    compiler: str
    points: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True)
class Extremes:
    """Variants of one compiler that may be the best over the whole curve, or the worst.

    Each list has the true one with the level of the set; the one that measured best, or worst,
    stands first.
    """

    compiler: str
    best: tuple[str, ...]
    worst: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Crossover:
    """Least value from which on no two variants differ by more than the margin.

    `value` is by the means, None where they differ at the greatest one, too. The true one lies from
    `low` to `high` with the level of the set; `low` is None where a difference is shown at the
    greatest value, `high` where equality is not shown there.
    """

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class CurveSet:
    """A parameter's curves. `name` is the curve's, with that of a score where it has several.

    `better` is None of a cost, which is in nanoseconds. `largest` has, for each value, how much
    more the worst variant costs than the best (0.05 for 5 %). Without `extremes` and `crossover`
    nothing is claimed.
    """

    name: str
    parameter: str
    unit: str
    values: tuple[float, ...]
    workloads: tuple[str, ...]
    level: float
    curves: tuple[Curve, ...]
    largest: tuple[float, ...]
    extremes: tuple[Extremes, ...] = ()
    crossover: Crossover | None = None
    score_unit: str = ""
    better: Better | None = None

    def curve_of(self, variant: str) -> Curve:
        """The curve of one of its variants."""
        return next(curve for curve in self.curves if curve.variant == variant)
