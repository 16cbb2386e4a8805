"""Curves over a parameter, with bands: axes are logarithmic where values span a wide range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ensign.report import drawing
from ensign.report.curves import CurveGraph, Drawn
from ensign.report.drawing import Canvas, Color, Frame, Type
from ensign.report.terminal_page import round_ticks

_COMPILERS = (drawing.FASTER, drawing.SLOWER, drawing.THIRD, drawing.FOURTH)
_HEIGHT, _LINE, _DASH = 240, 17, "5 4"
_WIDE_RANGE = 20.0
_TICK_LETTER, _TICK_GAP, _MOST_TICKS = 6.8, 10, 6
_DECADE = (1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    pixels: float
    logarithmic: bool

    def __call__(self, value: float) -> float:
        """The place of a value, at the nearest end where it lies outside."""
        low, high = self._at(self.low), self._at(self.high)
        share = (self._at(min(max(value, self.low), self.high)) - low) / (high - low)
        return share * self.pixels

    def _at(self, value: float) -> float:
        return math.log(value) if self.logarithmic else value

    def ticks(self) -> list[float]:
        """Round values."""
        if not self.logarithmic:
            return [tick for tick in round_ticks(self.low, self.high, _MOST_TICKS) if tick >= 0]
        first, last = (math.floor(math.log10(end)) for end in (self.low, self.high))
        powers = [10.0**power for power in range(first, last + 1)]
        many = [step * power for power in powers for step in _DECADE]
        inside = [value for value in many if self.low <= value <= self.high]
        whole = [power for power in powers if self.low <= power <= self.high]
        return inside if len(inside) <= _MOST_TICKS else whole


def curves(graph: CurveGraph) -> Markup:
    """Each curve with its band; the worst build of a compiler is dashed."""
    frame = Frame(left=62, right=26)
    top = 12 + _LINE * len(graph.curves)
    canvas = Canvas(frame, _HEIGHT, top=top, bottom=42)
    across = _axis(graph.values, frame.plot, from_zero=False)
    ends = [end for one in graph.curves for point in one.points for end in _known(point.mean)]
    up = _axis(ends, _HEIGHT, from_zero=True)
    _grid(canvas, across, up, graph)
    for line, one in enumerate(graph.curves):
        color = _COMPILERS[one.rank % len(_COMPILERS)]
        _curve(canvas, one, color, ([across(value) for value in graph.values], up))
        y = line * _LINE - top + 10
        dash = _DASH if one.is_worst else ""
        canvas.path([(-50, y), (-24, y)], color, dash=dash)
        canvas.text((-18, y), one.label, Type(12, drawing.INK))
    text = "; ".join(f"{one.label}: {_said(one, graph)}" for one in graph.curves)
    return canvas.svg((f"{graph.title} over {graph.along}", text))


def _known(value: float) -> tuple[float, ...]:
    return (value,) if 0 < value < math.inf else ()


def _axis(values: Sequence[float], pixels: float, *, from_zero: bool) -> _Axis:
    low, high = min(values, default=1.0), max(values, default=1.0)
    if low > 0 and high / low >= _WIDE_RANGE:
        spare = 1.15 if from_zero else 1.0
        return _Axis(low / spare, high * spare, pixels, logarithmic=True)
    if from_zero:
        return _Axis(0.0, high * 1.1, pixels, logarithmic=False)
    return _Axis(low, high if high > low else low + 1, pixels, logarithmic=False)


def _curve(canvas: Canvas, one: Drawn, color: Color, places: tuple[Sequence[float], _Axis]) -> None:
    across, up = places
    rows = [*zip(across, one.points, strict=True)]
    upper = [(x, _HEIGHT - up(point.high)) for x, point in rows]
    lower = [(x, _HEIGHT - up(point.low)) for x, point in reversed(rows)]
    canvas.path([*upper, *lower], color, 0)
    middle = [(x, _HEIGHT - up(point.mean)) for x, point in rows]
    canvas.path(middle, color, dash=_DASH if one.is_worst else "")
    for place in middle:
        canvas.dot(place, 2.2, color, color)


def _grid(canvas: Canvas, across: _Axis, up: _Axis, graph: CurveGraph) -> None:
    end = -math.inf
    for value, label in zip(graph.values, graph.ticks, strict=True):
        x = across(value)
        half = len(label) * _TICK_LETTER / 2
        canvas.line((x, 0), (x, _HEIGHT), drawing.GRID)
        if x - half >= end + _TICK_GAP:
            look = Type(12, drawing.MUTED, "middle")
            canvas.text((x, _HEIGHT + 14), label, look, kind="tick")
            end = x + half
    for value in up.ticks():
        y = _HEIGHT - up(value)
        canvas.line((0, y), (across.pixels, y), drawing.GRID)
        label = graph.said(value) if value else "0"
        canvas.text((-6, y), label, Type(12, drawing.MUTED, "end"), kind="tick")
    look = Type(12, drawing.MUTED, "middle")
    canvas.text((across.pixels / 2, _HEIGHT + 33), graph.along, look, kind="tick")


def _said(one: Drawn, graph: CurveGraph) -> str:
    return ", ".join(
        f"{value} {graph.said(point.mean)}"
        for value, point in zip(graph.ticks, one.points, strict=True)
    )
