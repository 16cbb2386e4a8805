"""A result as text for a terminal, or for a file: short, or with all details."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ensign.model.builds import BuildFacts, BuildStatus
from ensign.model.comparisons import Direction
from ensign.model.finding_kinds.ran import SAME_CODE, VISIBLE_DIFFERENCES
from ensign.model.findings import Finding, Severity
from ensign.model.quoting import distinct_short
from ensign.model.results import Result, VariantFacts
from ensign.model.trials import Metric
from ensign.model.units import pluralize
from ensign.report import figures, words
from ensign.report.confirmation import HEADING, confirmed, exploration_text, findings_of
from ensign.report.figures import COLUMNS as LATENCY_COLUMNS
from ensign.report.figures import HEADING as LATENCY
from ensign.report.figures import READ as LATENCY_READ
from ensign.report.figures import latency_tables
from ensign.report.layouts import ONE_BINARY_NOTE, WITHIN_SPREAD_NOTE
from ensign.report.notes import (
    BY_MINIMUM,
    SIGNIFICANT_HEADING,
    briefly_told,
    list_findings,
    notes,
    redo_notes,
)
from ensign.report.terminal_page import PLAIN, Page, Screen
from ensign.report.verdict import twin_sentence, verdict_of
from ensign.report.view import ResultView, Row, VariantWorkloads, status_of, view_of
from ensign.report.words import clean, executed_files

_WIDE, _WIDEST = 100, 120
# From here on the other cost has a column of its own.
_ASIDE = 80
_MARK, _ONE_BINARY = "*", "†"
_GAP, _RULED_GAP, _NARROWEST_NAME = 2, 3, 12
_MOST_ROWS, _MOST_FINDINGS = 10, 3
_STYLES = {Direction.FASTER: "cyan", Direction.SLOWER: "yellow", Direction.UNCLEAR: "dim"}


def render(
    result: Result,
    screen: Screen = PLAIN,
    *,
    details: bool = False,
    every_workload: bool = False,
) -> str:
    """The answer first, in at most a screen; with `details` all tables, findings and notes.

    With these, workloads are listed for the best variant only, or for all (`every_workload`).
    """
    page = Page(screen)
    if result.question:
        page.line(clean(result.question))
    page.verdict(verdict_of(result))
    page.blank()
    if details or every_workload:
        _details(page, result, every_workload=every_workload)
    else:
        _brief(page, result)
    return page.text()


def _brief(page: Page, result: Result) -> None:
    shown = confirmed(result) or result
    view = view_of(shown)
    if not all(causes.by_one for causes in result.causes):
        _causes(page, result, brief=True)  # functions were told before anything was proven
    elif view.suite and not result.withheld:
        _suite(page, shown, view, view.compared[:_MOST_ROWS], ruled=False)
        more = len(view.compared) - _MOST_ROWS
        if more > 0:
            page.line(f"{pluralize(more, 'more variant')}: --details", "dim")
        page.blank()
        _costs(page, shown, with_twin=False, ruled=False)
        _functions(page, shown, brief=True)
        _curves(page, result, brief=True)
    findings = findings_of(result)
    if shown.functions and not result.withheld:
        _how_made(page, findings)
    # The verdict has the errors.
    brief = [listed for listed in briefly_told(findings) if listed.severity is not Severity.ERROR]
    page.findings(brief[:_MOST_FINDINGS], cropped=True)
    more = len(list_findings(findings)) - len(brief[:_MOST_FINDINGS])
    others = f"{pluralize(more, 'more finding')}, and how" if more else "How"
    page.line(f"{others} it was measured: --details", "dim")


def _details(page: Page, result: Result, *, every_workload: bool) -> None:
    view = view_of(result)
    second = confirmed(result)
    if second is not None:
        page.heading(HEADING)
        _phase(page, second, view_of(second), every_workload=every_workload)
    if result.confirmation is not None:
        page.line(exploration_text(result), "bold")
        page.blank()
    _commands(page, result)
    if not result.withheld:
        _phase(page, result, view, every_workload=every_workload)
    _curves(page, result, brief=False)
    _bounds(page, result)
    _effects(page, result, view)
    _builds(page, result.builds)
    ran = executed_files(result.ran)
    if ran:
        page.line(clean(ran), "dim")
    findings = list_findings(findings_of(result))
    if findings:
        page.heading("Findings")
        page.findings(findings)
        page.blank()
    page.notes((*notes(result), *redo_notes(result)))


def _commands(page: Page, result: Result) -> None:
    """Commands that the names stand for, where these differ."""
    known = () if result.builds else result.commands
    other = [(clean(name), clean(text)) for name, text in known if name != text]
    for name, text in other:
        page.line(f"{name}: {text}")
    if other:
        page.blank()


def _phase(page: Page, result: Result, view: ResultView, *, every_workload: bool) -> None:
    if view.suite or result.builds:
        _suite(page, result, view, view.suite)
        page.blank()
    _costs(page, result, with_twin=True)
    _causes(page, result, brief=False)
    _functions(page, result, brief=False)
    page.plot([(row.label, row.span) for row in view.suite])
    if result.aa is not None and not result.builds and result.aa.direction is Direction.UNCLEAR:
        page.line(twin_sentence(result.aa, result.margin))
        page.blank()
    _latency(page, result)
    if not view.has_workloads:
        return
    _bands(page, view)
    _significant(page, view)
    shown = [variant for variant in view.variants if every_workload or not variant.is_twin]
    for variant in shown if every_workload else shown[:1]:
        _workloads(page, variant, result)
    if not every_workload and len(shown) > 1:
        page.line(f"{pluralize(len(shown) - 1, 'more variant')} in the HTML, CSV and JSON.")
        page.blank()


def _new_table(title: str = "", *, ruled: bool = True) -> Table:
    return Table(
        title=Text(title, style="bold") if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD if ruled else None,
        show_edge=False,
        pad_edge=False,
        header_style="bold",
        padding=(0, 1) if ruled else (0, 2, 0, 0),
    )


def _name_column(table: Table, header: str, *, least: int = 12) -> None:
    table.add_column(header, overflow="fold", min_width=least)


def _add_rows(page: Page, table: Table, rows: Sequence[Sequence[Text]], result: Result) -> None:
    """Rows of variants; those of commands take one line each."""
    for row in rows if result.builds else _of_commands(page, table, rows):
        table.add_row(*row)


def _of_commands(page: Page, table: Table, rows: Sequence[Sequence[Text]]) -> list[Sequence[Text]]:
    """The rows with names that leave each on one line: what is long is told by --details."""
    heads = [len(str(column.header)) for column in table.columns[1:]]
    cells = [max(head, *(len(row[n]) for row in rows)) for n, head in enumerate(heads, 1)]
    gap = _GAP if table.box is None else _RULED_GAP
    left = page.width - sum(width + gap for width in cells)
    names = distinct_short([row[0].plain for row in rows], max(_NARROWEST_NAME, left))
    return [[_text(name), *row[1:]] for name, row in zip(names, rows, strict=True)]


def _least(page: Page, names: list[str]) -> int:
    return min(max(map(len, names), default=12), page.width * 3 // 10)


def _text(value: str, direction: Direction | None = None) -> Text:
    return Text(value, style=_STYLES[direction] if direction is not None else "")


def _suite(
    page: Page, result: Result, view: ResultView, rows: Iterable[Row], *, ruled: bool = True
) -> None:
    rows = tuple(rows)
    claimed = any(row.non_inferior for row in view.suite) and result.margin is not None
    several = len(result.workload_names) > 1
    title = "All workloads (geometric mean)" if several else ""
    table = _new_table(title, ruled=ruled)
    _name_column(table, "variant")
    columns = _columns(page, result.metric, result.margin, view.suite)
    columns.add(table, f"{words.plain_share(result.level)} interval")
    claimed = claimed and page.width >= _WIDE
    if claimed:
        limit = words.plain_share(result.margin or 0)
        table.add_column(f"no workload slower by more than {limit}", overflow="fold", width=26)
    lines = [columns.baseline(result.baseline), *map(columns.cells, rows)]
    if claimed:
        claims = ["", *(row.non_inferior for row in rows)]
        lines = [[*cells, _text(claim)] for cells, claim in zip(lines, claims, strict=True)]
    _add_rows(page, table, lines, result)
    page.show(table)
    _explain_mark(page, rows)
    for missing in view.unmeasured:
        page.line(f"{missing.label}: {missing.reason}", "dim")


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a comparison. `metric` is the other cost, whose interval stands at the end.

    On a narrow page it stands below the first interval.
    """

    margin: float | None
    metric: Metric
    aside: bool

    def add(self, table: Table, interval: str) -> None:
        table.add_column(interval, no_wrap=True)
        table.add_column("speedup", justify="right", no_wrap=True)
        if self.margin is not None:
            table.add_column(f"margin {words.plain_share(self.margin)}", no_wrap=True)
        if self.aside:
            table.add_column(f"by {words.METRICS[self.metric]}", no_wrap=True)

    def baseline(self, name: str) -> list[Text]:
        more = (self.margin is not None) + self.aside
        return [_text(clean(name)), _text("baseline"), _text(""), *([_text("")] * more)]

    def cells(self, row: Row) -> list[Text]:
        marks = f"{_MARK * row.within_spread}{_ONE_BINARY * row.one_binary}"
        label = f"{row.label} {marks}".rstrip()
        interval = row.interval
        if row.other and not self.aside:
            interval = f"{interval}\n{self.metric.value}: {row.other}"
        cells = [_text(label), _text(interval), _text(row.speedup, row.direction)]
        if self.margin is not None:
            cells.append(_text(row.size, row.direction))
        return [*cells, _text(row.other)] if self.aside else cells


