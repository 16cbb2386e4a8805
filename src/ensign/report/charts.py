"""The charts: speedups as marks or as bars, stacked counts, and speed against a cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ensign.model.comparisons import Direction
from ensign.report import drawing
from ensign.report.drawing import (
    LETTER,
    Canvas,
    Color,
    Frame,
    Scale,
    Type,
    axis_above,
    row_texts,
    width_of,
)
from ensign.report.terminal_page import axis_range
from ensign.report.trade import TradePoint
from ensign.report.view import Row, VariantWorkloads
from ensign.report.words import Span, percent

Box = tuple[float, float, float, float]

_TONES = {
    Direction.FASTER: drawing.FASTER,
    Direction.SLOWER: drawing.SLOWER,
    Direction.UNCLEAR: drawing.UNCLEAR,
}
_BAR, _DOT = 13, 3.6  # the height of a bar, the radius of a relink
_SCATTER_HEIGHT, _LABEL_LETTER, _LABEL_LINE, _RADIUS = 330, 6.3, 13.0, 6.0
_STACK, _THIN_STACK, _BETWEEN, _DOTS_STEP = 19, 6, 6, 48


@dataclass(frozen=True, slots=True)
class Backdrop:
    """References beside the rows: the margin, the twin's interval, the layout spread."""

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


def intervals(rows: Sequence[Row], margin: float | None, title: str) -> Markup:
    """Speedups with intervals on one axis; hollow marks where no difference is shown."""
    chart = _RowsChart.empty([row.span for row in rows], len(rows), Backdrop(margin))
    for index, row in enumerate(rows):
        tone, inside = _tones(row)
        chart.whisker(index, row.span, tone, 3.5)
        if row.span.is_finite:
            place = (chart.scale(row.span.point), chart.mark(index))
            chart.canvas.dot(place, 5, inside, tone, 2.5)
    return chart.svg([(row.label, row.interval) for row in rows], (title, _said(rows)))


def bars(rows: Sequence[Row], backdrop: Backdrop, title: str) -> Markup:
    """Speedups as bars from the baseline, with intervals; hollow where no difference is shown."""
    spans = [*(row.span for row in rows), *filter(None, (backdrop.twin, backdrop.layouts))]
    chart = _RowsChart.empty(spans, len(rows), backdrop)
    for index, row in enumerate(rows):
        tone, inside = _tones(row)
        if row.span.is_finite:
            start, end = sorted((chart.scale(0), chart.scale(row.span.point)))
            corner = (start, chart.mark(index) - _BAR / 2)
            chart.canvas.box(corner, (end - start, _BAR), inside, tone, kind="bar")
        chart.whisker(index, row.span, drawing.INK, 1.75)
    return chart.svg([(row.label, row.interval) for row in rows], (title, _said(rows)))


@dataclass(frozen=True, slots=True)
class Dots:
    """The speedups of one variant's relinks, with the mean's interval, if it has one."""

    label: str
    value: str
    speedups: tuple[float, ...]
    mean: Span | None
    direction: Direction


def dots(rows: Sequence[Dots], margin: float | None, title: str) -> Markup:
    """Every relink as a dot, and below them the mean with its interval."""
    means = [row.mean for row in rows if row.mean is not None]
    spans = [*means, *(Span(x, x, x) for row in rows for x in row.speedups)]
    chart = _RowsChart.empty(spans, len(rows), Backdrop(margin), Frame(_DOTS_STEP))
    for index, row in enumerate(rows):
        tone, y = _TONES[row.direction], chart.mark(index)
        for speedup in row.speedups:
            chart.canvas.dot((chart.scale(speedup), y - 4), _DOT, tone, tone, opacity=0.5)
        if row.mean is not None:
            chart.whisker(index, row.mean, drawing.INK, 2, lower=6)
            if row.mean.is_finite:
                ink = (drawing.INK, drawing.INK)
                chart.canvas.dot((chart.scale(row.mean.point), y + 6), _DOT, *ink)
    text = "; ".join(
        f"{row.label}: {len(row.speedups)} from {percent(min(row.speedups))} to "
        f"{percent(max(row.speedups))}"
        for row in rows
    )
    return chart.svg([(row.label, row.value) for row in rows], (title, text))


