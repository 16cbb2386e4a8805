"""Results as text for a terminal, or for a file: readable without colour, at 60 columns and up."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ensign.model.comparisons import Direction
from ensign.model.findings import Finding, Severity
from ensign.model.results import BuildFacts, BuildStatus, CompareResult, StudyResult, VariantFacts
from ensign.model.trials import Metric
from ensign.model.units import counted
from ensign.report import figures, plot, words
from ensign.report.confirmation import HEADING, confirmed, exploration_text, findings_of
from ensign.report.effects import EXPLORED, effects_view
from ensign.report.latency import COLUMNS as LATENCY_COLUMNS
from ensign.report.latency import HEADING as LATENCY
from ensign.report.latency import READ as LATENCY_READ
from ensign.report.latency import latency_tables
from ensign.report.layouts import WITHIN_SPREAD_NOTE
from ensign.report.notes import (
    BY_MINIMUM,
    SIGNIFICANT_HEADING,
    Note,
    compare_notes,
    redo_notes,
    study_notes,
)
from ensign.report.ran import summary
from ensign.report.trade import trade_view
from ensign.report.verdict import Verdict, compare_verdict, study_verdict, twin_sentence
from ensign.report.view import Row, StudyView, VariantWorkloads, row_of, status_of, study_view
from ensign.report.words import clean

_WIDE, _WIDEST = 100, 120
# From here on the other cost has a column of its own.
_ASIDE = 80
_MARK = "*"
_NARROWEST = 40
_NO_BREAK = "\ue000"  # rich breaks lines at a no-break space too
_STYLES = {Direction.FASTER: "cyan", Direction.SLOWER: "yellow", Direction.UNCLEAR: "dim"}
_SEVERITIES = {Severity.NOTE: "dim", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}
_TO_ASCII = str.maketrans("−–—…µ×“”’─·", '---~ux""\'-.')


@dataclass(frozen=True, slots=True)
class Screen:
    """Where the text goes. `unicode` off gives pure ASCII, `colour` off no escape sequences."""

    width: int = 80
    colour: bool = False
    unicode: bool = True


def study(result: StudyResult, screen: Screen = Screen(), *, every_workload: bool = False) -> str:
    """A study's tables, its question and the verdict first.

    Workloads are listed for the best variant only, or for all with `every_workload`.
    """
    paper = _Paper(screen)
    view = study_view(result)
    if result.question:
        paper.line(clean(result.question))
    paper.verdict(study_verdict(result))
    paper.blank()
    second = confirmed(result)
    if second is not None:
        paper.heading(HEADING)
        _phase(paper, second, study_view(second), every_workload=every_workload)
    if result.confirmation is not None:
        paper.line(exploration_text(result), "bold")
        paper.blank()
    _phase(paper, result, view, every_workload=every_workload)
    _effects(paper, result, view)
    _builds(paper, result.builds)
    ran = summary(result.ran)
    if ran:
        paper.line(clean(ran), "dim")
    paper.findings(findings_of(result))
    paper.notes((*study_notes(result), *redo_notes(result)))
    return paper.text()


def _phase(paper: _Paper, result: StudyResult, view: StudyView, *, every_workload: bool) -> None:
    _suite(paper, result, view)
    paper.plot([(row.label, row.span) for row in view.suite])
    _bands(paper, view)
    _significant(paper, view)
    _latency(paper, result)
    shown = [variant for variant in view.variants if every_workload or not variant.is_twin]
    for variant in shown if every_workload else shown[:1]:
        _workloads(paper, variant, result)
    if not every_workload and len(shown) > 1:
        paper.line(f"{counted(len(shown) - 1, 'more variant')} in the HTML, CSV and JSON.")
        paper.blank()


def compare(result: CompareResult, screen: Screen = Screen()) -> str:
    """The result of `ensign compare`, the verdict first."""
    paper = _Paper(screen)
    paper.verdict(compare_verdict(result))
    paper.blank()
    if result.withheld:
        paper.findings(result.findings)
        return paper.text()
    rows = [row_of(entry, result.margin, twin=False) for entry in result.comparisons]
    if result.aa is not None:
        rows.append(row_of(result.aa, result.margin, twin=True))
    columns = _columns(paper, result.metric.value, result.margin, rows)
    if screen.width >= _WIDEST:
        paper.table(_compare_table(result, rows, columns, with_costs=True))
    else:
        paper.table(_compare_table(result, rows, columns, with_costs=False))
        paper.table(_cost_table(result))
    paper.plot([(row.label, row.span) for row in rows])
    if result.aa is not None and result.aa.direction is Direction.UNCLEAR:
        paper.line(twin_sentence(result.aa, result.margin))
        paper.blank()
    paper.findings(result.findings)
    paper.notes(compare_notes(result))
    return paper.text()


class _Paper:
    """Collects renderables; nothing is written but to a string."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._buffer = io.StringIO()
        self._console = Console(
            file=self._buffer,
            width=max(_NARROWEST, screen.width),
            color_system="standard" if screen.colour else None,
            force_terminal=screen.colour,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
        )
        self.width = max(_NARROWEST, screen.width)

    def show(self, item: RenderableType) -> None:
        self._console.print(item)

    def blank(self) -> None:
        self._console.print()

    def line(self, text: str, style: str = "") -> None:
        self.show(Text(_kept_together(text), style=style))

    def heading(self, text: str) -> None:
        self.line(text, "bold")

    def table(self, table: Table) -> None:
        self.show(table)
        self.blank()

    def verdict(self, verdict: Verdict) -> None:
        self.line(verdict.headline, "bold")
        for detail in verdict.details:
            self.line(detail)
        for caveat in verdict.caveats:
            self.line(f"! {caveat}", "bold yellow")

    def plot(self, rows: Sequence[tuple[str, words.Span]]) -> None:
        if not rows:
            return
        symbols = plot.UNICODE if self._screen.unicode else plot.ASCII
        self.heading("Speedup against the baseline, with interval")
        for line in plot.interval_plot(rows, self.width, symbols):
            self.show(Text(line, no_wrap=True, overflow="crop"))
        self.blank()

    def findings(self, findings: Iterable[Finding]) -> None:
        listed = list(findings)
        if not listed:
            return
        self.heading("Findings")
        for finding in listed:
            about = f" {clean(finding.subject)}:" if finding.subject else ""
            text = Text(f"{finding.severity.value}", style=_SEVERITIES[finding.severity])
            text.append(f" [{clean(finding.code)}]{about} {clean(finding.text)}", style="default")
            self.show(text)
        self.blank()

    def notes(self, notes: Iterable[Note]) -> None:
        for note in notes:
            text = Text(f"{note.heading}: ", style="bold")
            text.append(_kept_together(note.text), style="not bold")
            self.show(text)

    def text(self) -> str:
        """All of it, without blanks at the ends of lines."""
        written = self._buffer.getvalue().replace(_NO_BREAK, " ")
        if not self._screen.unicode:
            written = written.translate(_TO_ASCII).encode("ascii", "replace").decode("ascii")
        return "\n".join(line.rstrip() for line in written.splitlines()).rstrip() + "\n"


