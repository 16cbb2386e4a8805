"""The charts of rows: speedups with intervals, as marks or as bars, and stacked counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ensign.model.comparisons import Direction
from ensign.report import palette
from ensign.report.drawing import (
    BY_ROW,
    LETTER,
    Frame,
    Spec,
    axis,
    color,
    drawn,
    marks,
    name,
    number,
    scale,
    texts,
)
from ensign.report.plot import axis_range
from ensign.report.view import Row, VariantWorkloads
from ensign.report.words import Span, percent

_TONES = {
    Direction.FASTER: palette.FASTER.light,
    Direction.SLOWER: palette.SLOWER.light,
    Direction.UNCLEAR: palette.UNCLEAR.light,
}


@dataclass(frozen=True, slots=True)
class Backdrop:
    """What rows are seen against: the margin, the twin's interval, the layout spread."""

    margin: float | None = None
    twin: Span | None = None
    layouts: Span | None = None


@dataclass(frozen=True, slots=True)
class Stack:
    """One stacked bar; `below` is a thinner second one, of the same colours.

    `said` is its text alternative, where the counts alone do not say what they are.
    """

    label: str
    value: str
    counts: tuple[int, ...]
    below: tuple[int, ...] = ()
    said: str = ""


def intervals(rows: Sequence[Row], margin: float | None, frame: Frame, title: str) -> Markup:
    """Speedups with intervals on one axis; hollow marks where no difference is shown."""
    domain = axis_range([row.span for row in rows])
    data = _interval_data(rows, domain, frame)
    mark = {
        "type": "point",
        "filled": True,
        "size": 80,
        "opacity": 1,
        "strokeWidth": 2.5,
        "yOffset": frame.drop,
    }
    tones = {"fill": color("inside"), "stroke": color("tone")}
    layers = [
        *_backdrop(Backdrop(margin), domain),
        *_whiskers(data, _along("low", domain, frame), color("tone"), frame, 3.5),
        marks(data, mark, "datum.bounded", x=number("point"), y=BY_ROW, **tones),
        *texts(data, frame),
    ]
    return drawn({"layer": layers}, frame, len(rows), (title, _said(rows)))


def bars(rows: Sequence[Row], backdrop: Backdrop, frame: Frame, title: str) -> Markup:
    """Speedups as bars from the baseline, with intervals; hollow where no difference is shown."""
    spans = [row.span for row in rows]
    domain = axis_range([*spans, *filter(None, (backdrop.twin, backdrop.layouts))])
    data = _interval_data(rows, domain, frame)
    mark = {"type": "bar", "height": 13, "strokeWidth": 1.5, "yOffset": frame.drop}
    ends = {"x": _along("zero", domain, frame), "x2": {"field": "point"}}
    tones = {"fill": color("inside"), "stroke": color("tone")}
    ink = {"value": palette.INK.light}
    layers = [
        *_backdrop(backdrop, domain),
        marks(data, mark, "datum.bounded", y=BY_ROW, **ends, **tones),
        *_whiskers(data, _along("low", domain, frame), ink, frame, 1.75),
        *texts(data, frame),
    ]
    return drawn({"layer": layers}, frame, len(rows), (title, _said(rows)))


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
    domain = axis_range([*means, *(Span(x, x, x) for row in rows for x in row.speedups)])
    names = [
        {"row": str(index), "label": frame.name(row.label), "value": row.value}
        for index, row in enumerate(rows)
    ]
    places: list[dict[str, object]] = [
        {"row": str(index), "point": x, "tone": _TONES[row.direction]}
        for index, row in enumerate(rows)
        for x in row.speedups
    ]
    ends = [
        {
            "row": str(index),
            "low": max(row.mean.low, domain[0]),
            "high": min(row.mean.high, domain[1]),
            "point": row.mean.point,
            "bounded": row.mean.is_finite,
            "tone": palette.INK.light,
        }
        for index, row in enumerate(rows)
        if row.mean is not None
    ]
    dot = {"type": "point", "filled": True, "size": 40, "opacity": 0.5, "yOffset": frame.drop - 4}
    tick = {"type": "point", "filled": True, "size": 40, "opacity": 1, "yOffset": frame.drop + 6}
    below = Frame(frame.width, frame.left, frame.right, frame.step, frame.lower + 6)
    tones = {"fill": color("tone"), "stroke": color("tone")}
    layers = [
        *_backdrop(Backdrop(margin), domain),
        marks(places, dot, x=_along("point", domain, frame), y=BY_ROW, **tones),
        *_whiskers(ends, _along("low", domain, frame), color("tone"), below, 2),
        marks(ends, tick, "datum.bounded", x=number("point"), y=BY_ROW, **tones),
        *texts(names, frame),
    ]
    said = "; ".join(
        f"{row.label}: {len(row.speedups)} from {percent(min(row.speedups))} to "
        f"{percent(max(row.speedups))}"
        for row in rows
    )
    return drawn({"layer": layers}, frame, len(rows), (title, said))


def stacks(rows: Sequence[Stack], frame: Frame, title: str) -> Markup:
    """Counts as stacked bars, in the colours of the bands, from the worst to the best."""
    labels = [
        {
            "row": str(index),
            "label": frame.name(one.label),
            "value": "" if frame.is_narrow else one.value,
        }
        for index, one in enumerate(rows)
    ]
    has_second = any(one.below for one in rows)
    drop = frame.drop - (4 if has_second and not frame.is_narrow else 0)
    layers = _stacked([one.counts for one in rows], frame, 19, drop)
    if has_second:
        layers += _stacked([one.below for one in rows], frame, 6, drop + 14, with_counts=False)
    layers += texts(labels, frame)
    said = "; ".join(f"{one.label}: {one.said or _counts(one)}" for one in rows)
    return drawn({"layer": layers}, frame, len(rows), (title, said), top=8)


