"""The charts of rows: speedups with intervals, as marks or as bars, and stacked counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from ensign.model.comparisons import Direction
from ensign.report import palette
from ensign.report.drawing import LETTER, Frame, axis, chart, drawn, texts
from ensign.report.plot import axis_range
from ensign.report.view import Row, VariantWorkloads
from ensign.report.words import Span

_TONES = {
    Direction.FASTER: palette.FASTER.light,
    Direction.SLOWER: palette.SLOWER.light,
    Direction.UNCLEAR: palette.UNCLEAR.light,
}


@dataclass(frozen=True, slots=True)
class Backdrop:
    """What rows are seen against: the margin, the twin's interval, the band of relinks."""

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
    import altair as alt  # noqa: PLC0415  # half a second that only charts need

    domain = axis_range([row.span for row in rows])
    base, x = _rows_on_axis(rows, domain, frame)
    points = (
        base.transform_filter("datum.bounded")
        .mark_point(filled=True, size=80, opacity=1, strokeWidth=2.5, yOffset=frame.drop)
        .encode(
            x=alt.X("point:Q"),
            fill=alt.Fill("inside:N", scale=None),
            stroke=alt.Stroke("tone:N", scale=None),
        )
    )
    tone = alt.Color("tone:N", scale=None)
    layers = [
        *_backdrop(Backdrop(margin), domain),
        *_whiskers(base, x, tone, frame, 3.5),
        points,
        *texts(base, frame),
    ]
    return drawn(alt.layer(*layers), frame, len(rows), (title, _said(rows)))


def bars(rows: Sequence[Row], backdrop: Backdrop, frame: Frame, title: str) -> Markup:
    """Speedups as bars from the baseline, with intervals; hollow where no difference is shown."""
    import altair as alt  # noqa: PLC0415

    spans = [row.span for row in rows]
    domain = axis_range([*spans, *filter(None, (backdrop.twin, backdrop.layouts))])
    base, x = _rows_on_axis(rows, domain, frame)
    filled = (
        base.transform_filter("datum.bounded")
        .mark_bar(height=13, strokeWidth=1.5, yOffset=frame.drop)
        .encode(
            x=alt.X("zero:Q", **x),
            x2="point:Q",
            fill=alt.Fill("inside:N", scale=None),
            stroke=alt.Stroke("tone:N", scale=None),
        )
    )
    ink = alt.value(palette.INK.light)
    layers = [
        *_backdrop(backdrop, domain),
        filled,
        *_whiskers(base, x, ink, frame, 1.75),
        *texts(base, frame),
    ]
    return drawn(alt.layer(*layers), frame, len(rows), (title, _said(rows)))


def stacks(rows: Sequence[Stack], frame: Frame, title: str) -> Markup:
    """Counts as stacked bars, in the colours of the bands, from the worst to the best."""
    import altair as alt  # noqa: PLC0415

    base = [
        {
            "row": str(index),
            "label": frame.name(one.label),
            "value": "" if frame.is_narrow else one.value,
        }
        for index, one in enumerate(rows)
    ]
    y = alt.Y("row:N", axis=None, sort=None)
    has_second = any(one.below for one in rows)
    drop = frame.drop - (4 if has_second and not frame.is_narrow else 0)
    layers = _stacked([one.counts for one in rows], frame, 19, drop)
    if has_second:
        layers += _stacked([one.below for one in rows], frame, 6, drop + 14, with_counts=False)
    layers += texts(chart(base).encode(y=y), frame)
    said = "; ".join(f"{one.label}: {one.said or _counts(one)}" for one in rows)
    return drawn(alt.layer(*layers), frame, len(rows), (title, said), top=8)


def stacks_of(variants: Sequence[VariantWorkloads]) -> tuple[Stack, ...]:
    """Workloads in each band: by the mean, and below by the minimum over the sweeps."""
    return tuple(
        Stack(one.label, one.summary, one.counts, tuple(cell.minimum for cell in one.bands))
        for one in variants
    )


def _counts(one: Stack) -> str:
    said = ", ".join(map(str, one.counts))
    return f"{said} (by the minimum {', '.join(map(str, one.below))})" if one.below else said


def _rows_on_axis(
    rows: Sequence[Row], domain: tuple[float, float], frame: Frame
) -> tuple[Any, dict[str, Any]]:
    """A chart of the rows without marks, and how its horizontal channel is drawn."""
    import altair as alt  # noqa: PLC0415

    data = [_interval_datum(index, row, domain, frame) for index, row in enumerate(rows)]
    base = chart(data).encode(y=alt.Y("row:N", axis=None, sort=None))
    scale = alt.Scale(domain=list(domain), nice=False)
    return base, {"scale": scale, "axis": axis(*domain, frame)}


def _whiskers(base: Any, x: dict[str, Any], color: Any, frame: Frame, width: float) -> list[Any]:
    """Intervals as rules; dotted where an end is not known."""
    import altair as alt  # noqa: PLC0415

    return [
        base.transform_filter("datum.bounded")
        .mark_rule(strokeWidth=width, strokeCap="round", yOffset=frame.drop)
        .encode(x=alt.X("low:Q", **x), x2="high:Q", color=color),
        base.transform_filter("!datum.bounded")
        .mark_rule(strokeWidth=1.5, strokeDash=[2, 4], yOffset=frame.drop)
        .encode(x=alt.X("low:Q", **x), x2="high:Q", color=color),
    ]


def _said(rows: Sequence[Row]) -> str:
    return "; ".join(f"{row.label}: {row.speedup}, {row.interval}" for row in rows)


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
) -> list[Any]:
    import altair as alt  # noqa: PLC0415

    data = [
        datum for index, counts in enumerate(rows) for datum in _parts(index, counts, frame.plot)
    ]
    base = chart(data).encode(y=alt.Y("row:N", axis=None, sort=None))
    scale = alt.Scale(domain=[0, 1], nice=False)
    parts = base.mark_bar(
        height=height, strokeWidth=1.5, stroke=palette.PAPER.light, yOffset=drop
    ).encode(
        x=alt.X("start:Q", scale=scale, axis=None),
        x2="end:Q",
        fill=alt.Fill("fill:N", scale=None),
    )
    if not with_counts:
        return [parts]
    counts = base.mark_text(fontSize=12, fontWeight=600, yOffset=drop).encode(
        x=alt.X("middle:Q", scale=scale, axis=None),
        text="count:N",
        fill=alt.Fill("ink:N", scale=None),
    )
    return [parts, counts]


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


def _backdrop(backdrop: Backdrop, domain: tuple[float, float]) -> list[Any]:
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


def _area(span: Span, domain: tuple[float, float], colour: str) -> Any:
    import altair as alt  # noqa: PLC0415

    ends = {"low": max(domain[0], span.low), "high": min(domain[1], span.high)}
    scale = alt.Scale(domain=list(domain), nice=False)
    rect = chart([ends]).mark_rect(color=colour, opacity=1)
    return rect.encode(x=alt.X("low:Q", scale=scale), x2="high:Q")


def _line(
    place: float, domain: tuple[float, float], colour: str, dash: list[int] | None = None
) -> Any:
    import altair as alt  # noqa: PLC0415

    scale = alt.Scale(domain=list(domain), nice=False)
    rule = chart([{"low": place}]).mark_rule(
        color=colour, strokeWidth=1, **({} if dash is None else {"strokeDash": dash})
    )
    return rule.encode(x=alt.X("low:Q", scale=scale))
