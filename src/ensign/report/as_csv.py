"""Results as CSV: one row per comparison, cost ratios (below 1 is faster); `inf` is unbounded."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from ensign.model.comparisons import Comparison, OtherMetric
from ensign.model.quoting import visible_lines
from ensign.model.results import Result, SuiteComparison, VariantFacts
from ensign.report.confirmation import confirmed
from ensign.report.layouts import within_spread

_COMPARISON = (
    "metric", "ratio", "low", "high", "level", "direction", "size", "executions", "rule",
    "withheld", "correlation", "other_metric", "other_ratio", "other_low", "other_high",
    "other_direction", "disagrees",
)  # fmt: skip
_COLUMNS = (
    "scope", "workload", "variant", "baseline", *_COMPARISON,
    "workloads", "baseline_cost_ns", "variant_cost_ns", "user_share", "within_layout_spread",
    "non_inferior", "layout_sd", "layout_sd_low", "layout_sd_high", "fresh_low", "fresh_high",
    "user_s", "system_s", "wall_s", "wall_sd_s", "wall_min_s", "wall_max_s",
    "peak_memory_bytes", "score", "unit", "command",
)  # fmt: skip
_LAYOUTS, _FACTS = 5, 10
_POINT = ("curve", "parameter", "value")

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")
_INSIDE = {None: "", False: "false", True: "true"}

Cell = str | int | float


def render(result: Result) -> str:
    """Rows of scope `suite`, `workload`, `latency-p50` and so on, the other cost beside them.

    `failed` is a variant that failed on a workload; its row has no figures.

    The baseline has a row for each workload, in which it is compared with nothing. The twin's are
    included; the costs of latencies are the latencies themselves. What a variant used stands in
    its row of each workload, and in that of the suite where there is one workload alone. The suite
    has a variant's own standard deviation between layouts, and the cost ratio of a fresh link with
    90 %. Points of curves say which one, and at which value of its parameter.

    Those of a confirmation come first, as `confirmed-suite` and so on; then the others explored.
    """
    second = confirmed(result)
    rows = [] if second is None else _rows(second, "confirmed-")
    return _written((*_COLUMNS, *_POINT), [*rows, *_rows(result)])


def _rows(result: Result, prefix: str = "") -> list[list[Cell]]:
    rows = [_baseline(result, row, prefix) for row in result.measured]
    rows = [row for row in rows if row]
    used = {(row.variant, row.workload): row for row in result.measured}
    for compared in result.suite:
        names = [f"{prefix}suite", "", compared.comparison.variant, compared.comparison.baseline]
        inside = _INSIDE[within_spread(compared.comparison, result)]
        shown = _INSIDE[compared.non_inferior]
        counts = (compared.workloads, "", "", "", inside, shown, *_layouts(result, compared))
        facts = _facts(result, result.facts_of(compared.comparison.variant))
        rows.append([*names, *_cells(compared.comparison), *counts, *facts])
    for one in result.workloads:
        names = [f"{prefix}workload", one.workload, one.comparison.variant, one.comparison.baseline]
        costs = (one.baseline_cost_ns, one.variant_cost_ns, one.user_share)
        inside = _INSIDE[within_spread(one.comparison, result, one.workload)]
        measured = used.get((one.comparison.variant, one.workload))
        figures = (*map(_number, costs), inside, "", *[""] * _LAYOUTS, *_facts(result, measured))
        rows.append([*names, *_cells(one.comparison), "", *figures])
    for latency in result.latency:
        scope = f"{prefix}latency-{latency.percentile}"
        names = [
            scope,
            latency.workload,
            latency.comparison.variant,
            latency.comparison.baseline,
        ]
        latencies = (
            _number(latency.baseline_ns),
            _number(latency.variant_ns),
        )
        cells = (
            *_cells(latency.comparison),
            "",
            *latencies,
            "",
            "",
            "",
            *[""] * (_LAYOUTS + _FACTS),
        )
        rows.append([*names, *cells])
    for failure in result.failures:
        columns = {
            "scope": f"{prefix}failed",
            "workload": failure.workload,
            "variant": failure.variant,
            "baseline": result.baseline,
            "direction": "failed",
            "command": dict(result.commands).get(failure.variant, ""),
        }
        rows.append([columns.get(column, "") for column in _COLUMNS])
    points: dict[Cell, tuple[Cell, ...]] = {
        workload: (curve_set.name, curve_set.parameter, _number(value))
        for curve_set in result.curves
        for workload, value in zip(curve_set.workloads, curve_set.values, strict=True)
    }
    return [[*row, *points.get(row[1], ("",) * len(_POINT))] for row in rows]


def _baseline(result: Result, measured: VariantFacts, prefix: str) -> list[Cell]:
    """The row of the baseline on one workload; nothing for other variants."""
    if measured.variant != result.baseline:
        return []
    row = {
        "scope": f"{prefix}workload",
        "workload": measured.workload,
        "variant": result.baseline,
        "metric": result.metric.value,
        "direction": "baseline",
        "executions": result.rounds_done,
        "baseline_cost_ns": _number(measured.cost_ns),
    }
    head = [row.get(column, "") for column in _COLUMNS[:-_FACTS]]
    return [*head, *_facts(result, measured)]


def _facts(result: Result, measured: VariantFacts | None) -> list[Cell]:
    if measured is None:
        return [""] * _FACTS
    wall = measured.wall
    times = (measured.user_s, measured.system_s, wall.mean, wall.sd, wall.least, wall.greatest)
    command = dict(result.commands).get(measured.variant, "")
    score: Cell = "" if measured.score is None else _number(measured.score)
    return [*map(_number, times), measured.peak_memory_bytes, score, measured.unit, command]


def _layouts(result: Result, compared: SuiteComparison) -> list[Cell]:
    """The variant's own spread, and its prediction, where relinks were raced in turn."""
    layouts = None if result.layouts is None else result.layouts.of(compared.comparison.variant)
    if layouts is None:
        return [""] * _LAYOUTS
    values = (layouts.sd, layouts.low, layouts.high, layouts.fresh_low, layouts.fresh_high)
    return ["" if value is None else _number(value) for value in values]


def _cells(compared: Comparison) -> list[Cell]:
    return [
        compared.metric.value,
        _number(compared.ratio),
        _number(compared.low),
        _number(compared.high),
        _number(compared.level),
        compared.direction.value,
        "" if compared.size is None else compared.size.value,
        compared.executions,
        compared.rule,
        compared.withheld,
        "" if compared.correlation is None else _number(compared.correlation),
        *_other(compared.beside),
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
    writer.writerows([_as_text(cell) for cell in row] for row in rows)
    return buffer.getvalue()


def _as_text(cell: Cell) -> Cell:
    """A text that a spreadsheet would take for a formula gets a mark before it; no number does."""
    if not isinstance(cell, str):
        return cell
    text = visible_lines(cell)
    if not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text
