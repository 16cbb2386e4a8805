"""Words and figures for a comparison: speedups, never cost ratios.

No percentage is given where no difference is shown: there the answer is "unclear", with its
interval. Intervals come before estimates in tables, because the estimate at stopping is
slightly exaggerated.

"Faster" goes with speedups, 1/r − 1, as in the tables; "more CPU time" and "longer" with the cost
itself, r − 1: 43 % more time is a speedup of −30 %. A sentence has one scale for a direction.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ensign.model.comparisons import Comparison, Direction, Size
from ensign.model.quoting import visible
from ensign.model.traced_execution import WhatRan
from ensign.model.trials import Metric, Mode
from ensign.model.units import pluralize, speedup

_MAX_DIGITS = 4
_TIMES_FROM = 2.0
_COARSE = 10.0
WITHHELD = "withheld"
ONE_BINARY = "one binary each"
MODES = {Mode.INTERLEAVED: "interleaved", Mode.DRIVEN: "driven", Mode.ALTERNATING: "alternating"}
METRICS = {Metric.CPU: "CPU time", Metric.WALL: "wall time", Metric.SCORE: "its own score"}
METRICS_IN_FULL = {
    Metric.CPU: "CPU time of the program per operation",
    Metric.WALL: "wall time per operation",
    Metric.SCORE: "what each program says of its own speed",
}

# One, and several.
KINDS_OF_CAUSE: Mapping[str, tuple[str, str]] = {
    "choices": ("choice", "choices"),
    "source groups": ("group of source files", "groups of source files"),
    "sources": ("source file", "source files"),
    "functions": ("function", "functions"),
    "training groups": ("group of training workloads", "groups of training workloads"),
    "training": ("training workload", "training workloads"),
    "flag groups": ("group of flags", "groups of flags"),
    "flags": ("flag", "single flags"),
}


@dataclass(frozen=True, slots=True)
class Span:
    """An interval of speedups with its estimate; shares, so that 0.05 is +5 %.

    `low` is −1 and `high` infinite where nothing bounds the speedup on that side.
    """

    low: float
    high: float
    point: float

    @property
    def is_finite(self) -> bool:
        """True if both ends are known."""
        return self.low > -1 and math.isfinite(self.high)

    @property
    def digits(self) -> int:
        """Decimals of a percentage that show the width, and never show a clear bound as zero."""
        if not self.is_finite:
            return 1
        half = 50 * (self.high - self.low)
        digits = 0 if half >= _COARSE else 1
        while 1 <= digits < _MAX_DIGITS and 0 < half < 0.5 * 10**-digits:
            digits += 1
        for bound in (self.low, self.high):
            while digits < _MAX_DIGITS and bound != 0 and round(bound * 100, digits) == 0:
                digits += 1
        return digits


def span_of(comparison: Comparison) -> Span:
    """Speedups of a comparison; a high cost is a low speedup, so the ends change places."""
    low = speedup(comparison.high) if math.isfinite(comparison.high) else -1.0
    high = speedup(comparison.low) if comparison.low > 0 else math.inf
    known = math.isfinite(comparison.ratio) and comparison.ratio > 0
    return Span(low, high, speedup(comparison.ratio) if known else 0.0)


def percent(share: float, digits: int = 1) -> str:
    """`+3.1 %`, `−0.4 %`, `0.0 %`; a sign only where something is left to sign."""
    return f"{signed(share, digits)} %"


def signed(share: float, digits: int = 1) -> str:
    """As `percent`, without its unit."""
    if not math.isfinite(share):
        return "∞" if share > 0 else "−∞"
    rounded = round(share * 100, digits)
    sign = "+" if rounded > 0 else "−" if rounded < 0 else ""
    return f"{sign}{abs(rounded):.{digits}f}"


def plain_share(share: float) -> str:
    """`1 %`, `0.5 %`, `95 %`, `98.33 %`: a share that somebody chose, to four figures at most."""
    return f"{share * 100:.4g} %"


def interval_cell(comparison: Comparison) -> str:
    """`+2.7 to +3.5 %`; what is not bounded says so, and numbers of no meaning are not shown."""
    if comparison.withheld:
        return WITHHELD
    span = span_of(comparison)
    digits = span.digits
    if span.is_finite:
        return f"{signed(span.low, digits)} to {percent(span.high, digits)}"
    if span.low > -1:
        return f"above {percent(span.low, digits)}"
    if math.isfinite(span.high):
        return f"below {percent(span.high, digits)}"
    return "no interval yet"


def speedup_cell(comparison: Comparison) -> str:
    """The estimated speedup where a direction is shown, else `unclear`, `withheld` or `alike`."""
    if comparison.withheld:
        return WITHHELD
    if comparison.direction is Direction.UNCLEAR and comparison.size is Size.WITHIN:
        return "alike"
    if comparison.direction is Direction.UNCLEAR:
        return "unclear"
    span = span_of(comparison)
    return percent(span.point, span.digits)


def size_cell(comparison: Comparison) -> str:
    """`within`, `beyond` or `unclear` with respect to the margin; empty without one."""
    return "" if comparison.size is None else comparison.size.value


def statement(comparison: Comparison, margin: float | None) -> str:
    """The two statements in a few words: `faster, beyond 1 %`; `within 1 %`; `unclear`."""
    direction, size = comparison.direction, comparison.size
    if comparison.withheld:
        return WITHHELD
    if margin is None or size is None or size is Size.UNCLEAR:
        return direction.value
    limit = plain_share(margin)
    if direction is Direction.UNCLEAR:
        return f"within {limit}" if size is Size.WITHIN else "unclear"
    if size is Size.WITHIN:
        return f"{direction.value}, by less than {limit}"
    return f"{direction.value}, by more than {limit}"


def sentence(
    comparison: Comparison,
    margin: float | None,
    *,
    against: bool = False,
    mode: Mode | None = None,
    workloads: int = 1,
    binaries: bool = False,
) -> str:
    """One sentence that a person understands, with metric, interval and level.

    `against` names the baseline too, `mode` how the variants took turns: "new needs 3.1 % more CPU
    time than old, between 2.7 and 3.5 % (95 %, interleaved)". It speaks of `binaries` where these
    were not linked anew.
    """
    name = clean(comparison.variant)
    baseline = clean(comparison.baseline) if against else ""
    pair = f"{name} against {baseline}" if against else name
    if comparison.withheld:
        return f"No verdict on {pair} ({WITHHELD}): {clean(comparison.withheld)}"
    span, metric = span_of(comparison), METRICS[comparison.metric]
    how = _how(comparison.level, mode, workloads, binaries=binaries)
    if comparison.direction is not Direction.UNCLEAR:
        small = ""
        if comparison.size is Size.WITHIN and margin is not None:
            limit = f"{plain_share(margin)} " if workloads == 1 else ""
            small = f", within the {limit}margin"
        return f"{name} {claim(comparison, baseline)}, {_range(comparison)} {how}{small}"
    if not span.is_finite:
        runs = pluralize(comparison.executions, "execution")
        are = "is" if comparison.executions == 1 else "are"
        return f"{pair} is unclear: {runs} {are} too few for an interval"
    if comparison.size is Size.WITHIN and margin is not None:
        of = baseline or "the baseline"
        alike = f"{name} is within {plain_share(margin)} of {of} by {metric}"
        return f"{alike}: {between(span)} {how}"
    return f"{pair} is unclear: {between(span)} by {metric} {how}"


def _how(level: float, mode: Mode | None, workloads: int, *, binaries: bool) -> str:
    turns = [MODES[mode]] if mode else []
    single = [ONE_BINARY] if binaries else []
    several = [f"{workloads} workloads"] if workloads > 1 else []
    return f"({', '.join((plain_share(level), *turns, *single, *several))})"


def briefly(comparison: Comparison) -> str:
    """`needs 5.2 % more CPU time (4.2 to 6.2 %)` where a direction is shown, else its interval."""
    span = _scaled(comparison)
    if comparison.direction is Direction.UNCLEAR or not span.is_finite:
        return f"is {statement(comparison, None)} ({interval_cell(comparison)})"
    unit = "" if _in_times(span) else " %"
    return f"{claim(comparison)} ({' to '.join(_ends(span))}{unit})"


def between(span: Span) -> str:
    """`between 1.2 % slower and 0.4 % faster`, for a pair that is not told apart."""
    return f"between {_end(span.low, span.digits)} and {_end(span.high, span.digits)}"


def listed(names: tuple[str, ...], limit: int = 6) -> str:
    """`a, b and c`; `a, b and 5 more` beyond the limit."""
    shown = [clean(name) for name in names]
    if len(shown) > limit:
        shown = [*shown[: limit - 1], f"{len(shown) - limit + 1} more"]
    if len(shown) < 2:  # noqa: PLR2004  # "a and b" needs two
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def clean(text: str) -> str:
    """One line of text without control or direction-changing characters, safe for a terminal."""
    return visible(_WHITESPACE.sub(" ", text))


def clean_block(text: str) -> str:
    """As `clean`, keeping line ends."""
    return "\n".join(clean(line) for line in text.splitlines())


_WHITESPACE = re.compile(r"[\n\t\r]")


def _end(share: float, digits: int) -> str:
    amount = f"{abs(round(share * 100, digits)):.{digits}f} %"
    return f"{amount} slower" if share < 0 else f"{amount} faster"


def _amount(span: Span) -> str:
    return f"{abs(round(span.point * 100, span.digits)):.{span.digits}f} %"


def claim(comparison: Comparison, baseline: str = "", *, only: bool = False) -> str:
    """Claim on a variant shown to differ, beside the baseline that is named.

    `only` says that it is little.
    """
    than, like = (f" than {baseline}", f" as {baseline}") if baseline else ("", "")
    span, metric = _scaled(comparison), METRICS[comparison.metric]
    little = "only " if only else ""
    times, amount = f"{little}{1 + span.point:.3g} times", f"{little}{_amount(span)}"
    if comparison.direction is Direction.FASTER:
        if _in_times(span):
            return f"is {times} as fast{like} by {metric}"
        return f"is {amount} faster{than} by {metric}"
    if comparison.metric is Metric.SCORE:
        return f"is {amount} slower{than} by {metric}"
    if comparison.metric is Metric.WALL:
        longer = f"{times} as long{like}" if _in_times(span) else f"{amount} longer{than}"
        return f"takes {longer} (wall)"
    if _in_times(span):
        return f"needs {times} the {metric}{f' of {baseline}' if baseline else ''}"
    return f"needs {amount} more {metric}{than}"


def _scaled(comparison: Comparison) -> Span:
    """On the scale of its claim: speedups, or of what is shown to cost more the cost itself."""
    if comparison.direction is Direction.SLOWER and comparison.metric is not Metric.SCORE:
        return Span(comparison.low - 1, comparison.high - 1, comparison.ratio - 1)
    return span_of(comparison)


def _range(comparison: Comparison) -> str:
    span = _scaled(comparison)
    if not span.is_finite:
        known = span.high if span.low <= -1 else min(span.low, span.high, key=abs)
        return f"at least {abs(known) * 100:.{span.digits}f} %"
    return f"between {' and '.join(_ends(span))} {'times' if _in_times(span) else '%'}"


def _ends(span: Span) -> tuple[str, ...]:
    """Both ends of a claim's interval without their unit, the smaller one first."""
    if _in_times(span):
        return f"{1 + span.low:.3g}", f"{1 + span.high:.3g}"
    return tuple(
        f"{value * 100:.{span.digits}f}" for value in sorted(map(abs, (span.low, span.high)))
    )


def _in_times(span: Span) -> bool:
    return span.is_finite and 1 + span.point >= _TIMES_FROM


def owner_of(file: WhatRan) -> str:
    """Whose a file is, and whether all variants that ran it had the same one."""
    owner = "built" if file.built else "of the machine"
    many = pluralize(len(file.variants), "variant")
    if file.same:
        return f"{owner}, the same for {many}"
    return f"{owner}, not the same for all of {many}"


def executed_files(files: Sequence[WhatRan]) -> str:
    """In one sentence; empty where nothing was followed."""
    built = [file.path for file in files if file.built]
    if not files:
        return ""
    own = ", ".join(built) or "nothing that was built"
    machine = len(files) - len(built)
    return f"What ran: {own}; and {pluralize(machine, 'file')} of the machine"
