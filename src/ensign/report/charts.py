"""The charts of rows: speedups with intervals, as marks or as bars, and stacked counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ensign.model.comparisons import Direction
from ensign.report import palette
from ensign.report.drawing import (
    LETTER,
    Canvas,
    Frame,
    Scale,
    Type,
    axis_above,
    row_texts,
)
from ensign.report.palette import Colour
from ensign.report.plot import axis_range
from ensign.report.view import Row, VariantWorkloads
from ensign.report.words import Span, percent

_TONES = {
    Direction.FASTER: palette.FASTER,
    Direction.SLOWER: palette.SLOWER,
    Direction.UNCLEAR: palette.UNCLEAR,
}
_BAR, _DOT = 13, 3.6  # the height of a bar, the radius of a relink


@dataclass(frozen=True, slots=True)
class Backdrop:
    """What rows are seen against: the margin, the twin's interval, the layout spread."""

    margin: float | None = None
    twin: Span | None = None
    layouts: Span | None = None


@dataclass(frozen=True, slots=True)
class Stack:
    """One stacked bar; `below` is a thinner second one, of the same colors.

    `said` is its text alternative, where the counts alone do not say what they are.
    """

    label: str
    value: str
    counts: tuple[int, ...]
    below: tuple[int, ...] = ()
    said: str = ""


def intervals(rows: Sequence[Row], margin: float | None, frame: Frame, title: str) -> Markup:
    """Speedups with intervals on one axis; hollow marks where no difference is shown."""
    chart = _RowsChart.begun([row.span for row in rows], len(rows), frame, Backdrop(margin))
    for index, row in enumerate(rows):
        tone, inside = _tones(row)
        chart.whisker(index, row.span, tone, 3.5)
        if row.span.is_finite:
            place = (chart.scale(row.span.point), chart.middle(index))
            chart.canvas.dot(place, 5, inside, tone, 2.5)
    return chart.drawn([(row.label, row.interval) for row in rows], (title, _said(rows)))


def bars(rows: Sequence[Row], backdrop: Backdrop, frame: Frame, title: str) -> Markup:
    """Speedups as bars from the baseline, with intervals; hollow where no difference is shown."""
    spans = [*(row.span for row in rows), *filter(None, (backdrop.twin, backdrop.layouts))]
    chart = _RowsChart.begun(spans, len(rows), frame, backdrop)
    for index, row in enumerate(rows):
        tone, inside = _tones(row)
        if row.span.is_finite:
            start, end = sorted((chart.scale(0), chart.scale(row.span.point)))
            corner = (start, chart.middle(index) - _BAR / 2)
            chart.canvas.box(corner, (end - start, _BAR), inside, tone, kind="bar")
        chart.whisker(index, row.span, palette.INK, 1.75)
    return chart.drawn([(row.label, row.interval) for row in rows], (title, _said(rows)))


@dataclass(frozen=True, slots=True)
class Dots:
    """The speedups of one variant's relinks, with the mean's interval, if it has one."""

    label: str
    value: str
    speedups: tuple[float, ...]
    mean: Span | None
    direction: Direction


def dots(rows: Sequence[Dots], margin: float | None, frame: Frame, title: str) -> Markup:
    """Every relink as a dot, and below them the mean with its interval."""
    means = [row.mean for row in rows if row.mean is not None]
    spans = [*means, *(Span(x, x, x) for row in rows for x in row.speedups)]
    chart = _RowsChart.begun(spans, len(rows), frame, Backdrop(margin))
    for index, row in enumerate(rows):
        tone, y = _TONES[row.direction], chart.middle(index)
        for speedup in row.speedups:
            chart.canvas.dot((chart.scale(speedup), y - 4), _DOT, tone, tone, opacity=0.5)
        if row.mean is not None:
            chart.whisker(index, row.mean, palette.INK, 2, lower=6)
            if row.mean.is_finite:
                ink = (palette.INK, palette.INK)
                chart.canvas.dot((chart.scale(row.mean.point), y + 6), _DOT, *ink)
    said = "; ".join(
        f"{row.label}: {len(row.speedups)} from {percent(min(row.speedups))} to "
        f"{percent(max(row.speedups))}"
        for row in rows
    )
    return chart.drawn([(row.label, row.value) for row in rows], (title, said))


