"""Judging the A/A twin: the baseline raced against its own copy must show no difference.

Single exits (workloads whose interval excludes 0) are expected: one in twenty at level 0.95. A
finding needs as many as chance gives at most as often as 7 or more of 50 (1.2 % at that level, by
the binomial tail), or a geometric mean whose interval excludes 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ensign.model.comparisons import Comparison, Direction
from ensign.model.finding_kinds.judgment import TWIN_DIFFERS, TWIN_EXITS, TWIN_GEOMEAN
from ensign.model.findings import Finding
from ensign.stats.suite import SuiteRule, compare_suite, compare_workloads

if TYPE_CHECKING:
    from ensign.stats.rounds import RoundCosts

_REFERENCE_EXITS, _REFERENCE_WORKLOADS, _REFERENCE_LEVEL = 7, 50, 0.95
_FEWEST_EXITS = 2


@dataclass(frozen=True, slots=True)
class TwinJudgment:
    """Twin's geometric mean, the workloads that exited, and what it takes for a finding."""

    suite: Comparison
    exits: tuple[str, ...]
    exits_allowed: int
    findings: tuple[Finding, ...]


def binomial_tail(exits: int, workloads: int, probability: float) -> float:
    """P(at least `exits` of `workloads` exit), each with that probability, independently."""
    from scipy.special import bdtrc  # noqa: PLC0415 - slow to import

    return 1.0 if exits <= 0 else float(bdtrc(exits - 1, workloads, probability))


def exits_for_finding(workloads: int, level: float = 0.95) -> int:
    """Fewest exits (2 or more) that chance reaches as rarely as 7 of 50 at level 0.95."""
    rare = binomial_tail(_REFERENCE_EXITS, _REFERENCE_WORKLOADS, 1 - _REFERENCE_LEVEL)
    exits = _FEWEST_EXITS
    while exits <= workloads and binomial_tail(exits, workloads, 1 - level) > rare * (1 + 1e-9):
        exits += 1
    return exits


def twin_findings(comparison: Comparison) -> tuple[Finding, ...]:
    """Judge the twin of a single race: `twin-differs` where its interval excludes 1."""
    if comparison.direction is Direction.UNCLEAR:
        return ()
    text = (
        f"the identical copy of the baseline is {comparison.direction.value} "
        f"(cost ratio {comparison.low:.4f} to {comparison.high:.4f}): "
        "chance does this in fewer than one race in twenty, a disturbed set-up often"
    )
    return (TWIN_DIFFERS.found(text, comparison.variant),)


def judge_twin(
    costs: RoundCosts, twin: str, baseline: str, rule: SuiteRule | None = None
) -> TwinJudgment:
    """Judges the twin by the rule of the variants. InputError without a whole round."""
    rule = replace(rule or SuiteRule(), finalists=1, first=0)
    level = rule.level
    suite = compare_suite(costs, twin, baseline, rule).comparison
    exits = tuple(
        workload
        for workload, comparison in compare_workloads(costs, twin, baseline, rule)
        if comparison.direction is not Direction.UNCLEAR
    )
    needed = exits_for_finding(len(costs.workloads), level)
    if len(costs.workloads) == 1:
        return TwinJudgment(suite, exits, needed - 1, twin_findings(suite))
    findings = []
    if len(exits) >= needed:
        text = (
            f"the identical copy of the baseline differs on {len(exits)} of "
            f"{len(costs.workloads)} workloads ({', '.join(exits)}); chance gives {needed} or more "
            "in at most one study of 85: intervals of this study are too narrow"
        )
        findings.append(TWIN_EXITS.found(text, twin))
    if suite.direction is not Direction.UNCLEAR:
        text = (
            f"the identical copy of the baseline is {suite.direction.value} over all workloads "
            f"(cost ratio {suite.low:.4f} to {suite.high:.4f}): "
            "differences of that size in this study mean nothing"
        )
        findings.append(TWIN_GEOMEAN.found(text, twin))
    return TwinJudgment(suite, exits, needed - 1, tuple(findings))
