"""A finding is a doubt or a fact about a result; it travels with the result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding changes what may be concluded."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement about a machine, build, race or result.

    `code` is stable and machine readable (``same-bytes``), `text` is for people, `subject` names
    what it is about (a variant, a workload, a variant), or is empty for the whole; `text` does not
    say it again.
    """

    code: str
    severity: Severity
    text: str
    subject: str = ""

    @property
    def said(self) -> str:
        """The text with whom it is about."""
        return f"{self.subject}: {self.text}" if self.subject else self.text
