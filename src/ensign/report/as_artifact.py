"""What `ensign doctor PATH` found, as text for a terminal, and as JSON."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict

from ensign.model.checkup import ArtifactCheckup
from ensign.model.finding_kinds.proof import NOT_JUDGED
from ensign.model.findings import Severity
from ensign.model.quoting import json_visible

_MARKS = {Severity.NOTE: "-", Severity.WARNING: "!", Severity.ERROR: "✗"}


def terminal(checkup: ArtifactCheckup, width: int = 80) -> str:
    """The findings first, then what each artifact shows."""
    lines = []
    judged = [finding for finding in checkup.findings if not finding.is_a(NOT_JUDGED)]
    questions = [finding for finding in checkup.findings if finding.is_a(NOT_JUDGED)]
    for finding in judged:
        lines += _wrapped(f"{_MARKS[finding.severity]} {finding.code}: ", finding.said, width)
    if not checkup.findings:
        lines.append("Nothing is wrong as far as the evidence goes.")
    if questions:
        number = len(questions)
        are = "question is" if number == 1 else "questions are"
        open_ = f"{number} main {are} open, for lack of evidence:"
        lines += [*([""] if judged else []), open_]
        for finding in questions:
            lines += _wrapped("? ", finding.said, width)
    for each in checkup.examined:
        lines += ["", each.path]
        for line in each.evidence:
            lines += _wrapped("    ", line, width)
    if checkup.sources:
        lines += ["", *_wrapped("", f"also read: {', '.join(checkup.sources)}", width)]
    return "\n".join(lines) + "\n"


def as_json(checkup: ArtifactCheckup) -> str:
    """`{"path": …, "examined": […], "sources": […], "findings": […]}`."""
    return json_visible(json.dumps(asdict(checkup), indent=2, ensure_ascii=False)) + "\n"


def _wrapped(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 40),
        initial_indent=label,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    ) or [label.rstrip()]
