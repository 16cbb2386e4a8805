"""Findings as readers meet them: the same about six variants is said once. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ensign.model.finding_kinds.race import LONGER_WOULD_TELL, MOSTLY_SYSTEM, MOSTLY_WAITING
from ensign.model.findings import Finding, Severity
from ensign.report.words import clean, listed

# Notes that are a part of the answer.
_ANSWERS = (MOSTLY_WAITING, MOSTLY_SYSTEM, LONGER_WOULD_TELL)


@dataclass(frozen=True, slots=True)
class ListedFinding:
    """One finding about one subject, or the same about several, ready to show."""

    severity: Severity
    code: str
    subjects: str
    text: str


def list_findings(findings: Iterable[Finding]) -> tuple[ListedFinding, ...]:
    """In their order; what is said of several subjects in the same words is one of them."""
    found: dict[tuple[Severity, str, str], list[str]] = {}
    for each in findings:
        found.setdefault((each.severity, each.code, each.text), []).append(each.subject)
    return tuple(
        ListedFinding(
            severity, clean(code), listed(tuple(dict.fromkeys(filter(None, about)))), clean(text)
        )
        for (severity, code, text), about in found.items()
    )


def briefly_told(findings: Iterable[Finding]) -> tuple[ListedFinding, ...]:
    """Those that ask for something, or belong to the answer, the worst first, one for each code."""
    asking = [each for each in findings if _rank(each) is not None]
    asking.sort(key=lambda each: _rank(each) or 0)
    by_code: dict[tuple[Severity, str], list[Finding]] = {}
    for each in asking:
        by_code.setdefault((each.severity, each.code), []).append(each)
    return tuple(map(_one_of, by_code.values()))


def _rank(finding: Finding) -> int | None:
    """Where it stands; None for a note that asks for nothing."""
    if finding.severity is Severity.ERROR:
        return 0
    if finding.is_a(*_ANSWERS):
        return 1
    return 2 if finding.severity is Severity.WARNING else None


def _one_of(alike: list[Finding]) -> ListedFinding:
    """The first of one code; how many more there are in other words."""
    first, *others = list_findings(alike)
    if not others:
        return first
    subjects = listed(tuple(dict.fromkeys(each.subject for each in alike if each.subject)))
    text = f"{first.text} (and {len(others)} more like it)"
    return ListedFinding(first.severity, first.code, subjects, text)