def stacks(rows: Sequence[Stack], title: str) -> Markup:
    """Counts as stacked bars, in the colors of the bands, from the worst to the best."""
    thin = _STACK / 2 + 1 + _THIN_STACK if any(row.below for row in rows) else 0
    plot = Frame().plot
    lines = 2 if any(width_of(row.value) > plot / 2 for row in rows) else 1
    frame = Frame(round(Frame(0, texts=lines).mark(0) + _STACK / 2 + thin + _BETWEEN), texts=lines)
    canvas = Canvas(frame, len(rows) * frame.step, top=8)
    for index, row in enumerate(rows):
        _stacked(canvas, row.counts, frame.mark(index), _STACK)
        if row.below:
            _stacked(canvas, row.below, frame.mark(index) + 14, _THIN_STACK, with_counts=False)
    row_texts(canvas, [(row.label, row.value) for row in rows])
    text = "; ".join(f"{row.label}: {row.said or _counts(row)}" for row in rows)
    return canvas.svg((title, text))


def stacks_of(variants: Sequence[VariantWorkloads]) -> tuple[Stack, ...]:
    """Workloads in each band: by the mean, and below by the minimum over the rounds."""
    return tuple(
        Stack(one.label, one.summary, one.counts, tuple(cell.minimum for cell in one.bands))
        for one in variants
    )


def _counts(one: Stack) -> str:
    text = ", ".join(map(str, one.counts))
    return f"{text} (by the minimum {', '.join(map(str, one.below))})" if one.below else text


@dataclass(frozen=True, slots=True)
class _RowsChart:
    """Rows of speedups on one axis."""

    canvas: Canvas
    scale: Scale

    @staticmethod
    def empty(
        spans: Sequence[Span], rows: int, backdrop: Backdrop, frame: Frame | None = None
    ) -> _RowsChart:
        """The axis, and what the rows are seen against."""
        frame = frame or Frame()
        canvas = Canvas(frame, rows * frame.step)
        chart = _RowsChart(canvas, Scale(*axis_range(spans), frame.plot))
        axis_above(canvas, chart.scale)
        chart.against(backdrop)
        return chart

    def mark(self, row: int) -> float:
        """Position of the marks of a row."""
        return self.canvas.frame.mark(row)

    def against(self, backdrop: Backdrop) -> None:
        """Margin and twin as areas, layouts as dashed lines, the baseline as a line."""
        if backdrop.margin is not None:
            self._area(1 / (1 + backdrop.margin) - 1, backdrop.margin, drawing.MARGIN)
        if backdrop.twin is not None and backdrop.twin.is_finite:
            self._area(backdrop.twin.low, backdrop.twin.high, drawing.GRID)
        if backdrop.layouts is not None:
            for end in (backdrop.layouts.low, backdrop.layouts.high):
                self._upright(end, drawing.MUTED, dash="4 4")
        self._upright(0, drawing.INK)

    def whisker(self, row: int, span: Span, tone: Color, width: float, lower: float = 0) -> None:
        """An interval; dotted where an end is not known."""
        y = self.mark(row) + lower
        ends = ((self.scale(span.low), y), (self.scale(span.high), y))
        if span.is_finite:
            self.canvas.line(*ends, tone, width, round_ends=True)
        else:
            self.canvas.line(*ends, tone, 1.5, dash="2 4")

    def svg(self, texts: Sequence[tuple[str, str]], words: tuple[str, str]) -> Markup:
        """With label and value of each row."""
        row_texts(self.canvas, texts)
        return self.canvas.svg(words)

    def _area(self, low: float, high: float, color: Color) -> None:
        start, end = self.scale(low), self.scale(high)
        self.canvas.box((start, 0), (end - start, self.canvas.height), color)

    def _upright(self, share: float, color: Color, dash: str = "") -> None:
        x = self.scale(share)
        self.canvas.line((x, 0), (x, self.canvas.height), color, dash=dash)


def _tones(row: Row) -> tuple[Color, Color]:
    """Colors of its rim and of its inside: paper where no difference is shown."""
    tone = _TONES[row.direction]
    return tone, drawing.PAPER if row.direction is Direction.UNCLEAR else tone


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
        canvas.box(corner, (width, height), drawing.BANDS[rank], drawing.PAPER, kind="bar")
        if with_counts and width >= LETTER * (len(str(count)) + 1):
            look = Type(12, drawing.BAND_TEXTS[rank], "middle", 600)
            canvas.text((start + width / 2, middle), str(count), look)
        start += width


@dataclass(frozen=True, slots=True)
class Label:
    """A text at the middle of its place, in pixels from the lower left."""

    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class TradeCost:
    """Horizontal axis: its title, its value, and whether a point is in front."""

    title: str
    value: Callable[[TradePoint], float | None]
    in_front: Callable[[TradePoint], bool]