def stacks_of(variants: Sequence[VariantWorkloads]) -> tuple[Stack, ...]:
    """Workloads in each band: by the mean, and below by the minimum over the rounds."""
    return tuple(
        Stack(one.label, one.summary, one.counts, tuple(cell.minimum for cell in one.bands))
        for one in variants
    )


def _counts(one: Stack) -> str:
    said = ", ".join(map(str, one.counts))
    return f"{said} (by the minimum {', '.join(map(str, one.below))})" if one.below else said


def _along(field: str, domain: tuple[float, float], frame: Frame) -> Spec:
    return number(field, scale=scale(*domain), axis=axis(*domain, frame))


def _whiskers(
    data: Sequence[dict[str, object]], low: Spec, tone: Spec, frame: Frame, width: float
) -> list[Spec]:
    """Intervals as rules; dotted where an end is not known."""
    known = {"strokeWidth": width, "strokeCap": "round"}
    unknown = {"strokeWidth": 1.5, "strokeDash": [2, 4]}
    return [
        marks(
            data,
            {"type": "rule", **look, "yOffset": frame.drop},
            where,
            x=low,
            x2={"field": "high"},
            y=BY_ROW,
            color=tone,
        )
        for where, look in (("datum.bounded", known), ("!datum.bounded", unknown))
    ]


def _said(rows: Sequence[Row]) -> str:
    return "; ".join(f"{row.label}: {row.speedup}, {row.interval}" for row in rows)


def _interval_data(
    rows: Sequence[Row], domain: tuple[float, float], frame: Frame
) -> list[dict[str, object]]:
    return [_interval_datum(index, row, domain, frame) for index, row in enumerate(rows)]


def _interval_datum(
    index: int, row: Row, domain: tuple[float, float], frame: Frame
) -> dict[str, object]:
    span = row.span
    tone = _TONES[row.direction]
    return {
        "row": str(index),
        "label": frame.name(row.label),
        "value": row.interval,
        "zero": 0,
        "low": max(span.low, domain[0]),
        "high": min(span.high, domain[1]),
        "point": min(max(span.point, domain[0]), domain[1]),
        "bounded": span.is_finite,
        "tone": tone,
        "inside": palette.PAPER.light if row.direction is Direction.UNCLEAR else tone,
    }


def _stacked(
    rows: Sequence[tuple[int, ...]],
    frame: Frame,
    height: int,
    drop: int,
    *,
    with_counts: bool = True,
) -> list[Spec]:
    data = [
        datum for index, counts in enumerate(rows) for datum in _parts(index, counts, frame.plot)
    ]
    along = {"scale": scale(0, 1), "axis": None}
    bar = {
        "type": "bar",
        "height": height,
        "strokeWidth": 1.5,
        "stroke": palette.PAPER.light,
        "yOffset": drop,
    }
    ends = {"x": number("start", **along), "x2": {"field": "end"}}
    layers = [marks(data, bar, y=BY_ROW, **ends, fill=color("fill"))]
    if with_counts:
        count = {"type": "text", "fontSize": 12, "fontWeight": 600, "yOffset": drop}
        place = {"x": number("middle", **along), "y": BY_ROW}
        layers.append(marks(data, count, **place, text=name("count"), fill=color("ink")))
    return layers


def _parts(index: int, counts: tuple[int, ...], width: int) -> list[dict[str, object]]:
    total = sum(counts)
    data: list[dict[str, object]] = []
    start = 0
    for rank, count in enumerate(counts):
        if count:
            share = count / total
            fits = share * width >= LETTER * (len(str(count)) + 1)
            data.append(
                {
                    "row": str(index),
                    "start": start / total,
                    "end": (start + count) / total,
                    "middle": (start + count / 2) / total,
                    "count": str(count) if fits else "",
                    "fill": palette.BANDS[rank].light,
                    "ink": palette.BAND_TEXTS[rank].light,
                }
            )
        start += count
    return data


def _backdrop(backdrop: Backdrop, domain: tuple[float, float]) -> list[Spec]:
    layers = []
    if backdrop.margin is not None:
        ends = Span(1 / (1 + backdrop.margin) - 1, backdrop.margin, 0.0)
        layers.append(_area(ends, domain, palette.MARGIN.light))
    if backdrop.twin is not None and backdrop.twin.is_finite:
        layers.append(_area(backdrop.twin, domain, palette.GRID.light))
    if backdrop.layouts is not None:
        layers += [
            _line(end, domain, palette.MUTED.light, dash=[4, 4])
            for end in (backdrop.layouts.low, backdrop.layouts.high)
        ]
    return [*layers, _line(0.0, domain, palette.INK.light)]


def _area(span: Span, domain: tuple[float, float], tone: str) -> Spec:
    ends = {"low": max(domain[0], span.low), "high": min(domain[1], span.high)}
    mark = {"type": "rect", "color": tone, "opacity": 1}
    return marks([ends], mark, x=number("low", scale=scale(*domain)), x2={"field": "high"})


def _line(
    place: float, domain: tuple[float, float], tone: str, dash: list[int] | None = None
) -> Spec:
    dashed = {} if dash is None else {"strokeDash": dash}
    mark = {"type": "rule", "color": tone, "strokeWidth": 1, **dashed}
    return marks([{"low": place}], mark, x=number("low", scale=scale(*domain)))
