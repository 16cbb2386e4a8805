"""A page of plain text for a terminal, or for a file: readable without color, from 40 columns."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ensign.model.findings import Severity
from ensign.model.quoting import visible_lines
from ensign.report import words
from ensign.report.notes import ListedFinding, Note
from ensign.report.verdict import Verdict
from ensign.report.words import Span, percent

_LEAST_PLOT = 16
_STEPS = (1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class PlotSymbols:
    """One character each: ends, line, estimate, arrows where an interval goes on, zero, tick."""

    left: str = "├"
    right: str = "┤"
    line: str = "─"
    point: str = "●"
    beyond_left: str = "◄"
    beyond_right: str = "►"
    zero: str = "│"
    crossing: str = "┼"
    ellipsis: str = "…"


UNICODE = PlotSymbols()
ASCII = PlotSymbols("|", "|", "-", "o", "<", ">", ":", "+", "~")


@dataclass(frozen=True, slots=True)
class Axis:
    """Speedups from `low` to `high` on `columns` columns; ticks are round."""

    low: float
    high: float
    columns: int

    def column(self, share: float) -> int:
        """The nearest column, which may lie outside."""
        return round((share - self.low) / (self.high - self.low) * (self.columns - 1))

    def ticks(self, most: int) -> tuple[float, ...]:
        """Round speedups, 0 among them, at most `most`."""
        return round_ticks(self.low, self.high, most)


def round_ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Round numbers from `low` to `high`, 0 among them, at most `most`."""
    step = round_step((high - low) / max(1, most - 1))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return tuple(index * step for index in range(first, last + 1))


def round_step(least: float) -> float:
    """The smallest of 1, 2, 5 × 10^k that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(s * power for s in (*_STEPS, 10.0) if s * power >= least * (1 - 1e-9))


def axis_range(spans: Sequence[Span]) -> tuple[float, float]:
    """Round ends that hold every finite interval and zero; ±1 % where there is none."""
    finite = [span for span in spans if span.is_finite]
    low = min([0.0, *(span.low for span in finite)])
    high = max([0.0, *(span.high for span in finite)])
    if high - low <= 0:
        return -0.01, 0.01
    step = round_step((high - low) / 8)
    return math.floor(low / step - 0.1) * step, math.ceil(high / step + 0.1) * step


def interval_plot(
    rows: Sequence[tuple[str, Span]], width: int, symbols: PlotSymbols = UNICODE
) -> list[str]:
    """One line per row under an axis of speedups; no line is longer than `width`."""
    if not rows:
        return []
    longest = max(len(name) for name, _ in rows)
    names = min(longest, max(8, width - 2 - max(_LEAST_PLOT, width // 2)))
    low, high = axis_range([span for _, span in rows])
    axis = Axis(low, high, max(_LEAST_PLOT, width - names - 2))
    indent = " " * (names + 2)
    lines = [(indent + _tick_line(axis)).rstrip()]
    for name, span in rows:
        label = shortened(name, names, symbols.ellipsis).ljust(names)
        lines.append(f"{label}  {''.join(_marks(span, axis, symbols))}".rstrip())
    return lines


def shortened(name: str, length: int, ellipsis: str = "…") -> str:
    """The name with its middle left out where it is longer than `length`."""
    if len(name) <= length:
        return name
    head = max(1, (length - 1) // 2)
    tail = max(0, length - 1 - head)
    return name[:head] + ellipsis + (name[-tail:] if tail else "")


def _tick_line(axis: Axis) -> str:
    most = max(2, min(9, axis.columns // 7))
    ticks = axis.ticks(most)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else axis.high - axis.low
    digits = max(0, -math.floor(math.log10(step * 100) + 1e-9))
    line = [" "] * axis.columns
    for tick in sorted(ticks, key=abs):
        text = "0" if abs(tick) < step / 2 else percent(tick, digits)
        start = min(max(0, axis.column(tick) - len(text) // 2), axis.columns - len(text))
        around = line[max(0, start - 1) : start + len(text) + 1]
        if all(character == " " for character in around):
            line[start : start + len(text)] = text
    return "".join(line)


def _marks(span: Span, axis: Axis, symbols: PlotSymbols) -> list[str]:
    line = [" "] * axis.columns
    line[axis.column(0.0)] = symbols.zero
    last = axis.columns - 1
    # An unbounded interval is drawn as a line across the whole axis, without an estimate.
    start = axis.column(span.low) if span.low > -1 else -1
    end = axis.column(span.high) if math.isfinite(span.high) else last + 1
    for column in range(max(0, start), min(last, end) + 1):
        line[column] = symbols.crossing if line[column] == symbols.zero else symbols.line
    line[max(0, start)] = symbols.left if start >= 0 else symbols.beyond_left
    line[min(last, end)] = symbols.right if end <= last else symbols.beyond_right
    if span.is_finite:
        line[axis.column(span.point)] = symbols.point
    return line


_NARROWEST = 40
_NO_BREAK = "\ue000"  # rich breaks lines at a no-break space too
_SEVERITIES = {Severity.NOTE: "dim", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}
_TO_ASCII = str.maketrans("−–—…µ×“”’─·±σ†", '---~ux""\'-.~s+')


@dataclass(frozen=True, slots=True)
class Screen:
    """The terminal. `unicode` off gives pure ASCII, `color` off no escape sequences."""

    width: int = 80
    color: bool = False
    unicode: bool = True


PLAIN = Screen()


@dataclass(frozen=True, slots=True)
class _Visible:
    """Anything, without characters that a terminal takes for commands; colors are rich's own."""

    item: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.item, options):
            if not segment.control:
                yield Segment(visible_lines(segment.text), segment.style)