def scatter(points: Sequence[TradePoint], cost: TradeCost, title: str) -> Markup:
    """Speedup upwards, the cost to the right, both against the baseline; the front is filled."""
    known = [(point, value) for point in points if (value := cost.value(point)) is not None]
    frame, height = Frame(left=52, right=24), _SCATTER_HEIGHT
    canvas = Canvas(frame, height, top=24, bottom=46)
    across = Scale(*axis_range([Span(value, value, value) for _, value in known]), frame.plot)
    up = Scale(*axis_range([Span(p.speedup, p.speedup, p.speedup) for p, _ in known]), height)
    _grid(canvas, across, up, cost.title)
    places = [(across(value), up(point.speedup)) for point, value in known]
    wanted = [_texts(point, front=cost.in_front(point)) for point, _ in known]
    labels = placed(places, wanted, (frame.plot, height))
    for (point, _), (x, y), label in zip(known, places, labels, strict=True):
        front = cost.in_front(point)
        tone = drawing.FASTER if front else drawing.UNCLEAR
        inside = drawing.FASTER if front else drawing.PAPER
        canvas.dot((x, height - y), 4.7, inside, tone, 2)
        ink = drawing.INK if front else drawing.MUTED
        canvas.text((label.x, height - label.y), label.text, Type(11, ink, "middle"))
    text = "; ".join(
        f"{point.number} {point.label}: speed {percent(point.speedup)}, {percent(value)}"
        for point, value in known
    )
    return canvas.svg((title, text))


def placed(
    points: Sequence[tuple[float, float]],
    texts: Sequence[Sequence[str]],
    size: tuple[float, float],
) -> list[Label]:
    """For each point the first of its texts that fits beside it, or its last one, to the right.

    Nothing covers another label or a point, as far as there is space in the `size` (pixels).
    """
    taken: list[Box] = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in points]
    labels: dict[int, Label] = {}
    for place in sorted(range(len(points)), key=lambda one: -len(texts[one])):
        spots = [spot for text in texts[place] for spot in _spots(points[place], text)]
        free = (spot for spot in spots if _is_free(_box(spot), taken, size))
        label = next(free, _spots(points[place], texts[place][-1])[0])
        taken.append(_box(label))
        labels[place] = label
    return [labels[place] for place in range(len(points))]


def _spots(point: tuple[float, float], text: str) -> list[Label]:
    x, y = point
    side, above = _RADIUS + 2 + _width(text) / 2, _RADIUS + _LABEL_LINE / 2
    slant = _width(text) / 2 + 3
    offsets = (
        (side, 0), (-side, 0), (0, above), (0, -above),
        (slant, above), (-slant, above), (slant, -above), (-slant, -above),
        (side, 1.6 * above), (-side, 1.6 * above), (side, -1.6 * above), (-side, -1.6 * above),
    )  # fmt: skip
    return [Label(text, x + dx, y + dy) for dx, dy in offsets]


def _width(text: str) -> float:
    return len(text) * _LABEL_LETTER


def _box(label: Label) -> Box:
    half = _width(label.text) / 2
    return (label.x - half, label.y - _LABEL_LINE / 2, label.x + half, label.y + _LABEL_LINE / 2)


def _is_free(box: Box, taken: Sequence[Box], size: tuple[float, float]) -> bool:
    left, low, right, high = box
    if left < 0 or low < 0 or right > size[0] or high > size[1]:
        return False
    return all(
        right <= other[0] or other[2] <= left or high <= other[1] or other[3] <= low
        for other in taken
    )


def _texts(point: TradePoint, *, front: bool) -> tuple[str, ...]:
    number = str(point.number)
    return (point.label, number) if front else (number,)


def _grid(canvas: Canvas, across: Scale, up: Scale, title: str) -> None:
    height, look = canvas.height, Type(12, drawing.MUTED, "middle")
    for x, label in across.ticks(5):
        canvas.line((x, 0), (x, height), drawing.GRID)
        canvas.text((x, height + 14), label, look, kind="tick")
    canvas.text((across.pixels / 2, height + 34), title, look, kind="tick")
    for y, label in up.ticks(8):
        canvas.line((0, height - y), (across.pixels, height - y), drawing.GRID)
        canvas.text((-6, height - y), label, Type(12, drawing.MUTED, "end"), kind="tick")
    start = -canvas.frame.left + 4
    canvas.text((start, -14), "speedup", Type(12, drawing.MUTED), kind="tick")