def _columns(page: Page, metric: Metric, margin: float | None, rows: Iterable[Row]) -> _Columns:
    aside = page.width >= _ASIDE and any(row.other for row in rows)
    return _Columns(margin, metric.other, aside)


def _costs(page: Page, result: Result, *, with_twin: bool, ruled: bool = True) -> None:
    """Resources that each variant used, where there is one workload."""
    twin = [result.twin] if with_twin and result.twin else []
    names = [result.baseline, *(comparison.variant for comparison in result.comparisons), *twin]
    rows = [each for name in names if (each := result.facts_of(name)) is not None]
    if not rows:
        return
    table = _new_table(ruled=ruled)
    _name_column(table, "variant")
    columns = _cost_columns(result, page.width)
    for header, _ in columns:
        table.add_column(header, justify="right", no_wrap=True)
    lines = [
        [_text(clean(facts.variant)), *(_text(cell) for _, of in columns for cell in of(facts))]
        for facts in rows
    ]
    _add_rows(page, table, lines, result)
    page.table(table)


def _cost_columns(result: Result, width: int) -> list[tuple[str, _CellsOf]]:
    """Heads, and what stands below them for a variant."""
    unit = result.time_unit
    scores = [(clean(head), _score) for head in result.score_head]
    columns: list[tuple[str, _CellsOf]] = [
        *scores,
        ("wall (mean ± σ)", lambda each: (figures.mean_and_sd(each.wall, unit),)),
        ("min … max", lambda each: (figures.least_to_greatest(each.wall, unit),)),
        ("user", lambda facts: (figures.seconds(facts.user_s, unit),)),
        ("system", lambda facts: (figures.seconds(facts.system_s, unit),)),
        ("memory", lambda facts: (figures.size(facts.peak_memory_bytes),)),
    ]
    return [column for column in columns if width >= _LEAST_WIDTH.get(column[0], 0)]


