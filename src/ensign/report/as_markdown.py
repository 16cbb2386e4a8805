"""Results as GitHub Markdown, for a pull request: short, with the details folded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ensign.model.findings import Finding
from ensign.model.results import Result
from ensign.model.trials import Metric
from ensign.model.units import pluralize
from ensign.report import figures, github
from ensign.report.causes import COLUMNS as CAUSE_COLUMNS
from ensign.report.causes import HEADING as HEADING_CAUSES
from ensign.report.causes import cause_sections
from ensign.report.confirmation import HEADING, confirmed, exploration_text, findings_of
from ensign.report.curves import curves_views
from ensign.report.effects import effects_view
from ensign.report.function_costs import COLUMNS, function_sections
from ensign.report.function_costs import HEADING as HEADING_FUNCTIONS
from ensign.report.github import folded, html, safe
from ensign.report.layouts import WITHIN_SPREAD
from ensign.report.notes import (
    BY_MINIMUM,
    SIGNIFICANT_HEADING,
    Note,
    list_findings,
    notes,
    redo_notes,
)
from ensign.report.trade import Trade, trade_view
from ensign.report.verdict import Verdict, verdict_of
from ensign.report.view import ResultView, Row, VariantWorkloads, view_of
from ensign.report.words import METRICS, clean, plain_share

# A comment on GitHub holds 65,536 characters.
_MOST_CHARACTERS = 60_000
_COSTS = ("wall (mean ± σ)", "min … max", "user", "system", "peak memory")
_FIGURES = frozenset({"speedup", *_COSTS, "baseline cost", "cost"})


def render(result: Result) -> str:
    """Verdict, tables, findings; workloads per variant, folded, as far as they fit."""
    view = view_of(result)
    head = [f"### {safe(result.title)}"] if result.builds else []
    parts = [
        *head,
        *([safe(result.question)] if result.question else []),
        *_verdict(verdict_of(result)),
        *_confirmation(result),
        *([safe(explored)] if (explored := exploration_text(result)) else []),
        *([] if result.withheld else [_suite(result, view)]),
        *_costs(result),
        *_causes(result),
        *_functions(result),
        *_curves(result),
        *_findings(findings_of(result)),
    ]
    text = folded("How this was measured", _notes((*notes(result), *redo_notes(result))))
    commands = [folded("Commands", _commands(result))] if result.commands else []
    if view.has_workloads:
        parts += _by_workload(view)
    parts += _choices(result, view)
    parts += _latency(result)
    if view.has_workloads:
        parts += _each_variant(result, view, sum(map(len, [*parts, text, *commands])))
    return "\n\n".join([*parts, *commands, text, _made(result.version, result.made_at)]) + "\n"


def _by_workload(view: ResultView) -> list[str]:
    parts = []
    if any(variant.bands for variant in view.variants):
        parts.append(folded("Workloads by estimated speedup", _bands(view)))
    significant = [variant for variant in view.variants if variant.significant]
    if significant:
        parts.append(folded(SIGNIFICANT_HEADING, _significant(significant)))
    return parts


def _each_variant(result: Result, view: ResultView, length: int) -> list[str]:
    """A table for each variant, as far as they fit beside so many characters."""
    parts, left_out = [], 0
    for variant in view.variants:
        table = folded(f"{html(variant.label)}: {variant.summary}", _workloads(variant, result))
        if length + len(table) > _MOST_CHARACTERS:
            left_out += 1
            continue
        length += len(table)
        parts.append(table)
    if left_out:
        more = pluralize(left_out, "more variant")
        parts.append(f"Workloads of {more}: see the HTML report.")
    return parts


def _costs(result: Result) -> list[str]:
    """Resources that each variant used, where there is one workload."""
    names = [
        result.baseline,
        *(comparison.variant for comparison in result.comparisons),
        result.twin,
    ]
    rows = [each for name in names if (each := result.facts_of(name)) is not None]
    if not rows:
        return []
    header = ["variant", *(safe(clean(head)) for head in result.score_head), *_COSTS]
    body = [
        [
            safe(clean(facts.variant)),
            *figures.score(facts.score),
            figures.mean_and_sd(facts.wall, result.time_unit),
            figures.least_to_greatest(facts.wall, result.time_unit),
            figures.seconds(facts.user_s, result.time_unit),
            figures.seconds(facts.system_s, result.time_unit),
            figures.size(facts.peak_memory_bytes),
        ]
        for facts in rows
    ]
    return [_table(header, body)]


def _functions(result: Result) -> list[str]:
    """Where each difference lies: a sentence, and the better table folded."""
    parts = []
    for section in function_sections(result):
        parts.append(safe(section.text))
        for table in section.tables[:1]:
            body = [[safe(row.name), *row.cells] for row in table.rows]
            parts.append(folded(f"{HEADING_FUNCTIONS}, {table.by}", _table(list(COLUMNS), body)))
    return parts


def _causes(result: Result) -> list[str]:
    """What the difference comes from: a table for each way to split it."""
    parts = []
    for section in cause_sections(result):
        if section.rows:
            body = [[safe(row.name), *row.cells] for row in section.rows]
            parts.append(f"{HEADING_CAUSES}, {section.by}:")
            parts.append(_table(list(CAUSE_COLUMNS), body))
    return parts


def _curves(result: Result) -> list[str]:
    """Curves over parameters, as tables with what is said of them."""
    parts = []
    for curve_set in curves_views(result):
        parts += [" ".join(map(safe, curve_set.sentences))] if curve_set.sentences else []
        body = [[*map(safe, row)] for row in curve_set.rows]
        table = _table([*map(safe, curve_set.head)], body)
        parts.append(folded(safe(curve_set.name), table))
    return parts


def _verdict(verdict: Verdict) -> list[str]:
    parts = [f"**{safe(verdict.headline)}**"]
    if verdict.details:
        parts.append(" ".join(safe(detail) for detail in verdict.details))
    if verdict.caveats:
        parts.append("\n".join(f"> ⚠️ {safe(caveat)}  " for caveat in verdict.caveats))
    return parts


def _suite(result: Result, view: ResultView) -> str:
    claimed = result.margin is not None and any(row.non_inferior for row in view.suite)
    header = _heads(result.level, result.margin, "variant", result.metric)
    body = [_baseline(result.baseline, result.margin)]
    body += [_cells(row, result.margin) for row in view.suite]
    if claimed:
        header.append("no workload slower than the margin")
        for cells, extra in zip(body, ["", *(row.non_inferior for row in view.suite)], strict=True):
            cells.append(safe(extra))
    table = _table(header, body)
    missing = [f"- {safe(compared.label)}: {safe(compared.reason)}" for compared in view.unmeasured]
    return "\n\n".join([table, "\n".join(missing)]) if missing else table


def _confirmation(result: Result) -> list[str]:
    second = confirmed(result)
    if second is None:
        return []
    view = view_of(second)
    tables = [
        folded(f"{html(one.label)}: {one.summary}", _workloads(one, second))
        for one in view.variants
    ]
    return [f"#### {HEADING}", _suite(second, view), *tables]


def _workloads(variant: VariantWorkloads, result: Result) -> str:
    margin = result.margin
    header = [*_heads(None, margin, "workload", result.metric), "baseline", "variant"]
    body = [
        [*_cells(compared.row, margin), compared.baseline_cost, compared.variant_cost]
        for compared in variant.rows
    ]
    return _table(header, body)


def _bands(view: ResultView) -> str:
    header = ["variant", *(band.label for band in view.bands)]
    body = [
        [safe(variant.label), *(cell.both for cell in variant.bands)]
        for variant in view.variants
        if variant.bands
    ]
    return f"{_table(header, body)}\n\n{BY_MINIMUM}"


def _choices(result: Result, view: ResultView) -> list[str]:
    effects, trade = effects_view(result), trade_view(result, view)
    parts = []
    if effects is not None:
        text = "\n".join(f"- {safe(sentence)}" for sentence in effects.sentences)
        parts.append(folded("What each choice is worth", f"{text}\n\n{safe(effects.note)}"))
    if trade is not None and trade.sentences:
        text = "\n".join(f"- {safe(sentence)}" for sentence in trade.sentences)
        parts.append(folded("Speed against size and build time", f"{text}\n\n{_trade(trade)}"))
    return parts


def _latency(result: Result) -> list[str]:
    header = ["variant", *(head for _, head in figures.COLUMNS)]
    tables = [
        f"{safe(one.workload)}\n\n"
        + _table(header, [[safe(row.label), *row.cells] for row in one.rows])
        for one in figures.latency_tables(confirmed(result) or result)
    ]
    return [folded(figures.HEADING, "\n\n".join([*tables, figures.READ]))] if tables else []


def _trade(trade: Trade) -> str:
    header = ["build", "interval", "file", "size", "build time", "time", "front"]
    return _table(
        header,
        [
            [
                safe(point.label),
                point.interval,
                point.size,
                point.size_said,
                point.time,
                point.time_said,
                point.fronts,
            ]
            for point in trade.points
        ],
    )


def _significant(variants: Iterable[VariantWorkloads]) -> str:
    return "\n".join(f"- {safe(one.label)}: {safe(one.significant)}" for one in variants)


def _heads(level: float | None, margin: float | None, first: str, metric: Metric) -> list[str]:
    interval = "interval" if level is None else f"{plain_share(level)} interval"
    size = [] if margin is None else [f"margin {plain_share(margin)}"]
    other = METRICS[metric.other]
    return [first, interval, "speedup", *size, f"by {other}"]


def _cells(row: Row, margin: float | None) -> list[str]:
    size = [] if margin is None else [row.size]
    marks = [WITHIN_SPREAD] * row.within_spread + ["one binary"] * row.one_binary
    mark = f" <sub>{', '.join(marks)}</sub>" if marks else ""
    return [f"{safe(row.label)}{mark}", row.interval, row.speedup, *size, row.other]


def _baseline(name: str, margin: float | None) -> list[str]:
    return [safe(clean(name)), "baseline", "", *([] if margin is None else [""]), ""]


def _findings(findings: Iterable[Finding]) -> list[str]:
    lines = []
    for finding in list_findings(findings):
        about = f" {safe(finding.subjects)}:" if finding.subjects else ""
        lines.append(
            f"- **{finding.severity.value}** ({safe(finding.code)}){about} {safe(finding.text)}"
        )
    return ["#### Findings", "\n".join(lines)] if lines else []


def _commands(result: Result) -> str:
    return _table(
        ["", "command"],
        [[safe(clean(name)), safe(clean(command))] for name, command in result.commands],
    )


def _notes(notes: Iterable[Note]) -> str:
    return "\n".join(f"- **{safe(note.heading)}**: {safe(note.text)}" for note in notes)


def _table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    return github.table(header, body, right=_FIGURES)


def _made(version: str, made_at: str) -> str:
    return f"<sub>ensign {safe(version)}, {safe(made_at)}</sub>"
