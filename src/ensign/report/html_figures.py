"""The figures of a study's page: charts with their captions, and the heat map."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ensign.model.comparisons import Direction
from ensign.model.results import CodeLine, Result, VariantLayouts, WorkloadComparison
from ensign.model.units import speedup
from ensign.report import charts, figures, flame_graph
from ensign.report.causes import CauseSection, cause_sections
from ensign.report.charts import Backdrop, Dots, Stack, TradeCost
from ensign.report.curve_charts import curves
from ensign.report.curves import CurvesView, curves_views
from ensign.report.effects import EffectsView
from ensign.report.function_costs import FunctionTable, function_sections
from ensign.report.layouts import sd_percent
from ensign.report.trade import Trade
from ensign.report.view import ResultView, Row, VariantWorkloads
from ensign.report.words import Span, clean, plain_share, signed
from ensign.stats.winner import barred

_MOST_BLOCK_CHARTS = 7
_EDGES = (-0.10, -0.05, 0.0, 0.05, 0.10, 0.20)
_MEANINGS = (
    "slower by 10 % or more", "slower by 5 to 10 %", "slower by up to 5 %",
    "faster by up to 5 %", "faster by 5 to 10 %", "faster by 10 to 20 %", "faster by more",
)  # fmt: skip
UNCLEAR = "unclear"
_MOST_FUNCTIONS = 15


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with the sentences that stand below it."""

    chart: Markup
    caption: str


@dataclass(frozen=True, slots=True)
class Block:
    """The workloads of one variant: its chart, if it has one, stands beside its table."""

    variant: VariantWorkloads
    chart: Markup | None
    is_open: bool


def suite_figure(result: Result, view: ResultView) -> Figure | None:
    """Bars of every build against the baseline."""
    if not view.suite:
        return None
    twin = None if view.twin is None else view.twin.span
    spread = result.layouts.spreads[0] if result.layouts and result.layouts.spreads else None
    layouts = None if spread is None else Span(speedup(spread.high), speedup(spread.low), 0.0)
    backdrop = Backdrop(result.margin, twin, layouts)
    title = f"Speedup of each build against {clean(result.baseline)}, all workloads"
    sentences = ["Speedup over the baseline, which is 0; right of the line is faster."]
    sentences.append(
        "Thin lines are the intervals; a hollow bar means that no difference is shown."
    )
    if result.margin is not None:
        sentences.append(f"Light gray: the margin of {plain_share(result.margin)}.")
    if twin is not None and twin.is_finite:
        sentences.append("Darker gray: the interval of the A/A twin, whose true speedup is 0.")
    if layouts is not None:
        sentences.append("Between the dashed lines another relink of the baseline alone would lie.")
    if not view.all_bounded:
        sentences.append("Dotted: too few executions for an interval.")
    return Figure(charts.bars(view.suite, backdrop, title), " ".join(sentences))


@dataclass(frozen=True, slots=True)
class FunctionBlock:
    """Where a variant's difference lies: a sentence, and for each table its chart.

    `code` has functions by name, with where they spend their time before and after.
    """

    text: str
    tables: list[tuple[FunctionTable, Figure]]
    flame: Figure | None
    code: list[tuple[str, tuple[Sequence[CodeLine], Sequence[CodeLine]]]]


def function_blocks(result: Result) -> list[FunctionBlock]:
    """One for each variant and workload that was looked into."""
    return [
        FunctionBlock(
            section.text,
            [(table, _function_figure(table)) for table in section.tables],
            Figure(flame, flame_graph.CAPTION) if flame else None,
            [(clean(row.name), row.code) for row in costs.by_symbol if any(row.code)],
        )
        for section, costs in zip(function_sections(result), result.functions, strict=True)
        for flame in [flame_graph.flame_graph(costs)]
    ]


