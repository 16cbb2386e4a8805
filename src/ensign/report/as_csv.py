"""Results as CSV: one row per comparison, cost ratios (below 1 is faster); `inf` is unbounded."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from ensign.model.comparisons import Beside, Comparison
from ensign.model.results import CompareResult, StudyResult
from ensign.report.confirmation import confirmed
from ensign.report.layouts import within_band

_COMPARISON = (
    "metric", "ratio", "low", "high", "level", "direction", "size", "executions", "rule",
    "withheld", "correlation", "other_metric", "other_ratio", "other_low", "other_high",
    "other_direction", "disagrees",
)  # fmt: skip
_STUDY = (
    "scope", "workload", "variant", "baseline", *_COMPARISON,
    "workloads", "baseline_cost_ns", "variant_cost_ns", "user_share", "within_layout_band",
    "no_slower",
)  # fmt: skip
_COMPARE = (
    "arm", "baseline", "is_twin", *_COMPARISON,
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
        names = [f"{prefix}suite", "", entry.comparison.arm, entry.comparison.baseline]
        inside = _INSIDE[within_band(entry.comparison, result)]
        shown = _INSIDE[entry.no_slower]
        counts = (entry.workloads, "", "", "", inside, shown)
        rows.append([*names, *_cells(entry.comparison), *counts])
    for one in result.workloads:
        names = [f"{prefix}workload", one.workload, one.comparison.arm, one.comparison.baseline]
        costs = (one.baseline_cost_ns, one.arm_cost_ns, one.user_share)
        inside = _INSIDE[within_band(one.comparison, result, one.workload)]
        rows.append([*names, *_cells(one.comparison), "", *map(_number, costs), inside, ""])
    for each in result.latency:
        scope = f"{prefix}latency-{each.percentile}"
        names = [scope, each.workload, each.comparison.arm, each.comparison.baseline]
        latencies = (_number(each.baseline_ns), _number(each.arm_ns))
        rows.append([*names, *_cells(each.comparison), "", *latencies, "", "", ""])
    for failure in result.failures:
        said = {
            "scope": f"{prefix}failed",
            "workload": failure.workload,
            "variant": failure.arm,
            "baseline": result.baseline,
            "direction": "failed",
        }
        rows.append([said.get(column, "") for column in _STUDY])
    return rows


def compare(result: CompareResult) -> str:
    """One row per comparison, the twin's last, with the arm's own means.

    What failed has a row without figures, its direction is `failed`.
    """
    entries = [(entry, False) for entry in result.comparisons]
    if result.aa is not None:
        entries.append((result.aa, True))
    arms = {arm.name: arm for arm in result.arms}
    rows: list[list[Cell]] = []
    for entry, is_twin in entries:
        arm = result.twin if is_twin else arms.get(entry.arm)
        facts: list[Cell] = [""] * 6
        if arm is not None:
            times = map(_number, (arm.user_s, arm.system_s, arm.wall_s))
            facts = [*times, arm.peak_memory_bytes, _number(arm.cost_ns), arm.command]
        names = [entry.arm, entry.baseline, "true" if is_twin else "false"]
        rows.append([*names, *_cells(entry), *facts])
    for failed in result.failed:
        said = {
            "arm": failed.name,
            "baseline": result.arms[0].name,
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


def _other(beside: Beside | None) -> list[Cell]:
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
