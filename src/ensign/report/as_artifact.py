"""Findings of `ensign doctor PATH`, as text for a terminal, and as JSON."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict

from ensign.model.checkup import ArtifactCheckup
from ensign.model.finding_kinds.proof import NOT_JUDGED
from ensign.model.findings import Severity
from ensign.model.quoting import json_visible
from ensign.report.github import safe

_NAME_WIDTH = 12
_MARKS = {Severity.NOTE: "-", Severity.WARNING: "!", Severity.ERROR: "✗"}


def terminal(checkup: ArtifactCheckup, width: int = 80, *, details: bool = False) -> str:
    """The findings first, then facts and advice of a single program, or what each artifact shows.

    With `details` all of that.
    """
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
    lines += _program(checkup, width, details=details)
    for examined in checkup.examined if details or not checkup.facts else ():
        lines += ["", examined.path]
        for line in examined.evidence:
            lines += _wrapped("    ", line, width)
    if checkup.sources:
        lines += ["", *_wrapped("", f"also read: {', '.join(checkup.sources)}", width)]
    if checkup.unasked:
        lines += ["", *_wrapped("", checkup.unasked, width)]
    return "\n".join(lines) + "\n"


def _program(checkup: ArtifactCheckup, width: int, *, details: bool) -> list[str]:
    lines = ["", checkup.path] if checkup.facts else []
    for fact in checkup.facts:
        lines += _wrapped(f"    {fact.name:<{_NAME_WIDTH}}", fact.value, width, _NAME_WIDTH + 4)
        for more in fact.more if details else ():
            lines += _wrapped(" " * (_NAME_WIDTH + 4), more, width, _NAME_WIDTH + 8)
    if checkup.advice:
        lines += ["", "advice"]
    for advice in checkup.advice:
        lines += _wrapped(f"  → {advice.practice}: ", advice.text, width, 6)
        if details:
            lines += _wrapped("      takes: ", advice.takes, width, 10)
        lines += _wrapped("      worth: ", advice.worth, width, 10)
        if details:
            lines += _wrapped("      price: ", advice.price, width, 10)
    if checkup.advice and not details:
        lines += ["", "--details says what each takes here, and the command that prices it."]
    return lines


def markdown(checkup: ArtifactCheckup) -> str:
    """The same for a page or an issue: findings, facts, advice."""
    lines = [f"## {safe(checkup.path)}", ""]
    lines += [
        f"- **{finding.severity} {finding.code}**: {safe(finding.said)}"
        for finding in checkup.findings
    ] or ["Nothing is wrong as far as the evidence goes."]
    for examined in checkup.examined:
        lines += ["", f"### {safe(examined.path)}", ""]
        lines += [f"- {safe(line)}" for line in examined.evidence]
    if checkup.facts:
        lines += ["", "| fact | |", "| --- | --- |"]
        lines += [f"| {fact.name} | {safe(fact.value)} |" for fact in checkup.facts]
    if checkup.advice:
        lines += ["", "| advice | why | takes | worth | price |", "| --- | --- | --- | --- | --- |"]
        for advice in checkup.advice:
            cells = (advice.practice, advice.text, advice.takes, advice.worth, advice.price)
            lines.append(f"| {' | '.join(map(safe, cells))} |")
    if checkup.sources:
        lines += ["", f"Also read: {safe(', '.join(checkup.sources))}."]
    return "\n".join(lines) + "\n"


def as_json(checkup: ArtifactCheckup) -> str:
    """`{"path": …, "examined": […], "sources": […], "findings": […], "unasked": …, "facts": …}`."""
    return json_visible(json.dumps(asdict(checkup), indent=2, ensure_ascii=False)) + "\n"


def _wrapped(label: str, text: str, width: int, indent: int = 4) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 40),
        initial_indent=label,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [label.rstrip()]
