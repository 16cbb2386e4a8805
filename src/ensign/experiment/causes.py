"""Answers to questions after causes: shares of a difference, from a race's costs. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensign.model.comparisons import Direction
from ensign.model.finding_kinds.ran import OUTPUTS_DIFFER
from ensign.model.results import Causes, CauseShare, Result
from ensign.model.study_explain import Explain
from ensign.model.trials import TWIN
from ensign.stats.cause_shares import Effect, cause_shares, depends, part_effect
from ensign.stats.rounds import RoundCosts, round_costs


def cause_tables(
    explain: Explain | None, raced: Mapping[str, str], costs: RoundCosts, level: float
) -> tuple[Causes, ...]:
    """Shares of the difference that is to be explained: of each workload, and of all.

    `raced` has the variant that was raced for another one, being the same program.
    """
    if explain is None:
        return ()
    cells = _Cells(costs, raced)
    several = len(costs.workloads) > 1
    rows = [(name, [index]) for index, name in enumerate(costs.workloads)]
    every = ("", list(range(len(costs.workloads))))
    return tuple(_tables(explain, cells, [*rows, *([every] if several else [])], level))


def with_causes(result: Result, explain: Explain) -> Result:
    """A result of commands with what a difference comes from; functions of both ends alone.

    What lies between two ends that print the same, and prints something else, proves nothing.
    """
    unlike = {finding.subject for finding in result.findings if finding.is_a(OUTPUTS_DIFFER)}
    left_out = set() if explain.variant in unlike else unlike
    compared = (row.comparison.variant for row in result.suite)
    raced = [name for name in compared if name != TWIN and name not in left_out]
    variants = (result.baseline, *raced, *([TWIN] if result.twin else []))
    costs = round_costs(result.trials, variants, result.workload_names, result.metric)
    functions = tuple(
        function_costs
        for function_costs in result.functions
        if function_costs.variant == explain.variant
    )
    causes = cause_tables(explain, {}, costs, result.level)
    return replace(result, causes=as_judged(causes, result), functions=functions)


def as_judged(tables: Sequence[Causes], result: Result) -> tuple[Causes, ...]:
    """Tables of causes; where the race shows no difference there are none to tell.

    Its own rule decides that, which is stricter than a test of one cause where looks are many.
    """
    judged = {(row.workload, row.comparison.variant): row.comparison for row in result.workloads}
    overall = {row.variant: row for row in result.comparisons}
    causes = []
    for table in tables:
        row = judged.get((table.workload, table.variant), overall.get(table.variant))
        if row is None or row.direction is not Direction.UNCLEAR:
            causes.append(table)
            continue
        total = replace(table.total, proven=False)
        if math.isfinite(row.high):
            total = replace(total, effect=row.ratio - 1, low=row.low - 1, high=row.high - 1)
        parts = tuple(replace(part, proven=False, depends=False) for part in table.parts)
        causes.append(replace(table, total=total, parts=parts, different=False))
    return tuple(causes)


_Logs = np.ndarray[Any, Any]
_NEITHER = "nothing between both ends tells it: it could not be raced, or does something else"


@dataclass(frozen=True, slots=True)
class _Cells:
    costs: RoundCosts
    raced: Mapping[str, str]

    def of(self, variant: str, rows: Sequence[int]) -> _Logs | None:
        """Log costs by column over the baseline's, of the mean of some workloads."""
        name = self.raced.get(variant, variant)
        if name not in self.costs.variants:
            return None
        d = self.costs.log_ratios(name, self.costs.variants[0])
        return np.asarray(d[list(rows)].mean(axis=0))


def _tables(
    explain: Explain, cells: _Cells, chosen: Sequence[tuple[str, list[int]]], level: float
) -> Iterator[Causes]:
    for workload, rows in chosen:
        whole = cells.of(explain.variant, rows)
        if whole is None:
            continue
        start = cells.of(explain.start, rows) if explain.start else np.zeros_like(whole)
        ends = (np.zeros_like(whole) if start is None else start, whole)
        from_one_end = start is None or explain.only_removed
        toggled = {
            cause.name: (
                None if from_one_end else cells.of(cause.added, rows) if cause.added else whole,
                cells.of(cause.removed, rows) if cause.removed else ends[0],
            )
            for cause in explain.causes
        }
        found = {name: part_effect(ends, *pair) for name, pair in toggled.items()}
        known = {name: effect for name, effect in found.items() if effect is not None}
        shares = cause_shares(whole, list(known.values()), level)
        if shares is None:
            continue
        different = shares.total.p <= 1 - level
        effects = dict(zip(known, shares.parts, strict=True))
        dependent = depends(ends, list(toggled.values()), level)
        parts = tuple(
            replace(
                _share(name, effects[name], proven=different and effects[name].p <= 1 - level),
                alone=_added(ends[0], added),
                last=_added(removed, whole),
                depends=different and depending,
            )
            if name in effects
            else CauseShare(name, unknown=_NEITHER)
            for (name, (added, removed)), depending in zip(toggled.items(), dependent, strict=True)
        )
        ordered = tuple(sorted(parts, key=lambda part: -abs(part.effect)))
        yield Causes(
            explain.variant,
            workload,
            explain.by,
            level,
            _share("", shares.total, proven=different),
            ordered,
            _share("", shares.rest, proven=False),
            different,
        )


def _added(before: _Logs | None, after: _Logs | None) -> float:
    """Change from one end of a toggle to the other; 0 where an end is missing."""
    return 0.0 if before is None or after is None else math.expm1(float((after - before).mean()))


def _share(name: str, effect: Effect, *, proven: bool) -> CauseShare:
    mean, low, high = map(math.expm1, (effect.mean, effect.low, effect.high))
    shares = (effect.share, effect.share_low, effect.share_high)
    return CauseShare(name, mean, low, high, *shares, proven=proven)