class Page:
    """Collects renderables; nothing is written but to a string."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._buffer = io.StringIO()
        self._console = Console(
            file=self._buffer,
            width=max(_NARROWEST, screen.width),
            color_system="standard" if screen.color else None,
            force_terminal=screen.color,
            legacy_windows=False,
            markup=False,
            emoji=False,
            highlight=False,
        )
        self.width = max(_NARROWEST, screen.width)

    def show(self, item: RenderableType) -> None:
        """Adds what rich can render."""
        self._console.print(_Visible(item))

    def blank(self) -> None:
        """An empty line."""
        self._console.print()

    def line(self, text: str, style: str = "") -> None:
        """A paragraph."""
        self.show(Text(_kept_together(text), style=style))

    def heading(self, text: str) -> None:
        """A bold line."""
        self.line(text, "bold")

    def table(self, table: Table) -> None:
        """A table, and an empty line."""
        self.show(table)
        self.blank()

    def verdict(self, verdict: Verdict) -> None:
        """Headline, details, caveats."""
        self.line(verdict.headline, "bold")
        for detail in verdict.details:
            self.line(detail)
        for caveat in verdict.caveats:
            self.line(f"! {caveat}", "bold yellow")

    def plot(self, rows: Sequence[tuple[str, words.Span]]) -> None:
        """The intervals as a drawing."""
        if not rows:
            return
        symbols = UNICODE if self._screen.unicode else ASCII
        self.heading("Speedup against the baseline, with interval")
        for line in interval_plot(rows, self.width, symbols):
            self.show(Text(line, no_wrap=True, overflow="crop"))
        self.blank()

    def findings(self, findings: Iterable[ListedFinding], *, cropped: bool = False) -> None:
        """A paragraph for each, or a line, of which the end may be missing."""
        for finding in findings:
            about = f" {finding.subjects}:" if finding.subjects else ""
            text = Text(f"{finding.severity.value}", style=_SEVERITIES[finding.severity])
            text.append(f" [{finding.code}]{about} {finding.text}", style="default")
            if cropped:
                text.truncate(self.width, overflow="ellipsis")
            self.show(text)

    def notes(self, notes: Iterable[Note]) -> None:
        """A paragraph for each, with its heading."""
        for note in notes:
            text = Text(f"{note.heading}: ", style="bold")
            text.append(_kept_together(note.text), style="not bold")
            self.show(text)

    def text(self) -> str:
        """All of it, without blanks at the ends of lines."""
        written = self._buffer.getvalue().replace(_NO_BREAK, " ")
        if not self._screen.unicode:
            written = written.translate(_TO_ASCII).encode("ascii", "replace").decode("ascii")
        return "\n".join(line.rstrip() for line in written.splitlines()).rstrip() + "\n"


def _kept_together(text: str) -> str:
    return text.replace(" %", f"{_NO_BREAK}%")
