"""The difference of two studies as text, as GitHub Markdown and as JSON."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict

from ensign.model.differences import RatioChange, StudyDifference
from ensign.model.quoting import json_visible
from ensign.report import github
from ensign.report.difference import Table, answer, difference_view
from ensign.report.github import safe

_SIGNIFICANT = "Workloads that moved (significant after Holm's adjustment)"


def text(found: StudyDifference, width: int = 80) -> str:
    """For a terminal or a file: prose wrapped, tables as wide as they must be."""
    view = difference_view(found)
    lines = _wrapped(view.headline, width)
    for sentence in view.sentences:
        lines += _wrapped(sentence, width)
    for warning in view.warnings:
        lines += _wrapped(f"! {warning}", width)
    for table in (view.suite, *view.workloads):
        lines += ["", *_aligned(table)]
    for table in view.differing:
        lines += ["", table.heading]
        for name, a, b in table.rows:
            lines += _wrapped(f"{name}: A {a}; B {b}", width)
    lines += ["", _SIGNIFICANT]
    for each in view.significant:
        lines += _wrapped(each, width)
    lines += [""]
    for note in view.notes:
        lines += _wrapped(note, width)
    return "\n".join(lines) + "\n"


def markdown(found: StudyDifference) -> str:
    """For a pull request: the answer, the geometric means; the rest folded."""
    view = difference_view(found)
    parts = [
        f"**{safe(view.headline)}**",
        " ".join(map(safe, view.sentences)),
        *(f"> ⚠️ {safe(warning)}" for warning in view.warnings),
        _grid(view.suite),
        f"#### {_SIGNIFICANT}",
        "\n".join(f"- {safe(each)}" for each in view.significant),
        *(_folded(table) for table in (*view.differing, *view.workloads)),
        "\n".join(f"- {safe(note)}" for note in view.notes),
    ]
    return "\n\n".join(parts) + "\n"


def as_json(found: StudyDifference) -> str:
    """Ratios of cost ratios (above 1: relatively slower in B); what is infinite is null."""
    said = {
        "a": asdict(found.a),
        "b": asdict(found.b),
        "baseline": found.baseline,
        "twin": found.twin,
        "level": found.level,
        "margin": found.margin,
        "suite": [_change(each, found) for each in found.suite],
        "workloads": [_change(each, found) for each in found.workloads],
        "significant": [asdict(each) for each in found.significant],
        "builds": [{**asdict(each), "same": each.same} for each in found.builds],
        "machine": [asdict(each) for each in found.machine],
        "settings": [asdict(each) for each in found.settings],
        "only_a": found.only_a,
        "only_b": found.only_b,
        "findings": [asdict(each) for each in found.findings],
    }
    return json_visible(json.dumps(said, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"


def _change(each: RatioChange, found: StudyDifference) -> dict[str, object]:
    compared = each.comparison
    return {
        "variant": compared.variant,
        "workload": each.workload or None,
        "metric": compared.metric.value,
        "ratio_a": each.ratio_a,
        "ratio_b": each.ratio_b,
        "ratio": compared.ratio,
        "low": compared.low,
        "high": compared.high if math.isfinite(compared.high) else None,
        "direction": compared.direction.value,
        "size": None if compared.size is None else compared.size.value,
        "answer": answer(compared, found.margin),
    }


def _aligned(table: Table) -> list[str]:
    widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    return [table.heading, *(_line(row, widths) for row in (table.columns, *table.rows))]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _grid(table: Table) -> str:
    return github.table(table.columns, [[safe(cell) for cell in row] for row in table.rows])


def _folded(table: Table) -> str:
    return github.folded(github.html(table.heading), _grid(table))


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