def _score(facts: VariantFacts) -> tuple[str, ...]:
    return figures.score(facts.score)


_CellsOf = Callable[[VariantFacts], tuple[str, ...]]
# Columns that a narrow page leaves out.
_LEAST_WIDTH = {"min … max": 72, "user": 56, "system": 56}


def _bands(page: Page, view: ResultView) -> None:
    variants = [variant for variant in view.variants if variant.bands]
    if not variants:
        return
    table = _new_table("Workloads by estimated speedup")
    names = [variant.label for variant in variants]
    _name_column(table, "variant", least=_least(page, names))
    full = max(map(len, names)) + sum(len(band.label) + 2 for band in view.bands)
    for band in view.bands:
        label = band.label if full < page.width else band.short
        table.add_column(label, justify="right", no_wrap=True)
    both = _both_fit(page, view, names)
    for variant in variants:
        shown = (cell.both if both else str(cell.mean) for cell in variant.bands)
        table.add_row(_text(variant.label), *(_text("·" if one == "0" else one) for one in shown))
    page.show(table)
    page.line(BY_MINIMUM if both else "By the minimum over the rounds: see the HTML.", "dim")
    page.blank()


def _significant(page: Page, view: ResultView) -> None:
    variants = [variant for variant in view.variants if variant.significant]
    if not variants:
        return
    page.heading(SIGNIFICANT_HEADING)
    for variant in variants:
        page.line(f"{variant.label}: {variant.significant}")
    page.blank()