def cause_blocks(result: Result) -> list[tuple[CauseSection, Figure]]:
    """One for each workload and way to split the difference."""
    caption = (
        "What each cause adds to the baseline's cost: right of the line it costs more. Hollow: it "
        "is not proven."
    )
    return [
        (section, Figure(charts.intervals(_drawn(section), None, "What each cause adds"), caption))
        for section in cause_sections(result)
    ]


@dataclass(frozen=True, slots=True)
class CurvesBlock:
    """Curves over a parameter: what is said of them, and each figure."""

    view: CurvesView
    figures: tuple[Figure, ...]


def curves_blocks(result: Result) -> list[CurvesBlock]:
    """One for each workload with a parameter, and for each of its scores."""
    dashed = "Dashed: the worst build of a compiler. Shaded: the interval of its distance from "
    return [
        CurvesBlock(
            view,
            tuple(
                Figure(
                    curves(graph),
                    f"{graph.title[:1].upper()}{graph.title[1:]} over {graph.along}. "
                    f"{dashed}{clean(result.baseline)}.",
                )
                for graph in view.graphs
            ),
        )
        for view in curves_views(result)
    ]


def _drawn(section: CauseSection) -> list[Row]:
    return [row.row for row in section.rows if row.row.interval]


def _function_figure(table: FunctionTable) -> Figure:
    rows = [row.row for row in table.rows if row.row.interval][:_MOST_FUNCTIONS]
    title = f"CPU time that each function adds, {table.by}"
    caption = (
        "What each function adds, as a share of the baseline's whole CPU time: right of the line "
        "it takes more than in the baseline. Hollow: it may be nothing."
    )
    return Figure(charts.intervals(rows, None, title), caption)


def dots_figure(result: Result, view: ResultView) -> Figure | None:
    """Every relink of every variant, where rounds took turns with them."""
    layouts = result.layouts
    if layouts is None or not layouts.variants:
        return None
    rows = {row.name: row for row in view.suite}
    order = [result.baseline, *(row.name for row in view.compared)]
    shown = [
        _dots(variant_layouts, rows.get(name))
        for name in order
        if (variant_layouts := layouts.of(name)) is not None
    ]
    title = f"Speedup of each relink against the mean of {clean(result.baseline)}'s"
    baseline, level = clean(result.baseline), plain_share(result.level)
    once = all(variant.execution_sd is None for variant in layouts.variants)
    noise = ", with the noise of executions in it" if once else ""
    caption = (
        f"Each dot is a relink ({clean(layouts.kind)}), against the mean of the relinks of "
        f"{baseline}, which has those of its A/A twin, too. Below the dots stand the mean and its "
        f"interval ({level}), at the right the standard deviation between a variant's own layouts"
        f"{noise}. "
        "What a round did to all variants is taken out as far as the others show it, so dots have "
        "some of the others' spread in them."
    )
    return Figure(charts.dots(shown, result.margin, title), caption)


def _dots(layouts: VariantLayouts, row: Row | None) -> Dots:
    return Dots(
        label=clean(layouts.variant) if row is None else row.label,
        value="" if layouts.sd is None else f"± {sd_percent(layouts.sd)} %",
        speedups=tuple(speedup(ratio) for ratio in layouts.ratios),
        mean=None if row is None else row.span,
        direction=Direction.UNCLEAR if row is None else row.direction,
    )


def bands_chart(view: ResultView) -> Markup | None:
    """Numbers of workloads of each build in each band of change."""
    stacks = charts.stacks_of([variant for variant in view.variants if variant.bands])
    if not stacks:
        return None
    return charts.stacks(stacks, "Number of workloads in each band of estimated speedup")


