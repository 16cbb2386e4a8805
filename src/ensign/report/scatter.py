"""Speed against a cost: a labelled point for each build, without overlapping labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ensign.report import palette
from ensign.report.drawing import NARROW, WIDE, Canvas, Frame, Scale, Type
from ensign.report.plot import axis_range
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
    canvas = Canvas(frame, height, top=24, bottom=46)
    across = Scale(*axis_range([Span(value, value, value) for _, value in known]), frame.plot)
    up = Scale(*axis_range([Span(p.speedup, p.speedup, p.speedup) for p, _ in known]), height)
    _grid(canvas, across, up, cost.title)
    places = [(across(value), up(point.speedup)) for point, value in known]
    wanted = [_texts(point, frame, front=cost.in_front(point)) for point, _ in known]
    labels = placed(places, wanted, (frame.plot, height))
    for (point, _), (x, y), label in zip(known, places, labels, strict=True):
        front = cost.in_front(point)
        tone = palette.FASTER if front else palette.UNCLEAR
        inside = palette.FASTER if front else palette.PAPER
        canvas.dot((x, height - y), 4.7, inside, tone, 2)
        ink = palette.INK if front else palette.MUTED
        canvas.text((label.x, height - label.y), label.text, Type(11, ink, "middle"))
    said = "; ".join(
        f"{point.number} {point.label}: speed {percent(point.speedup)}, {percent(value)}"
        for point, value in known
    )
    return canvas.drawn((title, said))


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


def _grid(canvas: Canvas, across: Scale, up: Scale, title: str) -> None:
    height, look = canvas.height, Type(12, palette.MUTED, "middle")
    for x, said in across.ticks(7 if canvas.frame.width == WIDE else 5):
        canvas.line((x, 0), (x, height), palette.GRID)
        canvas.text((x, height + 14), said, look, kind="tick")
    canvas.text((across.pixels / 2, height + 34), title, look, kind="tick")
    for y, said in up.ticks(8):
        canvas.line((0, height - y), (across.pixels, height - y), palette.GRID)
        canvas.text((-6, height - y), said, Type(12, palette.MUTED, "end"), kind="tick")
    start = -canvas.frame.left + 4
    canvas.text((start, -14), "speedup", Type(12, palette.MUTED), kind="tick")
