"""Where the time of each workload goes, and what bounds it: the same for every renderer. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ensign.model.comparisons import TimeShares
from ensign.model.finding_kinds.race import (
    LINK_SATURATED,
    LOAD_BOTTLENECK,
    MOSTLY_SYSTEM,
    MOSTLY_WAITING,
    SHORT_PROCESSES,
)
from ensign.model.results import Result, VariantFacts
from ensign.report import figures
from ensign.report.confirmation import findings_of
from ensign.report.words import clean
from ensign.stats.named_scores import workload_of

HEADING = "What bounds it"
READ = (
    "Shares of the wall time in which it was running: its own code, the kernel on its behalf, "
    "waiting, taken (it wanted a CPU and others had it), its load; over 100 % where several CPUs "
    "are busy. To gain: the most by which faster code can make it faster."
)
_COLUMNS = ("own", "kernel", "waiting", "taken", "load", "to gain", "bound by")
# The first that was found is the reason.
_BOUNDS = {
    LINK_SATURATED.code: "link",
    LOAD_BOTTLENECK.code: "load",
    MOSTLY_WAITING.code: "waiting",
    SHORT_PROCESSES.code: "processes",
    MOSTLY_SYSTEM.code: "kernel",
}
_OWN_CODE = 0.6


@dataclass(frozen=True, slots=True)
class BoundRow:
    """A workload of the baseline, or a command; a cell for each column."""

    name: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoundTable:
    """Columns of which something is known, and a row for each name."""

    columns: tuple[str, ...]
    rows: tuple[BoundRow, ...]


def bound_table(result: Result) -> BoundTable:
    """A row for each workload, of the baseline; of a single workload one for each variant."""
    said = _said(result)
    rows = [_row(name, facts, shares, said) for name, facts, shares in _rows(result)]
    known = [n for n in range(len(_COLUMNS)) if any(row.cells[n] for row in rows)]
    return BoundTable(
        tuple(_COLUMNS[n] for n in known),
        tuple(BoundRow(row.name, tuple(row.cells[n] for n in known)) for row in rows),
    )


def _rows(result: Result) -> Iterator[tuple[str, VariantFacts, TimeShares]]:
    named = {workload_of(each.workload) for each in result.measured}
    seen = set()
    for each in result.measured:
        name = each.variant if named == {""} else workload_of(each.workload)
        if (named == {""} or each.variant == result.baseline) and each.shares and name not in seen:
            seen.add(name)
            yield name, each, each.shares


def _said(result: Result) -> dict[tuple[str, str], str]:
    return {
        (code, each.subject): text
        for each in findings_of(result)
        for code, text in _BOUNDS.items()
        if each.code == code
    }


def _row(
    name: str, facts: VariantFacts, shares: TimeShares, said: dict[tuple[str, str], str]
) -> BoundRow:
    own = shares.cpu * (1 - shares.system)
    found = [said[code, name] for code in _BOUNDS if (code, name) in said]
    cells = (
        _percent(own),
        _percent(shares.cpu * shares.system),
        _percent(shares.waiting),
        "" if shares.taken is None else _percent(shares.taken),
        _percent(shares.load) if shares.load else "",
        figures.most_gain(facts.most_gain),
        found[0] if found else "own code" if own >= _OWN_CODE else "",
    )
    return BoundRow(clean(name), cells)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