def _kept_together(text: str) -> str:
    return text.replace(" %", f"{_NO_BREAK}%")


def _new_table(title: str = "") -> Table:
    return Table(
        title=Text(title, style="bold") if title else None,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        header_style="bold",
        padding=(0, 1),
    )


def _name_column(table: Table, header: str, *, least: int = 12) -> None:
    table.add_column(header, overflow="fold", min_width=least)


def _least(paper: _Paper, names: list[str]) -> int:
    return min(max(map(len, names), default=12), paper.width * 3 // 10)


def _text(value: str, direction: Direction | None = None) -> Text:
    return Text(value, style=_STYLES[direction] if direction is not None else "")


def _suite(paper: _Paper, result: StudyResult, view: StudyView) -> None:
    claimed = any(row.non_inferior for row in view.suite) and result.margin is not None
    table = _new_table("All workloads (geometric mean)")
    _name_column(table, "variant")
    columns = _columns(paper, result.metric, result.margin, view.suite)
    columns.add(table, f"{words.plain_share(result.level)} interval")
    if claimed and paper.width >= _WIDE:
        limit = words.plain_share(result.margin or 0)
        table.add_column(f"no workload slower by more than {limit}", overflow="fold", width=26)
    table.add_row(*columns.baseline(result.baseline))
    for row in view.suite:
        cells = columns.cells(row)
        if claimed and paper.width >= _WIDE:
            cells.append(_text(row.non_inferior))
        table.add_row(*cells)
    paper.show(table)
    _explain_mark(paper, view.suite)
    for missing in view.unmeasured:
        paper.line(f"{missing.label}: {missing.reason}", "dim")
    paper.blank()


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
        label = f"{row.label} {_MARK}" if row.within_spread else row.label
        interval = row.interval
        if row.other and not self.aside:
            interval = f"{interval}\n{self.metric.value}: {row.other}"
        cells = [_text(label), _text(interval), _text(row.speedup, row.direction)]
        if self.margin is not None:
            cells.append(_text(row.size, row.direction))
        return [*cells, _text(row.other)] if self.aside else cells


def _columns(paper: _Paper, metric: str, margin: float | None, rows: Iterable[Row]) -> _Columns:
    other = words.other_metric(Metric(metric))
    aside = paper.width >= _ASIDE and any(row.other for row in rows)
    return _Columns(margin, other, aside)


def _bands(paper: _Paper, view: StudyView) -> None:
    variants = [variant for variant in view.variants if variant.bands]
    if not variants:
        return
    table = _new_table("Workloads by estimated speedup")
    names = [variant.label for variant in variants]
    _name_column(table, "variant", least=_least(paper, names))
    full = max(map(len, names)) + sum(len(band.label) + 2 for band in view.bands)
    for band in view.bands:
        label = band.label if full < paper.width else band.short
        table.add_column(label, justify="right", no_wrap=True)
    both = _both_fit(paper, view, names)
    for variant in variants:
        shown = (cell.both if both else str(cell.mean) for cell in variant.bands)
        table.add_row(_text(variant.label), *(_text("·" if one == "0" else one) for one in shown))
    paper.show(table)
    paper.line(BY_MINIMUM if both else "By the minimum over the rounds: see the HTML.", "dim")
    paper.blank()


def _significant(paper: _Paper, view: StudyView) -> None:
    variants = [variant for variant in view.variants if variant.significant]
    if not variants:
        return
    paper.heading(SIGNIFICANT_HEADING)
    for variant in variants:
        paper.line(f"{variant.label}: {variant.significant}")
    paper.blank()


def _effects(paper: _Paper, result: StudyResult, view: StudyView) -> None:
    effects, trade = effects_view(result), trade_view(result, view)
    if effects is not None:
        paper.heading("What each choice is worth")
        for sentence in effects.sentences:
            paper.line(sentence)
        explored = EXPLORED if result.confirmation else ""
        said = f"{explored}Significant after Holm; under each condition: see the HTML and JSON."
        paper.line(said, "dim")
        paper.blank()
    if trade is not None and trade.sentences:
        paper.heading("Speed against size and build time")
        for sentence in trade.sentences:
            paper.line(sentence)
        paper.blank()


def _latency(paper: _Paper, result: StudyResult) -> None:
    tables = latency_tables(result)
    fits = paper.width >= _WIDE
    headers = [header for _, header in LATENCY_COLUMNS]
    kept = [index for index, header in enumerate(headers) if fits or header != "p95"]
    for found in tables:
        table = _new_table(f"{LATENCY}, {found.workload}")
        _name_column(table, "variant")
        for index in kept:
            table.add_column(headers[index], justify="right", no_wrap=fits, overflow="fold")
        for row in found.rows:
            table.add_row(_text(row.label), *(_text(row.cells[index]) for index in kept))
        paper.table(table)
    if tables:
        paper.line(LATENCY_READ, "dim")
        paper.blank()


def _both_fit(paper: _Paper, view: StudyView, names: list[str]) -> bool:
    cells = [cell.both for variant in view.variants for cell in variant.bands]
    columns = (max(len(band.short), *map(len, cells)) + 2 for band in view.bands)
    return max(map(len, names)) + sum(columns) <= paper.width


def _workloads(paper: _Paper, variant: VariantWorkloads, result: StudyResult) -> None:
    wide = paper.width >= _WIDE
    table = _new_table(f"{variant.label}, by workload: {variant.summary}")
    _name_column(table, "workload")
    rows = [entry.row for entry in variant.rows]
    columns = _columns(paper, result.metric, result.margin, rows)
    columns.add(table, "interval")
    if wide:
        for header in ("baseline", "variant", "user"):
            table.add_column(header, justify="right", no_wrap=True)
    for entry in variant.rows:
        cells = columns.cells(entry.row)
        if wide:
            cells += [
                _text(entry.baseline_cost),
                _text(entry.variant_cost),
                _text(entry.user_share),
            ]
        table.add_row(*cells)
    paper.show(table)
    _explain_mark(paper, rows)
    paper.blank()


def _explain_mark(paper: _Paper, rows: Iterable[Row]) -> None:
    if any(row.within_spread for row in rows):
        paper.line(f"{_MARK} {WITHIN_SPREAD_NOTE}", "dim")


def _builds(paper: _Paper, builds: tuple[BuildFacts, ...]) -> None:
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
        for each in build.files[1:]:
            if each.loaded:
                sizes = map(figures.size, (each.size_bytes, each.text_bytes))
                table.add_row(_text(f"  {clean(each.path)}"), "", "", *map(_text, sizes))
    paper.table(table)
    for build in builds:
        if build.status == BuildStatus.FAILED:
            _tail(paper, f"{clean(build.variant)}: last lines of its log", build.log_tail)
        _tail(paper, f"{clean(build.variant)}: last lines of its check", build.check_tail)


def _tail(paper: _Paper, heading: str, text: str) -> None:
    if text:
        paper.heading(heading)
        paper.show(Padding(Text(words.clean_block(text)), (0, 0, 1, 2)))


def _compare_table(
    result: CompareResult, rows: list[Row], columns: _Columns, *, with_costs: bool
) -> Table:
    table = _new_table()
    _name_column(table, "variant")
    columns.add(table, f"{words.plain_share(result.level)} interval")
    if with_costs:
        _cost_columns(table, result)
    facts = {variant.name: variant for variant in _all_variants(result)}
    if result.variants:
        baseline = result.variants[0]
        cells = columns.baseline(baseline.name)
        table.add_row(*cells, *(_cost_cells(baseline) if with_costs else []))
    for row in rows:
        variant = facts.get(row.name)
        costs = _cost_cells(variant) if with_costs and variant is not None else []
        table.add_row(*columns.cells(row), *costs)
    for failed in result.failed:
        table.add_row(_text(clean(failed.name)), Text("failed", style="bold red"))
    return table


def _cost_table(result: CompareResult) -> Table:
    table = _new_table()
    _name_column(table, "variant")
    _cost_columns(table, result)
    for variant in _all_variants(result):
        table.add_row(_text(clean(variant.name)), *_cost_cells(variant))
    return table


def _cost_columns(table: Table, result: CompareResult) -> None:
    heads = (clean(head) for head in result.score_head)
    for header in (*heads, "user", "system", "wall", "peak memory"):
        table.add_column(header, justify="right", no_wrap=True)


def _cost_cells(variant: VariantFacts) -> list[Text]:
    return [
        *map(_text, figures.score(variant.score)),
        _text(figures.seconds(variant.user_s)),
        _text(figures.seconds(variant.system_s)),
        _text(figures.seconds(variant.wall_s)),
        _text(figures.size(variant.peak_memory_bytes)),
    ]


def _all_variants(result: CompareResult) -> list[VariantFacts]:
    return [*result.variants, *([] if result.twin is None else [result.twin])]
