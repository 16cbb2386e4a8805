"""Which variants may win, and which one does. Decided here alone. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ensign.model.builds import CheckStatus
from ensign.model.comparisons import Direction
from ensign.model.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ensign.model.builds import BuildFacts
    from ensign.model.findings import Finding
    from ensign.model.results import Result, SuiteComparison


def barred(findings: Iterable[Finding], builds: Iterable[BuildFacts] = ()) -> frozenset[str]:
    """Variants that an error or a failed check speaks against: measured, but not to be used."""
    by_error = (each.subject for each in findings if each.severity is Severity.ERROR)
    by_check = (each.variant for each in builds if each.check == CheckStatus.FAILED)
    return frozenset((*filter(None, by_error), *by_check))


def able(result: Result) -> tuple[SuiteComparison, ...]:
    """The variants that may win, the fastest first; neither baseline nor twin is among them."""
    unfit = barred(result.findings, result.builds) | {result.twin, result.baseline}
    rows = (each for each in result.suite if each.comparison.variant not in unfit)
    return tuple(sorted(rows, key=lambda each: each.comparison.ratio))


def winner(result: Result) -> SuiteComparison | None:
    """The best of those that are shown to be faster."""
    faster = (each for each in able(result) if each.comparison.direction is Direction.FASTER)
    return next(faster, None)