def _effects(page: Page, result: Result, view: ResultView) -> None:
    if not result.builds:
        return
    from ensign.report.effects import EXPLORED, effects_view  # noqa: PLC0415  # builds alone
    from ensign.report.trade import trade_view  # noqa: PLC0415

    effects, trade = effects_view(result), trade_view(result, view)
    if effects is not None:
        page.heading("What each choice is worth")
        for sentence in effects.sentences:
            page.line(sentence)
        explored = EXPLORED if result.confirmation else ""
        text = f"{explored}Significant after Holm; under each condition: see the HTML and JSON."
        page.line(text, "dim")
        page.blank()
    if trade is not None and trade.sentences:
        page.heading("Speed against size and build time")
        for sentence in trade.sentences:
            page.line(sentence)
        page.blank()


def _latency(page: Page, result: Result) -> None:
    tables = latency_tables(result)
    fits = page.width >= _WIDE
    headers = [header for _, header in LATENCY_COLUMNS]
    kept = [index for index, header in enumerate(headers) if fits or header != "p95"]
    for latency_table in tables:
        table = _new_table(", ".join(filter(None, (LATENCY, latency_table.workload))))
        _name_column(table, "variant")
        for index in kept:
            table.add_column(headers[index], justify="right", no_wrap=fits, overflow="fold")
        for row in latency_table.rows:
            table.add_row(_text(row.label), *(_text(row.cells[index]) for index in kept))
        page.table(table)
    if tables:
        page.line(LATENCY_READ, "dim")
        page.blank()


def _functions(page: Page, result: Result, *, brief: bool) -> None:
    """Where the difference lies, if anybody asked; in brief the better table alone."""
    if not result.functions:
        return
    from ensign.report import function_costs  # noqa: PLC0415  # few ask

    sections = function_costs.function_sections(result)
    shown = function_costs.shown_briefly(sections) if brief else sections
    for section in shown:
        page.line(section.text)
        tables = section.brief if brief else section.tables
        for found in tables:
            title = f"{function_costs.HEADING}, {found.by}" if not brief else ""
            table = _new_table(title, ruled=not brief)
            _name_column(table, function_costs.COLUMNS[0])
            for header in function_costs.COLUMNS[1:]:
                table.add_column(header, justify="right", no_wrap=True)
            rows = [
                [_text(row.name), *(_text(cell, row.row.direction) for cell in row.cells)]
                for row in found.rows
            ]
            for cells in _of_commands(page, table, rows):
                table.add_row(*cells)
            page.table(table)
        if not tables:
            page.blank()
        for row in () if brief else (row for found in tables for row in found.rows if row.facts):
            page.line(f"{row.name}: {'; '.join(row.facts)}", "dim")
    if len(shown) < len(sections):
        more = pluralize(len(sections) - len(shown), "more workload")
        page.line(f"{more}, by function: --details", "dim")
        page.blank()


def _how_made(page: Page, findings: Sequence[Finding]) -> None:
    """How the files of commands that were looked into differ."""
    told = list_findings(
        finding for finding in findings if finding.is_a(VISIBLE_DIFFERENCES, SAME_CODE)
    )
    for listed in told:
        page.line(f"{listed.subjects}: {listed.text}.")
    if told:
        page.blank()


def _causes(page: Page, result: Result, *, brief: bool) -> None:
    """What the difference comes from, if anybody asked; the verdict has said it in words."""
    if not result.causes:
        return
    from ensign.report import causes  # noqa: PLC0415  # few ask

    sections = [
        cause_section for cause_section in causes.cause_sections(result) if cause_section.rows
    ]
    shown = causes.shown_briefly(sections) if brief else sections
    for section in shown:
        left_out = causes.SHARE_INTERVAL if brief or page.width < _WIDE else -1
        table = _new_table("" if brief else f"{causes.HEADING}, {section.by}", ruled=not brief)
        _name_column(table, f"{causes.HEADING}, {section.by}" if brief else causes.COLUMNS[0])
        for place, header in enumerate(causes.COLUMNS[1:]):
            if place != left_out:
                table.add_column(header, justify="right", no_wrap=True)
        for row in section.rows:
            cells = [cell for place, cell in enumerate(row.cells) if place != left_out]
            table.add_row(_text(row.name), *(_text(cell, row.row.direction) for cell in cells))
        page.table(table)
    if len(shown) < len(sections):
        page.line(f"{pluralize(len(sections) - len(shown), 'more table')}: --details", "dim")
        page.blank()


