"""Sheets of environments, and their differences, as text and JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ensign.model.environment_sheet import EnvironmentSheet, FactDifference, differing_words
from ensign.model.quoting import shortened, visible

_LONGEST = 160


def sheet_text(sheet: EnvironmentSheet) -> str:
    """The facts but for packages, which are counted."""
    shown = [(name, text) for name, text in sheet.facts.items() if not name.startswith("packages.")]
    lines = [f"{visible(name)}: {_short(text) or '-'}" for name, text in shown]
    return "\n".join([*lines, f"packages: {len(sheet.facts) - len(shown)}", ""])


def sheet_json(sheet: EnvironmentSheet) -> str:
    """All facts."""
    return json.dumps(sheet.as_json(), indent=1) + "\n"


def differences_text(differences: Sequence[FactDifference]) -> str:
    """A line for each, with why it may matter."""
    lines = [_line(difference) for difference in differences]
    return "\n".join([*(lines or ["no fact differs"]), ""])


def _line(row: FactDifference) -> str:
    """Words of long texts that differ."""
    one, other = (_short(word) or "none" for word in differing_words(row.one, row.other))
    why = f"  ({visible(row.why)})" if row.why else ""
    return f"{visible(row.fact)}: {one} | {other}{why}"


def differences_json(differences: Sequence[FactDifference]) -> str:
    """All of them, exactly."""
    rows = [
        {
            "fact": difference.fact,
            "one": difference.one,
            "other": difference.other,
            "why": difference.why,
        }
        for difference in differences
    ]
    return json.dumps({"schema": 1, "differences": rows}, indent=1) + "\n"


def _short(text: str) -> str:
    return visible(shortened(text, _LONGEST))
