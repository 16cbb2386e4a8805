"""Where a difference lies, in words and rows: CPU time by function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ensign.model.comparisons import Direction
from ensign.model.results import FunctionCost, FunctionCosts, Result
from ensign.model.trials import Metric
from ensign.model.units import pluralize
from ensign.report import figures
from ensign.report.view import Row
from ensign.report.words import Span, clean, percent, plain_share, signed

HEADING = "Where the difference lies"
COLUMNS = ("function", "before", "after", "adds", "interval")
BY_SYMBOL, BY_SOURCE, BY_LINE = "as linked", "as written, inlined or not", "by source line"
READ = (
    "Each row adds so much of the baseline's whole CPU time; all rows add up to the difference. "
    "What each function is charged with is its share of the places where the program stood when "
    "it was stopped."
)
_MOST, _MOST_BRIEF = 40, 8
_NOTEWORTHY = 0.002
_FEW = 3
_FEWEST_FAULTS, _OTHER_FAULTS = 50, 0.1
_COARSE, _FINE = 10, 0.1  # half widths of intervals in percent


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A function, or all others together, in words; `row` is for charts.

    `facts` say what it is called in both, and how its code differs.
    """

    name: str
    facts: tuple[str, ...]
    cells: tuple[str, ...]
    row: Row


@dataclass(frozen=True, slots=True)
class FunctionTable:
    """Functions of a variant on a workload, one way to tell them apart (`by`)."""

    by: str
    rows: tuple[FunctionRow, ...]


@dataclass(frozen=True, slots=True)
class FunctionSection:
    """What there is to say of one variant and workload: a sentence, and tables.

    The first one is the better: that is in `brief`, with fewer rows, where the whole differs, so
    that they explain something; `size` is by how much (a share).
    """

    text: str
    tables: tuple[FunctionTable, ...] = ()
    brief: tuple[FunctionTable, ...] = ()
    size: float = 0.0


def function_sections(result: Result) -> tuple[FunctionSection, ...]:
    """One for each variant and workload that was looked into."""
    return tuple(_section(costs, result) for costs in result.functions)


def _section(costs: FunctionCosts, result: Result) -> FunctionSection:
    about = f"{clean(costs.workload)}: " if len(result.workload_names) > 1 else ""
    variant, baseline = clean(costs.variant), clean(result.baseline)
    total = costs.total
    if total is None:
        text = f"Which functions {variant} differs in is not known: {clean(costs.unknown)}"
        return FunctionSection(f"{about}{text}.")
    every = (
        (BY_SOURCE, costs.by_source), (BY_SYMBOL, costs.by_symbol), (BY_LINE, costs.by_line)
    )  # fmt: skip
    ways = [(by, rows) for by, rows in every if rows]
    tables = tuple(FunctionTable(by, tuple(_rows(rows, _MOST))) for by, rows in ways)
    interval = f"{_interval(total)}, {plain_share(costs.level)}"
    if not total.excludes_zero or not _may_differ(costs, result):
        text = f"No difference in CPU time is shown between {variant} and {baseline}"
        # Samples may see one where the race, which judges more strictly, does not.
        told = "" if total.excludes_zero else f" ({interval})"
        return FunctionSection(f"{about}{text}{told}.", tables)
    more = "more" if total.difference > 0 else "less"
    amount = figures.cost(abs(total.after_ns - total.before_ns))
    taken = f"{costs.samples[0]:,} and {costs.samples[1]:,} samples{_faults(costs)}"
    text = f"{variant} uses {amount} {more} CPU time than {baseline} ({interval}; {taken})"
    brief = tuple(FunctionTable(by, tuple(_rows(rows, _MOST_BRIEF))) for by, rows in ways[:1])
    return FunctionSection(f"{about}{text}:", tables, brief, abs(total.difference))


def _faults(costs: FunctionCosts) -> str:
    """Page faults of a run, where these differ by much."""
    before, after = costs.page_faults
    if abs(after - before) < max(_FEWEST_FAULTS, _OTHER_FAULTS * max(before, after)):
        return ""
    return f"; {before:,.0f} and {after:,.0f} page faults"


def shown_briefly(sections: Sequence[FunctionSection]) -> list[FunctionSection]:
    """Of many workloads those that differ most, and show it."""
    if len(sections) <= _FEW:
        return list(sections)
    return sorted((section for section in sections if section.brief), key=lambda each: -each.size)[
        :_FEW
    ]


def _may_differ(costs: FunctionCosts, result: Result) -> bool:
    """False where the race, which judges more strictly, shows no difference in CPU time."""
    mine = [
        *(row.comparison for row in result.workloads if row.workload == costs.workload),
        *(result.comparisons if len(result.workload_names) == 1 else ()),
    ]
    own = [row for row in mine if row.variant == costs.variant]
    return result.metric is not Metric.CPU or not own or own[0].direction is not Direction.UNCLEAR


def _rows(rows: Sequence[FunctionCost], most: int) -> Iterator[FunctionRow]:
    """Those that differ, or might by much, so many of them; what is left is one row."""
    told = [cost for cost in rows if cost.excludes_zero or abs(cost.difference) >= _NOTEWORTHY]
    told = told[:most]
    rest = [cost for cost in rows if cost not in told]
    yield from map(_row, told)
    if rest:
        parts = (
            figures.cost(sum(cost.before_ns for cost in rest)),
            figures.cost(sum(cost.after_ns for cost in rest)),
            percent(sum(cost.difference for cost in rest)),
            "",
        )
        name = pluralize(len(rest), "other")
        yield FunctionRow(name, (), parts, chart_row(name, Span(0.0, 0.0, 0.0), ""))


def _row(cost: FunctionCost) -> FunctionRow:
    name = f"{clean(cost.name)} [{clean(cost.file)}]" if cost.file else clean(cost.name)
    before, after = (clean(symbol) or "nothing" for symbol in cost.symbols)
    symbols = f"{before} before, {after} after" if any(cost.symbols) and before != after else ""
    span = Span(cost.low, cost.high, cost.difference)
    interval = _interval(cost)
    times = (cost.before_ns, cost.after_ns)
    cells = (
        *(figures.cost(ns) if ns > 0 else "0" for ns in times),
        percent(cost.difference, _digits(cost)),
        interval,
    )
    facts = (*([symbols] if symbols else []), *map(clean, cost.facts))
    return FunctionRow(name, facts, cells, chart_row(name, span, interval))


def _interval(cost: FunctionCost) -> str:
    digits = _digits(cost)
    return f"{signed(cost.low, digits)} to {percent(cost.high, digits)}"


def _digits(cost: FunctionCost) -> int:
    """Decimals of a percentage by the width: rows stand below each other."""
    half = 50 * (cost.high - cost.low)
    return 0 if half >= _COARSE else 1 if half >= _FINE else 2


def chart_row(name: str, span: Span, interval: str, direction: Direction | None = None) -> Row:
    """What adds so much, for charts; without a direction its interval says that."""
    slower, faster = span.low > 0, span.high < 0
    told = Direction.SLOWER if slower else Direction.FASTER if faster else Direction.UNCLEAR
    direction = direction or told
    return Row(name, name, span, interval, "", "", f"adds {interval}", direction, 0)
