"""Parts that all charts share: frames, marks, axes, and the inline SVG they are drawn as.

Geometry is fixed here rather than fitted to text, because the reader's fonts are not known. Each
chart is drawn once, as wide as a phone; the page scales it. Nothing needs a browser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.etree import ElementTree as ET

from markupsafe import Markup

from ensign.report.terminal_page import round_ticks, shortened


@dataclass(frozen=True, slots=True)
class Color:
    """One role: the CSS variable's name, its value in light and in dark mode."""

    name: str
    light: str
    dark: str


INK = Color("ink", "#1b2026", "#e7eaed")
MUTED = Color("muted", "#59636e", "#a0aab4")
GRID = Color("grid", "#dde2e7", "#353c44")
MARGIN = Color("margin", "#eceff2", "#262c33")
FASTER = Color("faster", "#0b5fa5", "#74b8f0")
SLOWER = Color("slower", "#b3500b", "#f2a561")
UNCLEAR = Color("unclear", "#66707b", "#98a3ae")
THIRD = Color("third", "#2f7a45", "#7fc995")
FOURTH = Color("fourth", "#7b4397", "#c69add")
PAPER = Color("paper", "#fdfdfc", "#15191e")

BANDS = (
    Color("band-0", "#dc8a35", "#d98236"),
    Color("band-1", "#cdd3d9", "#4b535c"),
    Color("band-2", "#c4dcf1", "#234865"),
    Color("band-3", "#86b9e2", "#33719f"),
    Color("band-4", "#3a7fbc", "#69b0e3"),
    Color("band-5", "#10477f", "#bfe2fb"),
)
# Text on the bands; values differ in the last digit only so that each can be selected.
BAND_TEXTS = (
    Color("band-text-0", "#1b2020", "#101418"),
    Color("band-text-1", "#1b2021", "#f1f4f6"),
    Color("band-text-2", "#1b2022", "#f1f4f7"),
    Color("band-text-3", "#1b2023", "#f1f4f8"),
    Color("band-text-4", "#fefef4", "#101419"),
    Color("band-text-5", "#fefef5", "#10141a"),
)
# Cells of the heat map, from much slower to much faster; unclear ones have the page's own color.
HEAT = (
    Color("heat-0", "#b3500c", "#f2a560"),
    Color("heat-1", "#dc8a36", "#b56a26"),
    Color("heat-2", "#f6d9b8", "#573a1e"),
    Color("heat-3", "#d9e8f6", "#213f58"),
    Color("heat-4", "#86b9e3", "#33719e"),
    Color("heat-5", "#3a7fbd", "#69b0e4"),
    Color("heat-6", "#10477e", "#bfe2fa"),
)
HEAT_TEXTS = (
    Color("heat-text-0", "#fefef6", "#10141b"),
    Color("heat-text-1", "#1b2024", "#fefef6"),
    Color("heat-text-2", "#1b2025", "#f1f4f9"),
    Color("heat-text-3", "#1b2027", "#f1f4fa"),
    Color("heat-text-4", "#1b2028", "#f1f4fb"),
    Color("heat-text-5", "#fefef7", "#10141c"),
    Color("heat-text-6", "#fefef8", "#10141d"),
)
ALL = (
    INK,
    MUTED,
    GRID,
    MARGIN,
    FASTER,
    SLOWER,
    UNCLEAR,
    THIRD,
    FOURTH,
    PAPER,
    *BANDS,
    *BAND_TEXTS,
    *HEAT,
    *HEAT_TEXTS,
)


def variables(*, dark: bool) -> str:
    """CSS declarations of every color for one mode."""
    return "".join(f"--{one.name}:{one.dark if dark else one.light};" for one in ALL)


def chart_rules() -> str:
    """CSS that lets a drawn color follow its variable."""
    return "\n".join(
        f'.chart [{paint}="{one.light}"]{{{paint}:var(--{one.name})}}'
        for one in ALL
        for paint in ("fill", "stroke")
    )


