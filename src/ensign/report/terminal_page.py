"""A page of plain text for a terminal, or for a file: readable without color, from 40 columns."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ensign.model.findings import Severity
from ensign.model.quoting import visible_lines
from ensign.report import plot, words
from ensign.report.notes import ListedFinding, Note
from ensign.report.verdict import Verdict

_NARROWEST = 40
_NO_BREAK = "\ue000"  # rich breaks lines at a no-break space too
_SEVERITIES = {Severity.NOTE: "dim", Severity.WARNING: "yellow", Severity.ERROR: "bold red"}
_TO_ASCII = str.maketrans("−–—…µ×“”’─·±σ†", '---~ux""\'-.~s+')


@dataclass(frozen=True, slots=True)
class Screen:
    """Where the text goes. `unicode` off gives pure ASCII, `color` off no escape sequences."""

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
        symbols = plot.UNICODE if self._screen.unicode else plot.ASCII
        self.heading("Speedup against the baseline, with interval")
        for line in plot.interval_plot(rows, self.width, symbols):
            self.show(Text(line, no_wrap=True, overflow="crop"))
        self.blank()

    def findings(self, findings: Iterable[ListedFinding], *, cropped: bool = False) -> None:
        """A paragraph for each, or a line, of which the end may be missing."""
        for each in findings:
            about = f" {each.subjects}:" if each.subjects else ""
            text = Text(f"{each.severity.value}", style=_SEVERITIES[each.severity])
            text.append(f" [{each.code}]{about} {each.text}", style="default")
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
