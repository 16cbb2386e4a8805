"""Prose and tables of reports that are text or GitHub Markdown alone."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from ensign.report import github
from ensign.report.github import safe


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, the names of its columns, and its rows."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def aligned(table: Table) -> list[str]:
    """Lines of plain text: as wide as they must be."""
    widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    return [table.heading, *(_line(row, widths) for row in (table.columns, *table.rows))]


def grid(table: Table) -> str:
    """The table alone, in Markdown."""
    return github.table(table.columns, [[safe(cell) for cell in row] for row in table.rows])


def folded(table: Table) -> str:
    """The table behind its heading, in Markdown."""
    return github.folded(github.html(table.heading), grid(table))


def wrapped(line: str, width: int) -> list[str]:
    """Lines of prose; an empty one is one line."""
    return textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
