"""The figures of a study's page: each chart for a wide and for a narrow page."""

from __future__ import annotations

from dataclasses import dataclass, replace

from markupsafe import Markup

from ensign.model.comparisons import Direction
from ensign.model.results import Result, VariantLayouts, WorkloadComparison
from ensign.model.units import speedup
from ensign.report import charts, figures
from ensign.report.charts import Backdrop, Dots, Stack
from ensign.report.drawing import NARROW_FRAME, Frame, space_for, wide_frame
from ensign.report.effects import EffectsView
from ensign.report.fresh_links import sd_percent
from ensign.report.scatter import NARROW_FRAME as NARROW_SCATTER
from ensign.report.scatter import WIDE_FRAME as WIDE_SCATTER
from ensign.report.scatter import TradeCost, scatter
from ensign.report.trade import Trade
from ensign.report.view import ResultView, Row, VariantWorkloads
from ensign.report.words import Span, clean, plain_share
from ensign.stats.winner import barred

_MOST_BLOCK_CHARTS = 7
_STACK_STEP, _NARROW_STACK_STEP, _DOTS_STEP = 32, 52, 36


@dataclass(frozen=True, slots=True)
class Pair:
    """The same chart for a wide and for a narrow page."""

    wide: Markup
    narrow: Markup


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with the sentences that stand below it."""

    chart: Pair
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
    said = ["Speedup over the baseline, which is 0; right of the line is faster."]
    said.append("Thin lines are the intervals; a hollow bar means that no difference is shown.")
    if result.margin is not None:
        said.append(f"Light grey: the margin of {plain_share(result.margin)}.")
    if twin is not None and twin.is_finite:
        said.append("Darker grey: the interval of the A/A twin, whose true speedup is 0.")
    if layouts is not None:
        said.append("Between the dashed lines another relink of the baseline alone would lie.")
    if not view.all_bounded:
        said.append("Dotted: too few executions for an interval.")
    wide = wide_frame([row.label for row in view.suite])
    return Figure(
        Pair(
            charts.bars(view.suite, backdrop, wide, title),
            charts.bars(view.suite, backdrop, NARROW_FRAME, title),
        ),
        " ".join(said),
    )


def dots_figure(result: Result, view: ResultView) -> Figure | None:
    """Every relink of every variant, where rounds took turns with them."""
    layouts = result.layouts
    if layouts is None or not layouts.variants:
        return None
    rows = {row.name: row for row in view.suite}
    order = [result.baseline, *(row.name for row in view.compared)]
    shown = [
        _dots(found, rows.get(name)) for name in order if (found := layouts.of(name)) is not None
    ]
    title = f"Speedup of each relink against the mean of {clean(result.baseline)}'s"
    baseline, level = clean(result.baseline), plain_share(result.level)
    once = all(each.execution_sd is None for each in layouts.variants)
    noise = ", with the noise of executions in it" if once else ""
    caption = (
        f"Each dot is a relink ({clean(layouts.kind)}), against the mean of the relinks of "
        f"{baseline}, which has those of its A/A twin, too. Below the dots stand the mean and its "
        f"interval ({level}), at the right the standard deviation between a variant's own layouts"
        f"{noise}. "
        "What a round did to all variants is taken out as far as the others show it, so dots have "
        "some of the others' spread in them."
    )
    wide = wide_frame([row.label for row in shown], right=space_for([row.value for row in shown]))
    wide = replace(wide, step=_DOTS_STEP)
    narrow = replace(NARROW_FRAME, step=_NARROW_STACK_STEP)
    return Figure(
        Pair(
            charts.dots(shown, result.margin, wide, title),
            charts.dots(shown, result.margin, narrow, title),
        ),
        caption,
    )


def _dots(found: VariantLayouts, row: Row | None) -> Dots:
    return Dots(
        label=clean(found.variant) if row is None else row.label,
        value="" if found.sd is None else f"± {sd_percent(found.sd)} %",
        speedups=tuple(speedup(ratio) for ratio in found.ratios),
        mean=None if row is None else row.span,
        direction=Direction.UNCLEAR if row is None else row.direction,
    )


def bands_figure(view: ResultView) -> Pair | None:
    """How many workloads of each build fall into each band of change."""
    stacks = charts.stacks_of([variant for variant in view.variants if variant.bands])
    if not stacks:
        return None
    title = "Number of workloads in each band of estimated speedup"
    return _stacked(stacks, title, (_STACK_STEP, _NARROW_STACK_STEP))


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
    return Figure(_stacked([_split(compared) for compared in pairs], title, (27, 44)), caption)


def effects_figure(effects: EffectsView | None, margin: float | None) -> Pair | None:
    """The main effects on one axis."""
    if effects is None:
        return None
    title = "What each change is worth, over all its matched pairs"
    wide = wide_frame([row.label for row in effects.rows])
    return Pair(
        charts.intervals(effects.rows, margin, wide, title),
        charts.intervals(effects.rows, margin, NARROW_FRAME, title),
    )


def trade_figures(trade: Trade | None) -> tuple[Pair, ...]:
    """Speed against size, and against build time, where these are known."""
    if trade is None:
        return ()
    costs = (
        TradeCost("size of the file", lambda one: one.size_change, lambda one: one.on_size_front),
        TradeCost("time of the build", lambda one: one.time_change, lambda one: one.on_time_front),
    )
    return tuple(
        Pair(
            scatter(trade.points, cost, WIDE_SCATTER, f"Speed against the {cost.title}"),
            scatter(trade.points, cost, NARROW_SCATTER, f"Speed against the {cost.title}"),
        )
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
            chart = charts.intervals(rows, result.margin, NARROW_FRAME, title)
        found.append(Block(variant, chart, is_open=index == 0))
    return found


def _split(compared: WorkloadComparison) -> Stack:
    user = round(100 * compared.user_share)
    # The second and the fifth colour of the bands: grey and blue.
    said = f"{user} % user"
    return Stack(clean(compared.workload), said, (0, 100 - user, 0, 0, user, 0), said=said)


def _stacked(stacks: list[Stack] | tuple[Stack, ...], title: str, steps: tuple[int, int]) -> Pair:
    space = space_for([one.value for one in stacks])
    wide = wide_frame([one.label for one in stacks], right=space)
    wide = Frame(wide.width, wide.left, wide.right, steps[0])
    narrow = Frame(NARROW_FRAME.width, NARROW_FRAME.left, NARROW_FRAME.right, steps[1])
    return Pair(charts.stacks(stacks, wide, title), charts.stacks(stacks, narrow, title))
