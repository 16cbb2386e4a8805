"""Text as it was written, for tests that look for words in what was wrapped for a terminal."""

from __future__ import annotations


def unwrapped(text: str) -> str:
    """One line: where a line was broken depends on the width and on the length of paths."""
    return " ".join(text.split())