WIDTH = 400  # a phone's: letters are as large there as they are drawn, and larger elsewhere
_FONT = "system-ui, sans-serif"
LETTER = 7.4
_TICK_HALF = 24
_ZERO, _MINUS = 1e-12, "\N{MINUS SIGN}"
_VALUE_LETTER, _GAP, _OTHER_FONT = 6.8, 8, 0.88
_TICK_LETTER, _BASELINE, _USUAL_WEIGHT = 6.6, 0.35, 400
_TEXT_MIDDLE, _TEXT_LINE, _MARK_BELOW = 11, 15, 17


@dataclass(frozen=True, slots=True)
class Frame:
    """Space in pixels: the height of a row, and what is kept free at both sides of the plot.

    Name and value of a row stand above its marks, in so many lines of `texts`.
    """

    step: int = 40
    left: int = 14
    right: int = 14
    texts: int = 1

    @property
    def plot(self) -> int:
        """Width of the plotting area."""
        return WIDTH - self.left - self.right

    def mark(self, row: int) -> float:
        """Position of the marks of a row."""
        return self.text(row, self.texts - 1) + _MARK_BELOW

    def text(self, row: int, line: int = 0) -> float:
        """The middle of a line of text of a row."""
        return row * self.step + _TEXT_MIDDLE + line * _TEXT_LINE


@dataclass(frozen=True, slots=True)
class Type:
    """Style of a text: its size in pixels, its color, where its anchor is, and its weight."""

    size: int
    color: Color
    anchor: str = "start"
    weight: int = _USUAL_WEIGHT


class Canvas:
    """A chart that is being drawn; places are pixels from the upper left of the plot."""

    def __init__(self, frame: Frame, height: float, top: int = 26, bottom: int = 6) -> None:
        self.frame, self.height = frame, height
        self._whole_height = top + height + bottom
        self._plot = ET.Element("g", transform=f"translate({frame.left},{top})")

    def line(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        color: Color,
        width: float = 1,
        *,
        dash: str = "",
        round_ends: bool = False,
    ) -> None:
        """A straight line."""
        look = {"stroke": color.light, "stroke-width": _number(width)}
        if dash:
            look["stroke-dasharray"] = dash
        if round_ends:
            look["stroke-linecap"] = "round"
        ends = zip(("x1", "y1", "x2", "y2"), map(_number, (*start, *end)), strict=True)
        ET.SubElement(self._plot, "line", {**dict(ends), **look})

    def box(
        self,
        corner: tuple[float, float],
        size: tuple[float, float],
        fill: Color,
        rim: Color | None = None,
        *,
        kind: str = "",
        said: str = "",
    ) -> None:
        """A rectangle, from its upper left corner; `kind` is its class, `said` stands on hover."""
        sides = zip(("x", "y", "width", "height"), map(_number, (*corner, *size)), strict=True)
        look = {"fill": fill.light}
        if rim is not None:
            look |= {"stroke": rim.light, "stroke-width": "1.5"}
        if kind:
            look["class"] = kind
        box = ET.SubElement(self._plot, "rect", {**dict(sides), **look})
        if said:
            ET.SubElement(box, "title").text = said

    def path(
        self,
        places: Sequence[tuple[float, float]],
        color: Color,
        width: float = 2,
        *,
        dash: str = "",
    ) -> None:
        """A line through all places; without a width the area that they go around."""
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in places)
        if not width:
            look = {"fill": color.light, "opacity": "0.18"}
            ET.SubElement(self._plot, "polygon", {"points": points, **look})
            return
        look = {"stroke": color.light, "stroke-width": _number(width), "fill": "none"}
        if dash:
            look["stroke-dasharray"] = dash
        ET.SubElement(self._plot, "polyline", {"points": points, **look})

    def dot(
        self,
        place: tuple[float, float],
        radius: float,
        fill: Color,
        rim: Color,
        width: float = 1,
        opacity: float = 1,
    ) -> None:
        """A filled circle with a rim."""
        look = {"fill": fill.light, "stroke": rim.light, "stroke-width": _number(width)}
        if opacity < 1:
            look["opacity"] = _number(opacity)
        x, y = map(_number, place)
        ET.SubElement(self._plot, "circle", {"cx": x, "cy": y, "r": _number(radius), **look})

    def text(
        self,
        place: tuple[float, float],
        said: str,
        look: Type,
        *,
        rim: bool = False,
        kind: str = "said",
    ) -> None:
        """A text whose middle is at that height; a `rim` of paper sets it off from lines."""
        x, y = place
        attributes = {
            "class": kind,
            "x": _number(x),
            "y": _number(y + _BASELINE * look.size),
            "font-size": str(look.size),
            "text-anchor": look.anchor,
            "fill": look.color.light,
        }
        if look.weight != _USUAL_WEIGHT:
            attributes["font-weight"] = str(look.weight)
        if rim:
            attributes |= {
                "stroke": PAPER.light,
                "stroke-width": "4",
                "stroke-linejoin": "round",
                "paint-order": "stroke",
            }
        ET.SubElement(self._plot, "text", attributes).text = said

    def svg(self, words: tuple[str, str]) -> Markup:
        """The inline SVG; `words` are title and description, for those who do not see it."""
        title, description = words
        svg = ET.Element(
            "svg",
            {
                "viewBox": f"0 0 {WIDTH} {_number(self._whole_height)}",
                "role": "img",
                "aria-label": title,
                "font-family": _FONT,
            },
        )
        ET.SubElement(svg, "title").text = title
        ET.SubElement(svg, "desc").text = description
        svg.append(self._plot)
        return Markup(ET.tostring(svg, encoding="unicode"))  # noqa: S704  # ElementTree escapes


