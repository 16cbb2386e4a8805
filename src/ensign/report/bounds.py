"""Where the time of each workload goes, and what bounds it: the same for every renderer. Pure."""

from __future__ import annotations

from collections.abc import Sequence

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
from ensign.report.plain_tables import Table
from ensign.report.words import clean
from ensign.stats.named_scores import workload_of

HEADING = "What bounds it"
READ = (
    "Shares of the wall time in which it was running: its own code, the kernel on its behalf, "
    "waiting, taken (it wanted a CPU and others had it), its load; over 100 % where several CPUs "
    "are busy. To gain: the most by which faster code can make it faster."
)
_COLUMNS = ("", "own", "kernel", "waiting", "taken", "load", "to gain", "bound by")
# The first that was found is the reason.
_BOUNDS = {
    LINK_SATURATED.code: "link",
    LOAD_BOTTLENECK.code: "load",
    MOSTLY_WAITING.code: "waiting",
    SHORT_PROCESSES.code: "processes",
    MOSTLY_SYSTEM.code: "kernel",
}
_OWN_CODE = 0.6


def bound_table(result: Result) -> Table:
    """A row for each workload, of the baseline; of a single workload one for each variant.

    Its name is the first cell. Columns of which nothing is known are left out.
    """
    codes = {(finding.code, finding.subject) for finding in findings_of(result)}
    rows = [
        _row(name, facts, shares, [text for code, text in _BOUNDS.items() if (code, name) in codes])
        for name, (facts, shares) in _shares(result).items()
    ]
    known = [n for n in range(len(_COLUMNS)) if n == 0 or any(row[n] for row in rows)]
    return Table(
        HEADING,
        tuple(_COLUMNS[n] for n in known),
        tuple(tuple(row[n] for n in known) for row in rows),
    )


def _shares(result: Result) -> dict[str, tuple[VariantFacts, TimeShares]]:
    """By the name of a row, of which tests of one execution are the same."""
    single = not any(facts.workload for facts in result.measured)
    shares: dict[str, tuple[VariantFacts, TimeShares]] = {}
    for used in result.measured:
        if used.shares and (single or used.variant == result.baseline):
            name = used.variant if single else workload_of(used.workload)
            shares.setdefault(name, (used, used.shares))
    return shares


def _row(
    name: str, facts: VariantFacts, shares: TimeShares, bounds: Sequence[str]
) -> tuple[str, ...]:
    own = shares.cpu * (1 - shares.system)
    return (
        clean(name),
        _percent(own),
        _percent(shares.cpu * shares.system),
        _percent(shares.waiting),
        "" if shares.taken is None else _percent(shares.taken),
        _percent(shares.load) if shares.load else "",
        figures.most_gain(facts.most_gain),
        bounds[0] if bounds else "own code" if own >= _OWN_CODE else "",
    )


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
