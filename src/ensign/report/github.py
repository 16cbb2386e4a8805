"""GitHub's Markdown: text that means nothing in it, tables, and what is folded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from ensign.report.words import clean

_MARKS = re.compile(r"([\\`*_\[\]|~])")


def html(text: str) -> str:
    """Text from elsewhere for where HTML is read but Markdown is not, such as a summary."""
    return clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def safe(text: str) -> str:
    """Text from elsewhere, with nothing in it that means something to Markdown or HTML."""
    return _MARKS.sub(r"\\\1", html(text))


def table(header: Sequence[str], body: Iterable[Sequence[str]], right: Collection[str] = ()) -> str:
    """A table of cells that are Markdown already; columns named in `right` are figures."""
    rule = ["---:" if head in right else "---" for head in header]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body))


def folded(summary: str, content: str) -> str:
    """Content behind a summary, which is HTML already."""
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"
