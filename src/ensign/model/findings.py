"""A finding is a doubt or a fact about a result; it travels with the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Severity(StrEnum):
    """Degree to which a finding changes what may be concluded."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement about a machine, build, race or result; made from its kind.

    `code` is stable and machine readable (``same-bytes``), `text` is for people, `subject` names
    what it is about (a variant, a workload), or is empty for the whole; `text` does not say it
    again.
    """

    code: str
    severity: Severity
    text: str
    subject: str = ""

    @property
    def said(self) -> str:
        """The text with whom it is about."""
        return f"{self.subject}: {self.text}" if self.subject else self.text

    def is_a(self, *kinds: FindingKind) -> bool:
        """True if its code is that of one of these, whatever its severity."""
        return any(self.code == kind.code for kind in kinds)


@dataclass(frozen=True, slots=True)
class FindingKind:
    """Properties that all findings of one code and severity share.

    `meaning` and `remedy` are sentences for someone who has met one: what it tells, and what to do.
    A code that comes in several severities has a kind for each; `when` says when it is this one.
    """

    code: str
    severity: Severity
    meaning: str
    remedy: str
    when: str = ""

    def found(self, text: str, subject: str = "") -> Finding:
        """A finding of this kind."""
        return Finding(self.code, self.severity, text, subject)

    def as_severity(self, severity: Severity, when: str) -> FindingKind:
        """The kind of the same code that weighs more or less."""
        return replace(self, severity=severity, when=when)
