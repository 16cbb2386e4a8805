"""Live progress on a terminal: at most twice a second, and only when something happened.

The meter buffers its records, so news comes between executions; a display that redraws by itself
would take CPU time from what is measured.
"""

from __future__ import annotations

import shutil
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from ensign.cli.output import rewrite, write
from ensign.model.builds import BuildEvent
from ensign.model.comparisons import Comparison
from ensign.model.findings import Finding
from ensign.model.quoting import visible
from ensign.model.units import format_duration, format_percent, format_size, speedup
from ensign.report.terminal_page import Screen

if TYPE_CHECKING:
    # Comparisons need nothing of studies, nor studies of comparisons.
    from ensign.experiment.compare.run import Expected, Progress
    from ensign.experiment.study.round_plan import RoundPlan, RoundProgress

_LEAST_NS = 500_000_000
_NARROWEST = 40


def screen_of(stream: TextIO) -> Screen:
    """Width, color and letters for a stream: plain where it is not a terminal."""
    width = shutil.get_terminal_size((80, 24)).columns
    unicode = (stream.encoding or "utf-8").lower().startswith("utf")
    return Screen(width=max(width, _NARROWEST), color=stream.isatty(), unicode=unicode)


class StatusLine:
    """One line that is rewritten in place; silent where the stream is not a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._last_ns = 0

    def due(self) -> bool:
        """True if half a second has passed since the last line."""
        return self._live and time.monotonic_ns() - self._last_ns >= _LEAST_NS

    def show(self, text: str) -> None:
        """Rewrites the line."""
        if not self._live:
            return
        width = shutil.get_terminal_size((80, 24)).columns - 1
        rewrite(self._stream, visible(text)[:width])
        self._last_ns = time.monotonic_ns()

    def clear(self) -> None:
        """Removes the line."""
        if self._live:
            rewrite(self._stream, "")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.clear()


class CompareProgress:
    """The current intervals and the time left of a comparison."""

    def __init__(self, line: StatusLine, stream: TextIO) -> None:
        self._line = line
        self._stream = stream
        line.show("unmeasured runs of each command …")

    def expect(self, expected: Expected) -> None:
        """Tells what the race will take; also where nobody watches, if it is longer than usual."""
        one, left = format_duration(expected.execution_ns), format_duration(expected.left_ns)
        text = f"one execution of all commands takes about {one}, the race {left} at most"
        if not expected.asked:
            self._line.clear()
            write(self._stream, f"{text} (--budget bounds it)\n")
        self._line.show(text)

    def show(self, progress: Progress) -> None:
        """Rewrites the line, if it is time to."""
        if not self._line.due():
            return
        left_ns = max(progress.budget_ns - progress.elapsed_ns, 0)
        so_far = "; ".join(map(_so_far, progress.comparisons()))
        self._line.show(
            f"{progress.rounds} executions, at most {format_duration(left_ns)} left: {so_far}"
        )


class RoundsProgress:
    """Progress of a study: what it is going to take; then round, workload and time left."""

    def __init__(self, line: StatusLine, stream: TextIO) -> None:
        self._line = line
        self._stream = stream
        self._raced_ns = 0
        self._raced = 0

    def expect(self, plan: RoundPlan) -> None:
        """A line about time and memory before the first round, one about precision after a few."""
        number = f"{'' if plan.exact else 'about '}{plan.rounds} rounds"
        if plan.precision is None:
            text = f"{number} in about {format_duration(plan.expected_ns)}"
            if plan.relinks:
                turns = "each on another relink" if plan.relinks >= plan.rounds else "in turn on"
                relinks = "" if plan.relinks >= plan.rounds else f" {plan.relinks} relinks"
                text += f", {turns}{relinks} of each variant"
            if plan.memory_bytes:
                text += f"; a race takes about {format_size(plan.memory_bytes)} of memory"
        else:
            text = (
                f"half-widths to expect of {number}, by the first {plan.pilots}: "
                f"{plan.precision.suite:.2%} for geometric means, "
                f"{plan.precision.workload:.2%} for single workloads"
            ).replace("%", " %")
        self._line.clear()
        write(self._stream, f"racing: {text}\n")

    def tell(self, finding: Finding) -> None:
        """A line about a finding that need not wait for the end."""
        self._line.clear()
        write(self._stream, f"racing: {visible(finding.said)} ({finding.code})\n")

    def show(self, progress: RoundProgress) -> None:
        """Rewrites the line, if it is time to."""
        self._raced_ns += progress.trial.wall_ns
        self._raced += 1
        if not self._line.due():
            return
        left = progress.total - progress.done
        left_ns = left * self._raced_ns / self._raced
        self._line.show(
            f"racing: round {progress.round_index + 1}, {progress.workload}; "
            f"{progress.done} of {progress.total}, {format_duration(left_ns)} left"
        )


def _so_far(comparison: Comparison) -> str:
    if comparison.high == float("inf"):
        return f"{comparison.variant} …"
    low, high = speedup(comparison.high), speedup(comparison.low)
    return f"{comparison.variant} {format_percent(low)} to {format_percent(high)}"


class BuildProgress:
    """A line per finished build, and the builds under way in the status line."""

    def __init__(self, line: StatusLine, stream: TextIO) -> None:
        self._line = line
        self._stream = stream
        self._working: dict[str, float] = {}

    def show(self, event: BuildEvent) -> None:
        """Says what happened."""
        if event.kind == "started":
            self._working[event.label] = event.expected_s
        else:
            self._working.pop(event.label, None)
            self._line.clear()
            at_once = event.kind in ("cached", "replaced")
            took = "" if at_once else f" in {format_duration(event.elapsed_s * 1e9)}"
            why = f": {event.text}" if event.text else ""
            write(self._stream, f"{event.label}: {_HAPPENED[event.kind]}{took}{why}\n")
        if self._working:
            parts = (
                f"{label} (about {format_duration(expected_s * 1e9)})" if expected_s else label
                for label, expected_s in self._working.items()
            )
            self._line.show(f"building {', '.join(parts)}")


_HAPPENED = {
    "finished": "done",
    "cached": "already there",
    "failed": "FAILED",
    "replaced": "found damaged",
}
