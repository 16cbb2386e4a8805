"""A checkup as text for a terminal, and as JSON."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from itertools import groupby

from ensign.model.checkup import Checkup, CheckupLine, Status
from ensign.model.findings import Finding
from ensign.model.quoting import json_visible
from ensign.report.github import safe

_MARKS = {Status.GOOD: "✓", Status.POOR: "~", Status.MISSING: "✗"}
_INDENT = "      "
_LABEL_WIDTH = 24


def terminal(checkup: Checkup, width: int = 80) -> str:
    """The machine, the checks by area with remedies below, and what the state means."""
    lines = ["machine"]
    for name, value in checkup.machine.facts:
        lines += _wrapped(f"    {name:<{_LABEL_WIDTH - 1}} ", value, width)
    for area, checks in groupby(checkup.checks, key=lambda check: check.area):
        lines += ["", area]
        for check in checks:
            lines += _check(check, width)
    if checkup.findings:
        lines += ["", "state"]
        for finding in checkup.findings:
            lines += _finding(finding, width)
    lines += ["", *_wrapped("", _summary(checkup), width)]
    return "\n".join(lines) + "\n"


def as_json(checkup: Checkup) -> str:
    """`{"checks": […], "machine": {…}, "findings": […]}`."""
    content = {
        "checks": [asdict(check) for check in checkup.checks],
        "machine": dict(checkup.machine.facts),
        "findings": [asdict(finding) for finding in checkup.findings],
    }
    return json_visible(json.dumps(content, indent=2, ensure_ascii=False)) + "\n"


def markdown(checkup: Checkup) -> str:
    """The same for a page or an issue."""
    lines = ["| machine | |", "| --- | --- |"]
    lines += [f"| {safe(name)} | {safe(value)} |" for name, value in checkup.machine.facts]
    lines += ["", "| check | | | what mends it |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {safe(check.name)} | {check.status} | {safe(check.detail)} | {safe(check.remedy)} |"
        for check in checkup.checks
    ]
    lines += [
        "",
        *(f"- **{finding.severity}**: {safe(finding.said)}" for finding in checkup.findings),
    ]
    return "\n".join(lines).rstrip() + f"\n\n{_summary(checkup)}\n"


def _check(check: CheckupLine, width: int) -> list[str]:
    label = f"  {_MARKS[check.status]} {check.name:<{_LABEL_WIDTH - 1}} "
    lines = _wrapped(label, check.detail, width)
    if check.remedy and check.status is not Status.GOOD:
        lines += _wrapped(f"{_INDENT}→ ", check.remedy, width)
    return lines


def _finding(finding: Finding, width: int) -> list[str]:
    return _wrapped("  - ", finding.said, width)


def _wrapped(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        max(width, 40),
        initial_indent=label,
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [label.rstrip()]


def _summary(checkup: Checkup) -> str:
    missing = sum(check.status is Status.MISSING for check in checkup.checks)
    poor = sum(check.status is Status.POOR for check in checkup.checks)
    if not missing and not poor:
        return "Nothing is missing."
    return f"{missing} missing, {poor} could be better; each with what mends it (→)."
