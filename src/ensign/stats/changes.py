"""Changes between two studies: ratios of ratios, over all workloads and for each.

Welch (Biometrika 34, 1947): (mean b - mean a) ± t · √(s_a²/n_a + s_b²/n_b), with the degrees of
freedom of Satterthwaite (Biometrics Bulletin 2, 1946). For the log ratios of two studies it gives
the ratio of ratios, whatever their numbers of rounds and their noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ensign.model.comparisons import Comparison
from ensign.model.results import SignificantWorkloads
from ensign.stats.holm import holm_adjusted
from ensign.stats.pair import LogInterval, PairNames, compared_by, exp
from ensign.stats.suite import round_geomeans

if TYPE_CHECKING:
    from ensign.stats.rounds import RoundCosts

import numpy as np
from numpy.typing import NDArray

from ensign.model.findings import Finding
from ensign.stats.student import two_sided_criticals, two_sided_p


@dataclass(frozen=True, slots=True)
class StudySide:
    """One of the two: `label` is how the user called it, `rounds` counts whole ones."""

    label: str
    name: str
    made_at: str
    version: str
    rounds: int


@dataclass(frozen=True, slots=True)
class Differing:
    """A fact of the machine or a setting that is not the same; empty where a side has none."""

    name: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class BuildPair:
    """Hashes of the loadable bytes of one variant on both sides."""

    variant: str
    a: str
    b: str

    @property
    def same(self) -> bool:
        """True if both are known and equal."""
        return bool(self.a) and self.a == self.b


@dataclass(frozen=True, slots=True)
class RatioChange:
    """Change of a variant's cost ratio from A to B; `workload` is empty for all of them.

    `comparison` is about the ratio of ratios: above 1 the variant is relatively slower in B.
    """

    workload: str
    comparison: Comparison
    ratio_a: float
    ratio_b: float


@dataclass(frozen=True, slots=True)
class StudyDifference:
    """Everything that `ensign diff-studies` may show; what is of one side alone is named.

    `machine` and `settings` have what differs. `suite` and `workloads` have the twin's rows, too,
    whose truth is no change. `significant` lists workloads that moved, one error rate for each
    variant.
    """

    a: StudySide
    b: StudySide
    baseline: str
    twin: str
    level: float
    margin: float | None
    builds: tuple[BuildPair, ...]
    machine: tuple[Differing, ...]
    settings: tuple[Differing, ...]
    suite: tuple[RatioChange, ...]
    workloads: tuple[RatioChange, ...]
    significant: tuple[SignificantWorkloads, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    findings: tuple[Finding, ...]


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChangeRule:
    """Rule for changes: level of each interval, margin as a share of the cost, or None."""

    level: float = 0.95
    margin: float | None = None


@dataclass(frozen=True, slots=True)
class VariantChanges:
    """One variant: its geometric mean, each workload, and those that moved significantly."""

    suite: RatioChange
    workloads: tuple[RatioChange, ...]
    significant: SignificantWorkloads


def variant_changes(
    a: RoundCosts, b: RoundCosts, variant: str, baseline: str, rule: ChangeRule
) -> VariantChanges:
    """Change of a variant's cost ratio from study `a` to study `b`, which share no round.

    Both have the same workloads in the same order. A ratio of ratios above 1: the variant is
    relatively slower in `b`. InputError where a variant took no part.
    """
    names = PairNames(variant, baseline, a.metric)
    d_a, d_b = a.log_ratios(variant, baseline), b.log_ratios(variant, baseline)
    g_a, g_b = round_geomeans(d_a), round_geomeans(d_b)
    ((suite, _),) = _changes(names, ("",), (g_a[None], g_b[None]), rule)
    changes = _changes(names, a.workloads, (d_a, d_b), rule)
    adjusted = holm_adjusted([p for _, p in changes])
    moved = [
        change for (change, _), p in zip(changes, adjusted, strict=True) if p <= 1 - rule.level
    ]
    significant = SignificantWorkloads(
        variant,
        slower=tuple(change.workload for change in moved if change.comparison.ratio > 1),
        faster=tuple(change.workload for change in moved if change.comparison.ratio < 1),
    )
    return VariantChanges(suite, tuple(change for change, _ in changes), significant)


def _changes(
    names: PairNames, workloads: tuple[str, ...], d: tuple[Floats, Floats], rule: ChangeRule
) -> list[tuple[RatioChange, float]]:
    """A change and its p value for each row of both sides."""
    differences = welch(*d, rule.level)
    rows = zip(
        workloads,
        differences.mean.tolist(),
        differences.half_width.tolist(),
        differences.p.tolist(),
        *(ratios.mean(axis=-1).tolist() for ratios in d),
        strict=True,
    )
    executions = d[0].shape[-1] + d[1].shape[-1]
    changes = []
    for workload, mean, half, p, mean_a, mean_b in rows:
        interval = LogInterval(mean, mean - half, mean + half)
        comparison = compared_by(names, interval, (rule.level, rule.margin), executions, "welch")
        changes.append((RatioChange(workload, comparison, exp(mean_a), exp(mean_b)), p))
    return changes


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """Per row: mean of b minus mean of a, half-width of its interval, two-sided p of no change."""

    mean: Floats
    half_width: Floats
    p: Floats


def welch(a: Floats, b: Floats, level: float) -> Differences:
    """Differences over the last axis, whose lengths may differ; at least one value in each.

    With a single value on a side the interval is infinite and p is 1. Where neither side has any
    spread the interval is the point itself, and p is 0, or 1 where nothing changed.
    """
    mean = np.asarray(b.mean(axis=-1) - a.mean(axis=-1))
    n_a, n_b = a.shape[-1], b.shape[-1]
    if min(n_a, n_b) < 2:  # noqa: PLR2004 - one value has no spread
        return Differences(mean, np.full_like(mean, np.inf), np.ones_like(mean))
    v_a, v_b = a.var(axis=-1, ddof=1) / n_a, b.var(axis=-1, ddof=1) / n_b
    variance = np.asarray(v_a + v_b)
    parts = v_a**2 / (n_a - 1) + v_b**2 / (n_b - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.where(parts > 0, variance**2 / parts, np.inf)
        t = np.where(mean == 0, 0.0, mean / np.sqrt(variance))
    half = two_sided_criticals(level, degrees) * np.sqrt(variance)
    return Differences(mean, np.asarray(half), two_sided_p(t, degrees))
