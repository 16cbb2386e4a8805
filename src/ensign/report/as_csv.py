"""Results as CSV: one row per comparison, cost ratios (below 1 is faster); `inf` is unbounded."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from ensign.model.comparisons import Comparison, OtherMetric
from ensign.model.results import CompareResult, StudyResult
from ensign.report.confirmation import confirmed
from ensign.report.layouts import within_spread

_COMPARISON = (
    "metric", "ratio", "low", "high", "level", "direction", "size", "executions", "rule",
    "withheld", "correlation", "other_metric", "other_ratio", "other_low", "other_high",
    "other_direction", "disagrees",
)  # fmt: skip
_STUDY = (
    "scope", "workload", "variant", "baseline", *_COMPARISON,
    "workloads", "baseline_cost_ns", "variant_cost_ns", "user_share", "within_layout_spread",
    "non_inferior",
)  # fmt: skip
_COMPARE = (
    "variant", "baseline", "is_twin", *_COMPARISON,
    "user_s", "system_s", "wall_s", "peak_memory_bytes", "cost_ns", "command",
)  # fmt: skip

_INSIDE = {None: "", False: "false", True: "true"}

Cell = str | int | float


def study(result: StudyResult) -> str:
    """Rows of scope `suite`, `workload`, `latency-p50` and so on, the other cost beside them.

    `failed` is a variant that failed on a workload; its row has no figures.

    The twin's are included; the costs of latencies are the latencies themselves.

    Those of a confirmation come first, as `confirmed-suite` and so on; then the others explored.
    """
    second = confirmed(result)
    rows = [] if second is None else _rows(second, "confirmed-")
    return _written(_STUDY, [*rows, *_rows(result)])


def _rows(result: StudyResult, prefix: str = "") -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for entry in result.suite:
        names = [f"{prefix}suite", "", entry.comparison.variant, entry.comparison.baseline]
        inside = _INSIDE[within_spread(entry.comparison, result)]
        shown = _INSIDE[entry.non_inferior]
        counts = (entry.workloads, "", "", "", inside, shown)
        rows.append([*names, *_cells(entry.comparison), *counts])
    for one in result.workloads:
        names = [f"{prefix}workload", one.workload, one.comparison.variant, one.comparison.baseline]
        costs = (one.baseline_cost_ns, one.variant_cost_ns, one.user_share)
        inside = _INSIDE[within_spread(one.comparison, result, one.workload)]
        rows.append([*names, *_cells(one.comparison), "", *map(_number, costs), inside, ""])
    for each in result.latency:
        scope = f"{prefix}latency-{each.percentile}"
        names = [scope, each.workload, each.comparison.variant, each.comparison.baseline]
        latencies = (_number(each.baseline_ns), _number(each.variant_ns))
        rows.append([*names, *_cells(each.comparison), "", *latencies, "", "", ""])
    for failure in result.failures:
        said = {
            "scope": f"{prefix}failed",
            "workload": failure.workload,
            "variant": failure.variant,
            "baseline": result.baseline,
            "direction": "failed",
        }
        rows.append([said.get(column, "") for column in _STUDY])
    return rows


def compare(result: CompareResult) -> str:
    """One row per comparison, the twin's last, with the variant's own means.

    What failed has a row without figures, its direction is `failed`.
    """
    entries = [(entry, False) for entry in result.comparisons]
    if result.aa is not None:
        entries.append((result.aa, True))
    variants = {variant.name: variant for variant in result.variants}
    rows: list[list[Cell]] = []
    for entry, is_twin in entries:
        variant = result.twin if is_twin else variants.get(entry.variant)
        facts: list[Cell] = [""] * 6
        if variant is not None:
            times = map(_number, (variant.user_s, variant.system_s, variant.wall_s))
            facts = [*times, variant.peak_memory_bytes, _number(variant.cost_ns), variant.command]
        names = [entry.variant, entry.baseline, "true" if is_twin else "false"]
        rows.append([*names, *_cells(entry), *facts])
    for failed in result.failed:
        said = {
            "variant": failed.name,
            "baseline": result.variants[0].name,
            "is_twin": "false",
            "direction": "failed",
            "command": failed.command,
        }
        rows.append([said.get(column, "") for column in _COMPARE])
    return _written(_COMPARE, rows)


def _cells(entry: Comparison) -> list[Cell]:
    return [
        entry.metric.value,
        _number(entry.ratio),
        _number(entry.low),
        _number(entry.high),
        _number(entry.level),
        entry.direction.value,
        "" if entry.size is None else entry.size.value,
        entry.executions,
        entry.rule,
        entry.withheld,
        "" if entry.correlation is None else _number(entry.correlation),
        *_other(entry.beside),
    ]


def _other(beside: OtherMetric | None) -> list[Cell]:
    if beside is None:
        return [""] * 6
    other = beside.other
    ends = (_number(other.ratio), _number(other.low), _number(other.high))
    return [other.metric.value, *ends, other.direction.value, _INSIDE[beside.disagrees]]


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"


def _written(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()
