"""Charts as inline SVG: Vega-Lite specifications drawn without a browser.

Geometry is fixed here rather than fitted to text, because the reader's fonts are not known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from ensign.model.comparisons import Direction
from ensign.report import palette
from ensign.report.plot import Axis, axis_range, shortened
from ensign.report.view import Row, VariantWorkloads

WIDE = 760
NARROW = 344
_FONT = "system-ui, sans-serif"
_LETTER = 7.4
_LONGEST = 34
_TICK_HALF = 24
_ZERO = 1e-12
_MOST_NARROW = 27
_NAME_PIXELS = 196
_TONES = {
    Direction.FASTER: palette.FASTER.light,
    Direction.SLOWER: palette.SLOWER.light,
    Direction.UNCLEAR: palette.UNCLEAR.light,
}
_TICK = (
    "datum.value === 0 ? '0' : (datum.value > 0 ? '+' : '\N{MINUS SIGN}')"
    " + format(abs(datum.value) * 100, '.3~f') + ' %'"
)
_SIZE = re.compile(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>')


@dataclass(frozen=True, slots=True)
class Frame:
    """Where things are: total width, space for names and values beside the plot, row height.

    A narrow frame has name and value above each row instead of beside it.
    """

    width: int
    left: int
    right: int
    step: int

    @property
    def plot(self) -> int:
        """Width of the plotting area in pixels."""
        return self.width - self.left - self.right

    @property
    def is_narrow(self) -> bool:
        """Whether names and values stand above the rows."""
        return self.right == self.left

    @property
    def drop(self) -> int:
        """How far marks stand below the middle of their row, to leave room for the name."""
        return 8 if self.is_narrow else 0

    def name(self, label: str) -> str:
        """The label, as long as there is room."""
        return shortened(label, _MOST_NARROW if self.is_narrow else _LONGEST)


NARROW_FRAME = Frame(NARROW, 14, 14, 44)


def wide_frame(labels: Sequence[str], right: int = 150) -> Frame:
    """A frame with room for the longest label at the left."""
    longest = min(_LONGEST, max(map(len, labels), default=0))
    return Frame(WIDE, round(longest * _LETTER) + 18, right, 27)


def intervals(rows: Sequence[Row], margin: float | None, frame: Frame, title: str) -> Markup:
    """Speedups with intervals on one axis; hollow marks where no difference is shown."""
    import altair as alt  # noqa: PLC0415  # half a second that only charts need

    low, high = axis_range([row.span for row in rows])
    data = [_interval_datum(index, row, (low, high), frame) for index, row in enumerate(rows)]
    base = _chart(data).encode(y=alt.Y("row:N", axis=None, sort=None))
    x = alt.X(
        "low:Q", scale=alt.Scale(domain=[low, high], nice=False), axis=_axis(low, high, frame)
    )
    tone = alt.Color("tone:N", scale=None)
    layers = [
        *_backdrop(margin, (low, high)),
        base.transform_filter("datum.bounded")
        .mark_rule(strokeWidth=3.5, strokeCap="round", yOffset=frame.drop)
        .encode(x=x, x2="high:Q", color=tone),
        base.transform_filter("!datum.bounded")
        .mark_rule(strokeWidth=1.5, strokeDash=[2, 4], yOffset=frame.drop)
        .encode(x=x, x2="high:Q", color=tone),
        base.transform_filter("datum.bounded")
        .mark_point(filled=True, size=80, opacity=1, strokeWidth=2.5, yOffset=frame.drop)
        .encode(
            x=alt.X("point:Q"),
            fill=alt.Fill("inside:N", scale=None),
            stroke=alt.Stroke("tone:N", scale=None),
        ),
        *_texts(base, frame),
    ]
    desc = "; ".join(f"{row.label}: {row.speedup}, {row.interval}" for row in rows)
    return _drawn(alt.layer(*layers), frame, len(rows), (title, desc))


def stacks(variants: Sequence[VariantWorkloads], frame: Frame, title: str) -> Markup:
    """Workloads per band of change, stacked from worse to better."""
    import altair as alt  # noqa: PLC0415

    data = [
        datum for index, one in enumerate(variants) for datum in _band_data(index, one, frame.plot)
    ]
    names = [
        {
            "row": str(index),
            "label": frame.name(one.label),
            "value": "" if frame.is_narrow else one.summary,
        }
        for index, one in enumerate(variants)
    ]
    rows = alt.Y("row:N", axis=None, sort=None)
    base = _chart(data).encode(y=rows)
    scale = alt.Scale(domain=[0, 1], nice=False)
    bars = base.mark_bar(
        height=19, strokeWidth=1.5, stroke=palette.PAPER.light, yOffset=frame.drop
    ).encode(
        x=alt.X("start:Q", scale=scale, axis=None),
        x2="end:Q",
        fill=alt.Fill("fill:N", scale=None),
    )
    counts = base.mark_text(fontSize=12, fontWeight=600, yOffset=frame.drop).encode(
        x=alt.X("middle:Q", scale=scale, axis=None),
        text="count:N",
        fill=alt.Fill("ink:N", scale=None),
    )
    labels = _texts(_chart(names).encode(y=rows), frame)
    said = "; ".join(f"{one.label}: {', '.join(map(str, one.counts))}" for one in variants)
    layers = alt.layer(bars, counts, *labels)
    return _drawn(layers, frame, len(variants), (title, said), top=8)


def _chart(values: Sequence[Mapping[str, object]]) -> Any:
    import altair as alt  # noqa: PLC0415

    return alt.Chart(alt.Data(values=list(values)))  # type: ignore[no-untyped-call]


def _interval_datum(
    index: int, row: Row, domain: tuple[float, float], frame: Frame
) -> dict[str, object]:
    span = row.span
    tone = _TONES[row.direction]
    return {
        "row": str(index),
        "label": frame.name(row.label),
        "value": row.interval,
        "low": max(span.low, domain[0]),
        "high": min(span.high, domain[1]),
        "point": min(max(span.point, domain[0]), domain[1]),
        "bounded": span.is_finite,
        "tone": tone,
        "inside": palette.PAPER.light if row.direction is Direction.UNCLEAR else tone,
    }


def _band_data(index: int, variant: VariantWorkloads, width: int) -> list[dict[str, object]]:
    total = sum(variant.counts)
    data: list[dict[str, object]] = []
    start = 0
    for rank, count in enumerate(variant.counts):
        if count:
            share = count / total
            fits = share * width >= _LETTER * (len(str(count)) + 1)
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


def _axis(low: float, high: float, frame: Frame) -> Any:
    import altair as alt  # noqa: PLC0415

    axis = Axis(low, high, frame.plot)
    room = max(0, _TICK_HALF - frame.left)
    ticks = [
        tick
        for tick in axis.ticks(7)
        if abs(tick) < _ZERO or room <= axis.column(tick) <= frame.plot - room
    ]
    return alt.Axis(
        orient="top",
        title=None,
        values=ticks,
        labelExpr=_TICK,
        labelColor=palette.MUTED.light,
        labelFontSize=12,
        labelOverlap=True,
        labelFlush=False,
        gridColor=palette.GRID.light,
        domain=False,
        ticks=False,
        labelPadding=6,
    )


def _backdrop(margin: float | None, domain: tuple[float, float]) -> list[Any]:
    import altair as alt  # noqa: PLC0415

    scale = alt.Scale(domain=list(domain), nice=False)
    layers = []
    if margin is not None:
        ends = {"low": max(domain[0], 1 / (1 + margin) - 1), "high": min(domain[1], margin)}
        layers.append(
            _chart([ends])
            .mark_rect(color=palette.MARGIN.light, opacity=1)
            .encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
        )
    layers.append(
        _chart([{"low": 0}])
        .mark_rule(color=palette.INK.light, strokeWidth=1)
        .encode(x=alt.X("low:Q", scale=scale))
    )
    return layers


def _texts(base: Any, frame: Frame) -> list[Any]:
    import altair as alt  # noqa: PLC0415

    above = 11 if frame.is_narrow else 0
    left, right = (0, frame.plot) if frame.is_narrow else (-12, frame.plot + 14)
    name = base.mark_text(
        align="left" if frame.is_narrow else "right",
        dy=-above,
        color=palette.INK.light,
        fontSize=13,
        limit=_NAME_PIXELS if frame.is_narrow else 0,
    ).encode(x=alt.value(left), text="label:N")
    value = base.mark_text(
        align="right" if frame.is_narrow else "left",
        dy=-above,
        color=palette.MUTED.light,
        fontSize=12,
        limit=0,
    ).encode(x=alt.value(right), text="value:N")
    return [name, value]


def _drawn(chart: Any, frame: Frame, rows: int, words: tuple[str, str], top: int = 26) -> Markup:
    import altair as alt  # noqa: PLC0415
    import vl_convert as vlc  # noqa: PLC0415

    sized = chart.properties(
        width=frame.plot,
        height=rows * frame.step,
        padding={"left": frame.left, "right": frame.right, "top": top, "bottom": 6},
        autosize=alt.AutoSizeParams(type="none"),
    ).configure(background="transparent", font=_FONT, aria=False, view=alt.ViewConfig(stroke=None))
    return _inline(vlc.vegalite_to_svg(sized.to_dict()), words)


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
