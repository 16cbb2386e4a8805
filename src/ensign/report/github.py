"""GitHub's Markdown: text that means nothing in it, tables, and what is folded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from ensign.report.words import clean

_MARKS = re.compile(r"([\\`*_\[\]|~])")
# Names of people, numbers of issues and addresses mean something without any mark around them.
_MENTIONS = re.compile(r"@(?=\w)|\#(?=\d)|\bGH-(?=\d)|://|\bwww\.", re.IGNORECASE)
_APART = "<!-- -->"
_BLOCKS = re.compile(r"^(\s*)(?=#{1,6}(?:\s|$)|[-+](?:\s|$)|[-=]{2,}\s*$)")
_NUMBERED = re.compile(r"^(\s*\d+)(?=[.)]\s)")


def html(text: str) -> str:
    """Text from elsewhere for where HTML is read but Markdown is not, such as a summary."""
    plain = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MENTIONS.sub(lambda found: f"{found[0]}{_APART}", plain)


def safe(text: str) -> str:
    """Text from elsewhere, with nothing in it that means something to Markdown or HTML."""
    marked = _MARKS.sub(r"\\\1", html(text))
    return _NUMBERED.sub(r"\1\\", _BLOCKS.sub(r"\1\\", marked))


def code_block(lines: Iterable[str]) -> str:
    """Lines as they are; none of them can end the block."""
    kept = [clean(line) for line in lines]
    longest = max((len(run) for line in kept for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((fence, *kept, fence))


def table(header: Sequence[str], body: Iterable[Sequence[str]], right: Collection[str] = ()) -> str:
    """A table of cells that are Markdown already; columns named in `right` are figures."""
    rule = ["---:" if head in right else "---" for head in header]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *body))


def folded(summary: str, content: str) -> str:
    """Content behind a summary, which is HTML already."""
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"
