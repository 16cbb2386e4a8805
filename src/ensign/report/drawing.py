"""What all charts share: frames, marks, axes, and drawing them as inline SVG.

A chart is a Vega-Lite specification, written as its documentation does; vl-convert draws it.

Geometry is fixed here rather than fitted to text, because the reader's fonts are not known.
Nothing needs a browser.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup, escape

from ensign.report import palette
from ensign.report.plot import Axis, shortened

WIDE = 760
NARROW = 344
_FONT = "system-ui, sans-serif"
LETTER = 7.4
_LONGEST = 34
_TICK_HALF = 24
_ZERO = 1e-12
_MOST_NARROW = 27
_NAME_PIXELS = 196
_VALUE_LETTER, _GAP, _OTHER_FONT = 6.8, 8, 0.88
_TICK = (
    "datum.value === 0 ? '0' : (datum.value > 0 ? '+' : '\N{MINUS SIGN}')"
    " + format(abs(datum.value) * 100, '.3~f') + ' %'"
)
Spec = dict[str, Any]
BY_ROW: Final[Spec] = {"field": "row", "type": "nominal", "axis": None, "sort": None}
_SIZE = re.compile(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>')


@dataclass(frozen=True, slots=True)
class Frame:
    """Where things are: total width, space for names and values beside the plot, row height.

    A narrow frame has name and value above each row instead of beside it. Marks stand so much
    `lower` than the middle of their row.
    """

    width: int
    left: int
    right: int
    step: int
    lower: int = 0

    @property
    def plot(self) -> int:
        """Width of the plotting area in pixels."""
        return self.width - self.left - self.right

    @property
    def is_narrow(self) -> bool:
        """Whether names and values stand above the rows."""
        return self.width <= NARROW

    @property
    def drop(self) -> int:
        """How far marks stand below the middle of their row, to leave space for the name."""
        return self.lower + (8 if self.is_narrow else 0)

    def name(self, label: str) -> str:
        """The label, as long as there is space."""
        return shortened(label, _MOST_NARROW if self.is_narrow else _LONGEST)


NARROW_FRAME = Frame(NARROW, 14, 14, 44)


def wide_frame(labels: Sequence[str], right: int = 150) -> Frame:
    """A frame with space for the longest label at the left."""
    longest = min(_LONGEST, max(map(len, labels), default=0))
    return Frame(WIDE, round(longest * LETTER) + 18, right, 27)


def space_for(values: Sequence[str]) -> int:
    """Pixels that the longest of the values takes at the right of a wide frame."""
    return round(max(map(len, values), default=0) * _VALUE_LETTER) + 14 + _GAP


def marks(
    values: Sequence[Mapping[str, object]], mark: Spec, where: str = "", /, **at: Spec
) -> Spec:
    """A layer: a mark for each of the values that pass `where`, each channel `at` its place."""
    layer: Spec = {"data": {"values": list(values)}, "mark": mark, "encoding": at}
    if where:
        layer["transform"] = [{"filter": where}]
    return layer


def number(field: str, **more: object) -> Spec:
    """A channel by a number of the data."""
    return {"field": field, "type": "quantitative", **more}


def name(field: str, **more: object) -> Spec:
    """A channel by a name of the data."""
    return {"field": field, "type": "nominal", **more}


def color(field: str) -> Spec:
    """A channel by a color that the data have."""
    return name(field, scale=None)


def scale(low: float, high: float) -> Spec:
    """From exactly `low` to exactly `high`."""
    return {"domain": [low, high], "nice": False}


def axis(low: float, high: float, frame: Frame) -> Spec:
    """The axis of speedups above the rows of a frame."""
    along = Axis(low, high, frame.plot)
    space = max(0, _TICK_HALF - frame.left)
    ticks = [
        tick
        for tick in along.ticks(7)
        if abs(tick) < _ZERO or space <= along.column(tick) <= frame.plot - space
    ]
    return percent_axis("top", ticks)


def percent_axis(orient: str, ticks: Sequence[float], **more: object) -> Spec:
    """An axis of shares, written as percentages, with these ticks and a light grid."""
    return {
        "orient": orient,
        "values": list(ticks),
        "labelExpr": _TICK,
        "labelColor": palette.MUTED.light,
        "labelFontSize": 12,
        "labelOverlap": True,
        "labelFlush": False,
        "gridColor": palette.GRID.light,
        "domain": False,
        "title": None,
        "ticks": False,
        "labelPadding": 6,
        **more,
    }


def texts(rows: Sequence[Mapping[str, object]], frame: Frame) -> list[Spec]:
    """Layers with the `label` and the `value` of each row, where the frame has them.

    Above a row they cross the lines of the plot, so they have a rim of paper there.
    """
    above = 11 if frame.is_narrow else 0
    left, right = (0, frame.plot) if frame.is_narrow else (-12, frame.plot + 14)
    text = {"type": "text", "dy": -above}
    label = {
        **text,
        "align": "left" if frame.is_narrow else "right",
        "color": palette.INK.light,
        "fontSize": 13,
        "limit": _space_for_names(rows, frame) if frame.is_narrow else 0,
    }
    align = "right" if frame.is_narrow else "left"
    value = {**text, "align": align, "color": palette.MUTED.light, "fontSize": 12, "limit": 0}
    rim = {"stroke": palette.PAPER.light, "strokeWidth": 4, "strokeJoin": "round"}
    rims = (rim, {}) if frame.is_narrow else ({},)
    return [
        marks(rows, {**look, **more}, x={"value": place}, y=BY_ROW, text=name(said))
        for more in rims
        for look, place, said in ((label, left, "label"), (value, right, "value"))
    ]


def _space_for_names(rows: Sequence[Mapping[str, object]], frame: Frame) -> float:
    """Pixels that names may take beside the longest value of the rows.

    They are measured in the font at hand; the reader's may be wider.
    """
    longest = max((len(str(row["value"])) for row in rows), default=0)
    return min(_NAME_PIXELS, (frame.plot - longest * _VALUE_LETTER - _GAP) * _OTHER_FONT)


def drawn(
    picture: Spec, frame: Frame, rows: int, words: tuple[str, str], top: int = 26, bottom: int = 6
) -> Markup:
    """The picture as inline SVG; `words` are its title and its description."""
    import vl_convert as vlc  # noqa: PLC0415  # its engine takes a while to load

    look: Spec = {
        "width": frame.plot,
        "height": rows * frame.step,
        "padding": {"left": frame.left, "right": frame.right, "top": top, "bottom": bottom},
        "autosize": {"type": "none"},
        "config": {
            "background": "transparent",
            "font": _FONT,
            "aria": False,
            "view": {"stroke": None},
        },
    }
    return _inline(vlc.vegalite_to_svg({**picture, **look}), words)


def _inline(svg: str, words: tuple[str, str]) -> Markup:
    """Drops the fixed size, and adds a title and a description for those who do not see it."""
    found = _SIZE.search(svg)
    if found is None:  # what vl-convert draws has a view box
        raise ValueError("the drawn chart has no view box")
    box = found[1]
    width = math.ceil(float(box.split()[2]))
    title, desc = (str(escape(text)) for text in words)
    head = (
        f'<svg viewBox="{box}" role="img" aria-label="{title}" style="max-width:{width}px">'
        f"<title>{title}</title><desc>{desc}</desc>"
    )
    return Markup(svg[: found.start()] + head + svg[found.end() :])  # noqa: S704  # escaped above
