"""The page of all findings, made from their catalogue: `make reference` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ensign.model.finding_kinds.catalogue import CATALOGUE, Group
from ensign.model.findings import FindingKind

_HEAD = """\
# Findings

<!-- Made by `make reference` from src/ensign/model/finding_kinds: edit it there. -->

A finding is a doubt or a fact that travels with a result. Its code is stable, its text has the
details of the case, and its subject is the variant or the workload that it is about, if it is not
about the whole. JSON has them in `findings`: objects with `code`, `severity`, `text` and `subject`.

- **error**: what it is about cannot win, is not compared, or says nothing.
- **warning**: it weakens what may be concluded, until what it names is mended.
- **note**: good to know; it asks for nothing.

With `ensign doctor --fail-on note|warning|error` findings of at least that severity make the exit
status 1.
"""
_COLUMNS = ("finding", "severity", "what it means", "what to do")


def findings_page() -> str:
    """Markdown with a table for each group."""
    return "\n".join([_HEAD, *(line for group in CATALOGUE for line in _group(group))])


def _group(group: Group) -> Iterator[str]:
    yield f"## {group.title}\n"
    yield f"{group.about}\n"
    yield _row(_COLUMNS)
    yield _row("---" for _ in _COLUMNS)
    by_code: dict[str, list[FindingKind]] = {}
    for kind in group.kinds:
        by_code.setdefault(kind.code, []).append(kind)
    for code, kinds in by_code.items():
        yield _row((f"`{code}`", _severities(kinds), kinds[0].meaning, kinds[0].remedy))
    yield ""


def _severities(kinds: Iterable[FindingKind]) -> str:
    return "<br>".join(
        f"{each.severity}: {each.when}" if each.when else each.severity for each in kinds
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