def _curves(page: Page, result: Result, *, brief: bool) -> None:
    """Curves over parameters, where workloads have some: what is said of them, or all."""
    if not result.curves:
        return
    from ensign.report.curves import curves_views  # noqa: PLC0415  # few have some

    for curve_set in curves_views(result):
        if brief:
            text = " ".join(curve_set.sentences) or "a table: --details"
            page.line(f"{curve_set.name}: {text}")
            page.blank()
            continue
        table = _new_table(curve_set.name, ruled=False)
        for header in curve_set.head:
            table.add_column(header, justify="right", overflow="fold")
        for row in curve_set.rows:
            table.add_row(*row)
        page.show(table)
        for sentence in curve_set.sentences:
            page.line(sentence)
        page.blank()


def _bounds(page: Page, result: Result) -> None:
    from ensign.report import bounds  # noqa: PLC0415  # a detail

    found = bounds.bound_table(result)
    if not found.rows:
        return
    table = _new_table(found.heading)
    _name_column(table, found.columns[0], least=_least(page, [name for name, *_ in found.rows]))
    for column in found.columns[1:]:
        table.add_column(column, justify="right", overflow="fold")
    for row in found.rows:
        table.add_row(*row)
    page.show(table)
    page.line(bounds.READ, "dim")
    page.blank()


def _both_fit(page: Page, view: ResultView, names: list[str]) -> bool:
    cells = [cell.both for variant in view.variants for cell in variant.bands]
    columns = (max(len(band.short), *map(len, cells)) + 2 for band in view.bands)
    return max(map(len, names)) + sum(columns) <= page.width


def _workloads(page: Page, variant: VariantWorkloads, result: Result) -> None:
    wide = page.width >= _WIDE
    table = _new_table(f"{variant.label}, by workload: {variant.summary}")
    _name_column(table, "workload")
    rows = [compared.row for compared in variant.rows]
    columns = _columns(page, result.metric, result.margin, rows)
    columns.add(table, "interval")
    if wide:
        for header in ("baseline", "variant", "user"):
            table.add_column(header, justify="right", no_wrap=True)
    for compared in variant.rows:
        cells = columns.cells(compared.row)
        if wide:
            cells += [
                _text(compared.baseline_cost),
                _text(compared.variant_cost),
                _text(compared.user_share),
            ]
        table.add_row(*cells)
    page.show(table)
    _explain_mark(page, rows)
    page.blank()


def _explain_mark(page: Page, rows: Iterable[Row]) -> None:
    if any(row.within_spread for row in rows):
        page.line(f"{_MARK} {WITHIN_SPREAD_NOTE}", "dim")
    if any(row.one_binary for row in rows):
        page.line(f"{_ONE_BINARY} {ONE_BINARY_NOTE}", "dim")


def _builds(page: Page, builds: tuple[BuildFacts, ...]) -> None:
    if not builds:
        return
    table = _new_table("Builds")
    _name_column(table, "variant")
    table.add_column("status", overflow="fold")
    for header in ("time", "file", "code"):
        table.add_column(header, justify="right", no_wrap=True)
    for build in builds:
        bad = build.bad or build.check == "failed"
        table.add_row(
            _text(clean(build.variant)),
            Text(status_of(build), style="bold red" if bad else ""),
            _text(figures.seconds(build.build_s)),
            _text(figures.size(build.size_bytes) if build.size_bytes else ""),
            _text(figures.size(build.text_bytes) if build.size_bytes else ""),
        )
        for file in build.files[1:]:
            if file.loaded:
                sizes = map(figures.size, (file.size_bytes, file.text_bytes))
                table.add_row(_text(f"  {clean(file.path)}"), "", "", *map(_text, sizes))
    page.table(table)
    for build in builds:
        if build.status == BuildStatus.FAILED:
            _tail(page, f"{clean(build.variant)}: last lines of its log", build.log_tail)
        _tail(page, f"{clean(build.variant)}: last lines of its check", build.check_tail)


def _tail(page: Page, heading: str, text: str) -> None:
    if text:
        page.heading(heading)
        page.show(Padding(Text(words.clean_block(text)), (0, 0, 1, 2)))