def stacks(rows: Sequence[Stack], frame: Frame, title: str) -> Markup:
    """Counts as stacked bars, in the colors of the bands, from the worst to the best."""
    canvas = Canvas(frame, len(rows) * frame.step, top=8)
    has_second = any(one.below for one in rows)
    drop = frame.drop - (4 if has_second and not frame.is_narrow else 0)
    for index, one in enumerate(rows):
        middle = (index + 0.5) * frame.step + drop
        _stacked(canvas, one.counts, middle, 19)
        if one.below:
            _stacked(canvas, one.below, middle + 14, 6, with_counts=False)
    row_texts(canvas, [(one.label, "" if frame.is_narrow else one.value) for one in rows])
    said = "; ".join(f"{one.label}: {one.said or _counts(one)}" for one in rows)
    return canvas.drawn((title, said))


def stacks_of(variants: Sequence[VariantWorkloads]) -> tuple[Stack, ...]:
    """Workloads in each band: by the mean, and below by the minimum over the rounds."""
    return tuple(
        Stack(one.label, one.summary, one.counts, tuple(cell.minimum for cell in one.bands))
        for one in variants
    )


def _counts(one: Stack) -> str:
    said = ", ".join(map(str, one.counts))
    return f"{said} (by the minimum {', '.join(map(str, one.below))})" if one.below else said


@dataclass(frozen=True, slots=True)
class _RowsChart:
    """Rows of speedups on one axis."""

    canvas: Canvas
    scale: Scale

    @staticmethod
    def begun(spans: Sequence[Span], rows: int, frame: Frame, backdrop: Backdrop) -> _RowsChart:
        """The axis, and what the rows are seen against."""
        canvas = Canvas(frame, rows * frame.step)
        chart = _RowsChart(canvas, Scale(*axis_range(spans), frame.plot))
        axis_above(canvas, chart.scale)
        chart.against(backdrop)
        return chart

    def middle(self, row: int) -> float:
        """Where the marks of a row stand."""
        return (row + 0.5) * self.canvas.frame.step + self.canvas.frame.drop

    def against(self, backdrop: Backdrop) -> None:
        """Margin and twin as areas, layouts as dashed lines, the baseline as a line."""
        if backdrop.margin is not None:
            self._area(1 / (1 + backdrop.margin) - 1, backdrop.margin, palette.MARGIN)
        if backdrop.twin is not None and backdrop.twin.is_finite:
            self._area(backdrop.twin.low, backdrop.twin.high, palette.GRID)
        if backdrop.layouts is not None:
            for end in (backdrop.layouts.low, backdrop.layouts.high):
                self._upright(end, palette.MUTED, dash="4 4")
        self._upright(0, palette.INK)

    def whisker(self, row: int, span: Span, tone: Colour, width: float, lower: float = 0) -> None:
        """An interval; dotted where an end is not known."""
        y = self.middle(row) + lower
        ends = ((self.scale(span.low), y), (self.scale(span.high), y))
        if span.is_finite:
            self.canvas.line(*ends, tone, width, round_ends=True)
        else:
            self.canvas.line(*ends, tone, 1.5, dash="2 4")

    def drawn(self, texts: Sequence[tuple[str, str]], words: tuple[str, str]) -> Markup:
        """With label and value of each row."""
        row_texts(self.canvas, texts)
        return self.canvas.drawn(words)

    def _area(self, low: float, high: float, color: Colour) -> None:
        start, end = self.scale(low), self.scale(high)
        self.canvas.box((start, 0), (end - start, self.canvas.height), color)

    def _upright(self, share: float, color: Colour, dash: str = "") -> None:
        x = self.scale(share)
        self.canvas.line((x, 0), (x, self.canvas.height), color, dash=dash)


def _tones(row: Row) -> tuple[Colour, Colour]:
    """Of its rim, and of what is inside: paper where no difference is shown."""
    tone = _TONES[row.direction]
    return tone, palette.PAPER if row.direction is Direction.UNCLEAR else tone


def _said(rows: Sequence[Row]) -> str:
    return "; ".join(f"{row.label}: {row.speedup}, {row.interval}" for row in rows)


def _stacked(
    canvas: Canvas, counts: tuple[int, ...], middle: float, height: int, *, with_counts: bool = True
) -> None:
    total, start = sum(counts), 0.0
    for rank, count in enumerate(counts):
        width = count / total * canvas.frame.plot if total else 0
        if not count:
            continue
        corner = (start, middle - height / 2)
        canvas.box(corner, (width, height), palette.BANDS[rank], palette.PAPER, kind="bar")
        if with_counts and width >= LETTER * (len(str(count)) + 1):
            look = Type(12, palette.BAND_TEXTS[rank], "middle", 600)
            canvas.text((start + width / 2, middle), str(count), look)
        start += width
