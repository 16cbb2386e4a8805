"""The variants that may win, and the one that does. Decided here alone. Pure."""

from __future__ import annotations

import math
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
    by_error = (finding.subject for finding in findings if finding.severity is Severity.ERROR)
    by_check = (build.variant for build in builds if build.check == CheckStatus.FAILED)
    return frozenset((*filter(None, by_error), *by_check))


def able(result: Result) -> tuple[SuiteComparison, ...]:
    """The variants that nothing speaks against, the best first; not the baseline or its twin.

    The best has the least mean, or, where robust builds are preferred, is the best at its worst.
    """
    unfit = barred(result.findings, result.builds) | {result.twin, result.baseline}
    rows = (compared for compared in result.suite if compared.comparison.variant not in unfit)
    return tuple(
        sorted(rows, key=lambda compared: (_rank(compared, result), compared.comparison.ratio))
    )


def promising(result: Result) -> tuple[SuiteComparison, ...]:
    """Those with a mean below the baseline's that may win, the best first; nothing is shown yet."""
    return tuple(
        compared
        for compared in able(result)
        if compared.comparison.ratio < 1 and can_win(compared, result)
    )


def winner(result: Result) -> SuiteComparison | None:
    """The best of those that are shown to be faster."""
    return next((compared for compared in shown_faster(result) if can_win(compared, result)), None)


def shown_faster(result: Result) -> tuple[SuiteComparison, ...]:
    """Those that nothing speaks against and that are shown to be faster, the best first."""
    return tuple(
        compared for compared in able(result) if compared.comparison.direction is Direction.FASTER
    )


def can_win(compared: SuiteComparison, result: Result) -> bool:
    """True if it is what is preferred: robust builds are no worse than the baseline at its worst.

    A variant whose worst layout is not known is not robust.
    """
    if result.prefer == "mean":
        return True
    own = None if result.layouts is None else result.layouts.worst_of(result.baseline)
    return own is not None and _rank(compared, result) <= own


def _rank(compared: SuiteComparison, result: Result) -> float:
    if result.prefer == "mean":
        return compared.comparison.ratio
    layouts = result.layouts
    worst = None if layouts is None else layouts.worst_of(compared.comparison.variant)
    return math.inf if worst is None else worst
