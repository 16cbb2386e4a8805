"""Whether anybody is left to race beside the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from ensign.experiment.raced_files import summarize
from ensign.experiment.record import STUDY, usable_record, write_record
from ensign.experiment.study.prepare import BuiltPrograms
from ensign.experiment.study.record import with_checks_of
from ensign.model.builds import BuildFacts
from ensign.model.errors import RaceFailed
from ensign.model.findings import Finding, Severity
from ensign.store.folder import StudyFolder

_WAY_OUT = "fix that, or leave it out, and run it again: what is built stays built"


def require_variants(folder: StudyFolder, programs: BuiltPrograms, record: str = STUDY) -> None:
    """RaceFailed where nobody is left: the baseline and its twin alone would show nothing.

    What was measured before gets what the checks say now.
    """
    why = nobody_left(programs)
    if not why:
        return
    known = usable_record(folder, record)
    if known is not None:
        write_record(folder, with_checks_of(known, programs.report), record)
    raise RaceFailed(why)


def nobody_left(programs: BuiltPrograms) -> str:
    """Why no variant is left, and the way out; empty where one is, or where none was withdrawn.

    Where all are the same as the baseline, that is the answer of the study. Pure.
    """
    raced = [name for name, _ in programs.artifacts]
    if len(raced) > 1:
        return ""
    reasons: dict[str, list[BuildFacts]] = {}
    for result in programs.report.results:
        facts = result.facts
        if facts.variant not in raced and not facts.same_as:
            why = _why(facts, programs.report.findings)
            reasons.setdefault(why, []).append(facts)
    if not reasons:
        return ""
    said = [
        f"{', '.join(each.variant for each in alike)}: {why}{_log(alike[0])}"
        for why, alike in reasons.items()
    ]
    return (
        f"nothing is left to compare with {raced[0]}, so nothing is raced: "
        f"{summarize(said)}; {_WAY_OUT}"
    )


def _why(facts: BuildFacts, findings: Sequence[Finding]) -> str:
    errors = [each for each in findings if each.severity is Severity.ERROR]
    for finding in errors:
        if finding.subject == facts.variant:
            return finding.text
    if facts.out or not facts.log_tail:
        return facts.out or facts.said
    return f"{facts.said}: {facts.why_and_way_out}"


def _log(facts: BuildFacts) -> str:
    return f"; log: {facts.log_path}" if facts.log_path and not facts.out else ""
