"""What a difference comes from, in words and rows: its causes with their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ensign.model.comparisons import Direction
from ensign.model.results import Causes, CauseShare, Result
from ensign.report.function_costs import chart_row
from ensign.report.view import Row
from ensign.report.words import KINDS_OF_CAUSE, Span, clean, percent, plain_share, signed

HEADING = "Why"
COLUMNS = ("cause", "adds", "interval", "share", "interval of it", "")
SHARE_INTERVAL = 3  # of the cells
READ = (
    "Every cause is a build between both ends, raced beside them: what it adds is the mean of what "
    "it changes in the one end and what the other loses without it (of training workloads the "
    "latter alone). Shares and the rest add up to 100 %. Proven: it differs from nothing, all "
    "causes being judged together."
)
REST = "not explained by these"
PROVEN, UNPROVEN, NOT_RACED, SAME = "proven", "unproven", "not raced", "identical"
_FEW = 3
_MATTERS = 0.05  # of the whole difference: what depends on others by less nobody needs to know
_CANCELING = 2.0  # share of a difference above which a share of it says less than a size


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A cause in words; `row` is for charts."""

    name: str
    cells: tuple[str, ...]
    row: Row


@dataclass(frozen=True, slots=True)
class CauseSection:
    """What there is to say of one way to split the difference on a workload."""

    text: str
    way: str
    workload: str
    rows: tuple[CauseRow, ...]

    @property
    def by(self) -> str:
        """What its table is called, after its heading."""
        return f"by {self.way}" + (f", {self.workload}" if self.workload else "")


def cause_sections(result: Result) -> tuple[CauseSection, ...]:
    """One for each way to split the difference and workload, unless a finer one says more.

    All workloads together come first, then those that differ most.
    """
    finer = {"source groups": "sources", "training groups": "training", "flag groups": "flags"}
    last = {
        (causes.by, causes.workload): causes for causes in result.causes
    }  # groups are split again
    ways = list(dict.fromkeys(by for by, _ in last))
    told = sorted(
        (causes for causes in last.values() if finer.get(causes.by) not in ways),
        key=lambda causes: (
            ways.index(causes.by),
            bool(causes.workload),
            -abs(causes.total.effect),
        ),
    )
    return tuple(_section(causes, result) for causes in told)


def shown_briefly(sections: Sequence[CauseSection]) -> list[CauseSection]:
    """Of each way to split a difference the first table."""
    first: dict[str, CauseSection] = {}
    for section in sections:
        if section.rows:
            first.setdefault(section.way, section)
    return list(first.values())


def _section(causes: Causes, result: Result) -> CauseSection:
    text = _sentence(causes, result)
    _, kinds = KINDS_OF_CAUSE[causes.by]
    workload = clean(causes.workload) if len(result.workload_names) > 1 else ""
    if not causes.different:
        return CauseSection(text, kinds, workload, ())
    rest = CauseRow(REST, (*_figures(causes.rest), ""), _chart_row(causes.rest, REST))
    rows = (*map(_row, causes.parts), rest)
    return CauseSection(text, kinds, workload, rows)


def _sentence(causes: Causes, result: Result) -> str:
    several = causes.workload and len(result.workload_names) > 1
    about = f"{clean(causes.workload)}: " if several else ""
    variant, baseline = clean(causes.variant), clean(result.baseline)
    total = causes.total
    interval = f"{_interval(total)}, {plain_share(causes.level)}"
    if not causes.different:
        return (
            f"{about}No difference between {variant} and {baseline} is shown ({interval}), so "
            "there is nothing to explain."
        )
    more = "more" if total.effect > 0 else "less"
    size = percent(abs(total.effect)).removeprefix("+")
    text = f"{about}{variant} costs {size} {more} than {baseline} ({interval})"
    proven = [part for part in causes.parts if part.proven]
    if not proven:
        return f"{text}; no cause of {len(causes.parts)} is proven."
    if causes.by_one:
        return f"{text}, all of it by {clean(proven[0].name)}."
    few = proven[:_FEW]
    cancel = any(abs(part.share) > _CANCELING for part in few)
    *sizes, rest = (percent(c.effect) if cancel else _whole(c.share) for c in (*few, causes.rest))
    named = ", ".join(f"{s} is {clean(part.name)}" for s, part in zip(sizes, few, strict=True))
    told = (
        f" What {clean(part.name)} adds depends on the others: {percent(part.alone)} alone, "
        f"{percent(part.last)} beside them."
        for part in few
        if part.depends and abs(part.last - part.alone) > _MATTERS * abs(total.effect)
    )
    start = "Causes cancel in part:" if cancel else "Of that,"
    return f"{text}. {start} {named}; {rest} is not explained.{''.join(told)}"


def _row(part: CauseShare) -> CauseRow:
    name = clean(part.name)
    if part.unknown:
        cells = ("", "", "", "", NOT_RACED)
        return CauseRow(name, cells, _chart_row(part, name))
    same = part.effect == part.low == part.high == 0
    judged = SAME if same else PROVEN if part.proven else UNPROVEN
    return CauseRow(name, (*_figures(part), judged), _chart_row(part, name))


def _figures(part: CauseShare) -> tuple[str, str, str, str]:
    bounds = f"{_number(part.share_low)} to {_whole(part.share_high)}"
    return percent(part.effect), _interval(part), _whole(part.share), bounds


def _whole(share: float) -> str:
    return f"{_number(share)} %"


def _number(share: float) -> str:
    rounded = round(100 * share)
    return f"−{-rounded}" if rounded < 0 else str(rounded)


def _interval(part: CauseShare) -> str:
    return f"{signed(part.low)} to {percent(part.high)}"


def _chart_row(part: CauseShare, name: str) -> Row:
    interval = "" if part.unknown else _interval(part)
    span = Span(part.low, part.high, part.effect)
    if not part.proven:
        return chart_row(name, span, interval, Direction.UNCLEAR)
    return chart_row(name, span, interval)