def user_figure(result: Result, view: ResultView) -> Figure | None:
    """User and kernel time of the fastest build that nothing speaks against, by workload."""
    unfit = barred(result.findings, result.builds)
    best = next((row for row in view.compared if row.name not in unfit), None)
    if best is None:
        return None
    pairs = [
        compared
        for compared in result.workloads
        if compared.comparison.variant == best.name and 0 <= compared.user_share <= 1
    ]
    if not pairs:
        return None
    mean = sum(compared.user_share for compared in pairs) / len(pairs)
    caption = (
        f"{best.label}, the fastest variant: {figures.share(mean)} of its CPU time is user time, "
        "the rest the kernel's (mean over the workloads). A compiler changes the user time alone."
    )
    title = f"Kernel and user time of {best.label}, percent of its CPU time by workload"
    return Figure(charts.stacks([_split(compared) for compared in pairs], title), caption)


def effects_chart(effects: EffectsView | None, margin: float | None) -> Markup | None:
    """The main effects on one axis."""
    if effects is None:
        return None
    title = "What each change is worth, over all its matched pairs"
    return charts.intervals(effects.rows, margin, title)


def trade_charts(trade: Trade | None) -> tuple[Markup, ...]:
    """Speed against size, and against build time, where these are known."""
    if trade is None:
        return ()
    costs = (
        TradeCost("size of the file", lambda one: one.size_change, lambda one: one.on_size_front),
        TradeCost("time of the build", lambda one: one.time_change, lambda one: one.on_time_front),
    )
    return tuple(
        charts.scatter(trade.points, cost, f"Speed against the {cost.title}")
        for cost in costs
        if any(cost.value(point) is not None for point in trade.points)
    )


def blocks(result: Result, view: ResultView) -> list[Block]:
    """The workloads of each variant; the first one stands open, and the fastest have charts.

    Each chart takes its time and its space, and the heat map shows them all.
    """
    found = []
    for index, variant in enumerate(view.variants):
        rows = [compared.row for compared in variant.rows]
        title = f"Speedup of {variant.label} by workload"
        chart = None
        if index < _MOST_BLOCK_CHARTS:
            chart = charts.intervals(rows, result.margin, title)
        found.append(Block(variant, chart, is_open=index == 0))
    return found


def _split(compared: WorkloadComparison) -> Stack:
    user = round(100 * compared.user_share)
    # The second and the fifth color of the bands: gray and blue.
    text = f"{user} % user"
    return Stack(clean(compared.workload), text, (0, 100 - user, 0, 0, user, 0), said=text)


@dataclass(frozen=True, slots=True)
class HeatCell:
    """`tone` is `unclear`, or a rank from 0 (much slower) to 6; `said` stands on hover."""

    tone: str
    text: str
    said: str


@dataclass(frozen=True, slots=True)
class HeatRow:
    """One workload, a cell for each build; None where it was not measured."""

    workload: str
    cells: tuple[HeatCell | None, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Builds from the fastest to the slowest, without the twin; workloads in the study's order."""

    builds: tuple[str, ...]
    rows: tuple[HeatRow, ...]

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """Tone and what it means."""
        return tuple((str(rank), text) for rank, text in enumerate(_MEANINGS))


def heat_map(view: ResultView) -> HeatMap | None:
    """None without workloads; one alone is the suite itself, and has no map either."""
    variants = [variant for variant in view.variants if not variant.is_twin]
    workloads = dict.fromkeys(compared.row.label for one in variants for compared in one.rows)
    if len(workloads) < 2:  # noqa: PLR2004
        return None
    cells = [
        {compared.row.label: _cell(one, compared.row) for compared in one.rows} for one in variants
    ]
    return HeatMap(
        tuple(one.label for one in variants),
        tuple(
            HeatRow(workload, tuple(column.get(workload) for column in cells))
            for workload in workloads
        ),
    )


def _cell(variant: VariantWorkloads, row: Row) -> HeatCell:
    text = f"{row.label}, {variant.label}: {row.speedup} ({row.interval})"
    if row.direction is Direction.UNCLEAR:
        return HeatCell(UNCLEAR, "", text)
    point = row.span.point
    digits = 0 if abs(point) >= 0.0995 else 1  # noqa: PLR2004  # four characters fit
    return HeatCell(str(bisect_left(_EDGES, point)), signed(point, digits), text)
