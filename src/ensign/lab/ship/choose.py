"""Which variant is shipped. Pure."""

from __future__ import annotations

from ensign.model.errors import InputError
from ensign.model.findings import Severity
from ensign.model.results import BuildFacts, StudyResult
from ensign.model.study_problems import suggestion
from ensign.report.confirmation import findings_of
from ensign.report.verdict import study_verdict, winner


def chosen(result: StudyResult, wanted: str | None) -> BuildFacts:
    """The build of the variant asked for, or of the winner. InputError where there is none.

    One that is named needs not be shown to be faster, but it must be one that could be shipped.
    """
    if wanted is None:
        # Of an exploration nothing is claimed: not even that it has a winner.
        judged = result if result.confirmation is None else result.confirmation.result
        best = None if judged is None else winner(judged)
        if best is None:
            raise InputError(
                f"nothing to ship: {study_verdict(result).headline} Name a variant to ship it "
                "all the same"
            )
        return next(each for each in result.builds if each.variant == best.comparison.arm)
    build = next((each for each in result.builds if each.variant == wanted), None)
    if build is None:
        near = suggestion(wanted, [each.variant for each in result.builds])
        raise InputError(f"the study has measured no variant called '{wanted}'{near}")
    if result.baseline in (wanted, build.status.removeprefix("same as ")):
        raise InputError(f"{wanted} is what the baseline {result.baseline} is: nothing to ship")
    if build.status in ("failed", "left out"):
        raise InputError(f"{wanted} cannot be shipped: it was not built ({build.status})")
    for finding in findings_of(result):
        if finding.subject == wanted and finding.severity is Severity.ERROR:
            raise InputError(f"{wanted} cannot be shipped: {finding.text} ({finding.code})")
    return build
