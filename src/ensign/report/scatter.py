"""Speed against a cost: a labelled point for each build, without overlapping labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ensign.report import palette
from ensign.report.drawing import (
    NARROW,
    WIDE,
    Frame,
    Spec,
    color,
    drawn,
    marks,
    name,
    number,
    percent_axis,
    scale,
)
from ensign.report.plot import Axis, axis_range
from ensign.report.trade import TradePoint
from ensign.report.words import Span, percent

WIDE_FRAME = Frame(WIDE, 62, 26, 1)
NARROW_FRAME = Frame(NARROW, 52, 24, 1)
_HEIGHTS = {WIDE: 380, NARROW: 330}
_LETTER, _LINE, _RADIUS = 6.3, 13.0, 6.0

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Label:
    """A text at the middle of its place, in pixels from the lower left."""

    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class TradeCost:
    """What stands on the horizontal axis: its title, its value, and whether a point is in front."""

    title: str
    value: Callable[[TradePoint], float | None]
    in_front: Callable[[TradePoint], bool]


def scatter(points: Sequence[TradePoint], cost: TradeCost, frame: Frame, title: str) -> Markup:
    """Speedup upwards, the cost to the right, both against the baseline; the front is filled."""
    known = [(point, value) for point in points if (value := cost.value(point)) is not None]
    height = _HEIGHTS[frame.width]
    x = Axis(*axis_range([Span(value, value, value) for _, value in known]), frame.plot)
    y = Axis(*axis_range([Span(p.speedup, p.speedup, p.speedup) for p, _ in known]), height)
    places = [(float(x.column(value)), float(y.column(point.speedup))) for point, value in known]
    wanted = [_texts(point, frame, front=cost.in_front(point)) for point, _ in known]
    labels = placed(places, wanted, (frame.plot, height))
    data = [
        _datum(place, label, front=cost.in_front(point))
        for (point, _), place, label in zip(known, places, labels, strict=True)
    ]
    # Both axes are in pixels, so that the labels stay where they were placed.
    across: Spec = {"scale": _pixels(frame.plot), "axis": None}
    up: Spec = {"scale": _pixels(height), "axis": None}
    dots = marks(
        data,
        {"type": "point", "filled": True, "size": 70, "opacity": 1, "strokeWidth": 2},
        x=number("x", **across),
        y=number("y", **up),
        fill=color("inside"),
        stroke=color("tone"),
    )
    names = marks(
        data,
        {"type": "text", "fontSize": 11},
        x=number("labelX", **across),
        y=number("labelY", **up),
        text=name("label"),
        fill=color("ink"),
    )
    picture: Spec = {
        "layer": [_grid(x, y, cost.title), {"layer": [dots, names]}],
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }
    said = "; ".join(
        f"{point.number} {point.label}: speed {percent(point.speedup)}, {percent(value)}"
        for point, value in known
    )
    return drawn(picture, frame, height, (title, said), top=24, bottom=46)


def placed(
    points: Sequence[tuple[float, float]],
    texts: Sequence[Sequence[str]],
    size: tuple[float, float],
) -> list[Label]:
    """For each point the first of its texts that fits beside it, or its last one, to the right.

    Nothing covers another label or a point, as far as there is space in the `size` (pixels).
    """
    taken: list[Box] = [(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in points]
    found: dict[int, Label] = {}
    for place in sorted(range(len(points)), key=lambda one: -len(texts[one])):
        spots = [spot for text in texts[place] for spot in _spots(points[place], text)]
        free = (spot for spot in spots if _is_free(_box(spot), taken, size))
        label = next(free, _spots(points[place], texts[place][-1])[0])
        taken.append(_box(label))
        found[place] = label
    return [found[place] for place in range(len(points))]


def _spots(point: tuple[float, float], text: str) -> list[Label]:
    x, y = point
    side, above = _RADIUS + 2 + _width(text) / 2, _RADIUS + _LINE / 2
    slant = _width(text) / 2 + 3
    offsets = (
        (side, 0), (-side, 0), (0, above), (0, -above),
        (slant, above), (-slant, above), (slant, -above), (-slant, -above),
        (side, 1.6 * above), (-side, 1.6 * above), (side, -1.6 * above), (-side, -1.6 * above),
    )  # fmt: skip
    return [Label(text, x + dx, y + dy) for dx, dy in offsets]


def _width(text: str) -> float:
    return len(text) * _LETTER


def _box(label: Label) -> Box:
    half = _width(label.text) / 2
    return (label.x - half, label.y - _LINE / 2, label.x + half, label.y + _LINE / 2)


def _is_free(box: Box, taken: Sequence[Box], size: tuple[float, float]) -> bool:
    left, low, right, high = box
    if left < 0 or low < 0 or right > size[0] or high > size[1]:
        return False
    return all(
        right <= other[0] or other[2] <= left or high <= other[1] or other[3] <= low
        for other in taken
    )


def _texts(point: TradePoint, frame: Frame, *, front: bool) -> tuple[str, ...]:
    number = str(point.number)
    return (point.label, number) if front and frame.width == WIDE else (number,)


def _datum(place: tuple[float, float], label: Label, *, front: bool) -> dict[str, object]:
    return {
        "x": place[0],
        "y": place[1],
        "label": label.text,
        "labelX": label.x,
        "labelY": label.y,
        "tone": palette.FASTER.light if front else palette.UNCLEAR.light,
        "inside": palette.FASTER.light if front else palette.PAPER.light,
        "ink": palette.INK.light if front else palette.MUTED.light,
    }


def _pixels(length: float) -> Spec:
    return {**scale(0, length), "zero": False}


def _grid(x: Axis, y: Axis, title: str) -> Spec:
    looks = {
        "titleColor": palette.MUTED.light,
        "titleFontWeight": "normal",
        "titleFontSize": 12,
    }
    across = percent_axis("bottom", x.ticks(7), title=title, titlePadding=8, **looks)
    up = percent_axis(
        "left", y.ticks(8), title="speedup", titleAngle=0, titleAlign="left", titleX=0, titleY=-10,
        titleBaseline="bottom", **looks,
    )  # fmt: skip
    return marks(
        [{"x": 0, "y": 0}],
        {"type": "point", "opacity": 0, "color": palette.GRID.light},
        x=number("x", scale=scale(x.low, x.high), axis=across),
        y=number("y", scale=scale(y.low, y.high), axis=up),
    )