def _number(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Scale:
    """From a share to its place: the whole of `low` to `high` on so many pixels."""

    low: float
    high: float
    pixels: float

    def __call__(self, share: float) -> float:
        """The place of a share, at the nearest end where it lies outside."""
        inside = min(max(share, self.low), self.high)
        return (inside - self.low) / (self.high - self.low) * self.pixels

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Place and text of round shares, 0 among them."""
        return [
            (self(share), _tick_text(share)) for share in round_ticks(self.low, self.high, most)
        ]


def _tick_text(share: float) -> str:
    if abs(share) < _ZERO:
        return "0"
    digits = f"{abs(share) * 100:.3f}".rstrip("0").rstrip(".")
    return f"{'+' if share > 0 else _MINUS}{digits} %"


def axis_above(canvas: Canvas, scale: Scale) -> None:
    """Ticks of speedups above the rows, and their light grid; as many as have space."""
    frame = canvas.frame
    space = max(0, _TICK_HALF - frame.left)
    ticks = [
        (x, said) for x, said in scale.ticks(7) if said == "0" or space <= x <= frame.plot - space
    ]
    while _overlap(ticks):
        zero = next((index for index, (_, said) in enumerate(ticks) if said == "0"), 0)
        ticks = ticks[zero % 2 :: 2]
    for x, said in ticks:
        canvas.line((x, 0), (x, canvas.height), GRID)
        canvas.text((x, -12), said, Type(12, MUTED, "middle"), kind="tick")


def _overlap(ticks: Sequence[tuple[float, str]]) -> bool:
    return any(
        next_x - x < (len(said) + len(next_said)) / 2 * _TICK_LETTER
        for (x, said), (next_x, next_said) in pairwise(ticks)
    )


def row_texts(canvas: Canvas, rows: Sequence[tuple[str, str]]) -> None:
    """Name and value above the marks of each row; values that are too long on a line of their own.

    They cross the lines of the plot, so they have a rim of paper.
    """
    frame = canvas.frame
    longest = max((width_of(value) for _, value in rows), default=0.0)
    space = frame.plot if frame.texts > 1 else frame.plot - longest - _GAP
    for row, (label, value) in enumerate(rows):
        name = shortened(label, int(space * _OTHER_FONT / LETTER))
        canvas.text((0, frame.text(row)), name, Type(13, INK), rim=True)
        if not value:
            continue
        if frame.texts > 1:
            canvas.text((0, frame.text(row, 1)), value, Type(12, MUTED), rim=True)
        else:
            look = Type(12, MUTED, "end")
            canvas.text((frame.plot, frame.text(row)), value, look, rim=True)


def width_of(value: str) -> float:
    """Pixels that a value beside a name may take."""
    return len(value) * _VALUE_LETTER
