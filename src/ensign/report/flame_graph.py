"""The differential flame graph: functions, what is inlined into them, and what has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from ensign.model.results import STACK_SEPARATOR, FunctionCost, FunctionCosts
from ensign.report import drawing, figures
from ensign.report.drawing import Canvas, Color, Frame, Type
from ensign.report.terminal_page import shortened
from ensign.report.words import clean, percent

CAPTION = (
    "All CPU time of both builds; below each function stands what the compiler inlined into it. A "
    "box is as wide as its time before and after together. Orange: it takes more time than in the "
    "baseline; blue: less; the darker, the more of the whole difference."
)
_STEP, _SIZE, _LETTER, _LETTERS = 15, 9, 5.8, 4
_LEAST_WIDTH = 1.5
# Shares of the whole difference, and the colors from there on: of more time, and of less.
_TONES = ((0.5, 0, 6), (0.2, 1, 5), (0.05, 2, 3))


@dataclass(slots=True)
class _Box:
    """A function within others: its time (ns per operation), and what it adds (a share)."""

    name: str
    before_ns: float = 0.0
    after_ns: float = 0.0
    difference: float = 0.0
    inner: dict[str, _Box] = field(default_factory=dict[str, "_Box"])

    @property
    def size_ns(self) -> float:
        return self.before_ns + self.after_ns

    @property
    def said(self) -> str:
        """For those who point at it."""
        before, after = (
            figures.cost(ns) if ns > 0 else "0" for ns in (self.before_ns, self.after_ns)
        )
        return f"{self.name}: {before} before, {after} after, adds {percent(self.difference)}"

    @property
    def depth(self) -> int:
        return 1 + max((box.depth for box in self.inner.values()), default=0)

    def add(self, row: FunctionCost, names: Sequence[str]) -> None:
        """Time of what the names lead to, which is the outer ones', too."""
        self.before_ns += row.before_ns
        self.after_ns += row.after_ns
        self.difference += row.difference
        if names:
            first, *rest = names
            self.inner.setdefault(first, _Box(first)).add(row, rest)


def flame_graph(costs: FunctionCosts) -> Markup | None:
    """None where there is no debug information."""
    if not costs.by_stack or costs.total is None:
        return None
    root = _Box("all CPU time")
    for row in costs.by_stack:
        first, *others = map(clean, row.name.split(STACK_SEPARATOR))
        root.add(row, [f"{first} [{clean(row.file)}]" if row.file else first, *others])
    whole = abs(costs.total.difference)
    canvas = Canvas(Frame(left=1, right=1), root.depth * _STEP, top=2)
    pixels = canvas.frame.plot / root.size_ns
    for box, x, y in _placed(root, pixels, 0.0, 0):
        width = box.size_ns * pixels
        fill, ink = _colors(box.difference / whole if whole else 0.0)
        canvas.box((x, y * _STEP), (width, _STEP - 1), fill, said=box.said, kind="bar")
        if (letters := int((width - 4) / _LETTER)) >= _LETTERS:
            place = (x + 3, y * _STEP + _STEP / 2)
            canvas.text(place, shortened(box.name, letters), Type(_SIZE, ink), kind="")
    title = f"CPU time by function, of {clean(costs.variant)} beside the baseline"
    return canvas.svg((title, "; ".join(box.said for box in root.inner.values())))


def _placed(box: _Box, pixels: float, x: float, y: int) -> Iterator[tuple[_Box, float, int]]:
    """It and all within, the largest first, from the left; what is too narrow is left out."""
    if box.size_ns * pixels < _LEAST_WIDTH:
        return
    yield box, x, y
    for inner in sorted(box.inner.values(), key=lambda each: -each.size_ns):
        yield from _placed(inner, pixels, x, y + 1)
        x += inner.size_ns * pixels


def _colors(share: float) -> tuple[Color, Color]:
    """Colors of the box and of its text."""
    for least, more, less in _TONES:
        if abs(share) >= least:
            rank = more if share > 0 else less
            return drawing.HEAT[rank], drawing.HEAT_TEXTS[rank]
    return drawing.GRID, drawing.INK
