"""Tests of a published suite as text or JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from ensign.model.study_suite import Listed, totals
from ensign.model.units import format_size


def terminal(rows: Sequence[Listed], server: str) -> str:
    """A line for each test, and last how many can be said and run; `server` as in redis 7.0.15."""
    cells = [("test", "group", "pipeline", "value", "keys", ""), *(_cells(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(5)]
    lines = [
        "  ".join(
            (
                row[0].ljust(widths[0]),
                row[1].ljust(widths[1]),
                *(row[column].rjust(widths[column]) for column in range(2, 5)),
                row[5],
            )
        ).rstrip()
        for row in cells
    ]
    return "\n".join([*lines, summary(rows, server)]) + "\n"


def summary(rows: Sequence[Listed], server: str) -> str:
    """Numbers of the tests that can be said as drives, and that run on that server."""
    every, expressible, runnable = totals(rows)
    return f"{expressible} of {every} expressible, {runnable} runnable on {server}"


def as_json(rows: Sequence[Listed], server: str) -> str:
    """Everything that is known of each test."""
    every, expressible, runnable = totals(rows)
    content = {
        "server": server,
        "tests": [
            {**asdict(row), "expressible": row.is_expressible, "runnable": row.is_runnable}
            for row in rows
        ],
        "totals": {"tests": every, "expressible": expressible, "runnable": runnable},
    }
    return json.dumps(content, indent=2) + "\n"


def _cells(row: Listed) -> tuple[str, str, str, str, str, str]:
    if row.hindrance is not None:
        return (row.name, ",".join(row.groups), "", "", "", f"not expressible: {row.hindrance}")
    return (
        row.name,
        ",".join(row.groups),
        str(row.pipeline),
        format_size(row.value_bytes) if row.value_bytes else "",
        str(row.keys or ""),
        "runnable" if row.missing is None else f"not runnable: {row.missing}",
    )
