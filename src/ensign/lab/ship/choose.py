"""Which variant is shipped. Pure."""

from __future__ import annotations

from collections.abc import Collection

from ensign.model.builds import BuildFacts, BuildStatus
from ensign.model.comparisons import Direction
from ensign.model.errors import InputError
from ensign.model.finding_kinds.builds import CHECK_FAILED
from ensign.model.findings import Severity
from ensign.model.results import Result
from ensign.model.study_problems import suggestion
from ensign.report.confirmation import findings_of
from ensign.report.verdict import shown_regressions, suite_sentence, verdict_of
from ensign.stats.winner import winner

REGRESSIONS, CHECK = "regressions", "check"
DESPITE = (REGRESSIONS, CHECK)


def chosen(result: Result, wanted: str | None, despite: Collection[str] = ()) -> BuildFacts:
    """The build of the variant asked for, or of the winner. InputError where there is none.

    One that is named needs not be shown to be faster, but it must be one that could be shipped:
    one that fails its check, or is shown to be slower somewhere, only `despite` that.
    """
    unknown = sorted(set(despite).difference(DESPITE))
    if unknown:
        raise InputError(f"--despite knows {' and '.join(DESPITE)}, not '{unknown[0]}'")
    build = _chosen(result, wanted, despite)
    slower = "" if REGRESSIONS in despite else _regressions(result, build.raced_as)
    if slower:
        raise InputError(
            f"{build.variant} has a regression that is shown: {slower}; "
            f"to ship it all the same: --despite {REGRESSIONS}"
        )
    return build


def _regressions(result: Result, variant: str) -> str:
    """By the phase that decides about the variant, where it took part in it."""
    second = None if result.confirmation is None else result.confirmation.result
    for judged in filter(None, (second, result)):
        compared = next((each for each in judged.suite if each.comparison.variant == variant), None)
        if compared is None:
            continue
        found = shown_regressions(variant, judged)
        if not found and compared.comparison.direction is Direction.SLOWER:
            found = suite_sentence(compared, judged)
        return found
    return ""


def _chosen(result: Result, wanted: str | None, despite: Collection[str]) -> BuildFacts:
    if wanted is None:
        # Of an exploration nothing is claimed: not even that it has a winner.
        judged = result if result.confirmation is None else result.confirmation.result
        best = None if judged is None else winner(judged)
        if best is None:
            raise InputError(
                f"nothing to ship: {verdict_of(result).headline} Name a variant to ship it "
                "all the same"
            )
        return next(each for each in result.builds if each.variant == best.comparison.variant)
    build = next((each for each in result.builds if each.variant == wanted), None)
    if build is None:
        near = suggestion(wanted, [each.variant for each in result.builds])
        raise InputError(f"the study has measured no variant called '{wanted}'{near}")
    if result.baseline in (wanted, build.raced_as):
        raise InputError(f"{wanted} is what the baseline {result.baseline} is: nothing to ship")
    if build.status in (BuildStatus.FAILED, BuildStatus.LEFT_OUT):
        raise InputError(f"{wanted} cannot be shipped: it was not built ({build.said})")
    for finding in findings_of(result):
        if finding.subject != wanted or finding.severity is not Severity.ERROR:
            continue
        if not finding.is_a(CHECK_FAILED):
            raise InputError(f"{wanted} cannot be shipped: {finding.text} ({finding.code})")
        if CHECK not in despite:
            raise InputError(
                f"{wanted} cannot be shipped: {finding.text} ({finding.code}); "
                f"to ship it all the same: --despite {CHECK}"
            )
    return build
