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
    what it is about (a variant, a workload, an arm), or is empty for the whole.
    """

    code: str
    severity: Severity
    text: str
    subject: str = ""

    @property
    def about(self) -> str:
        """What it is about, to be put before the text; empty where the text begins with it."""
        rest = self.text.removeprefix(self.subject)
        named = rest != self.text and rest[:1] in (":", ",", " ")
        return "" if named else self.subject
