from __future__ import annotations

import pytest

from ensign.model.quoting import quoted


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a\\b", r"'a\b'"),
        ("two\nlines\0", r"'two\nlines\x00'"),
        (["a\\b", 1, True], r"['a\b', 1, true]"),
        ({"k": "C:\\x"}, r"{'k': 'C:\x'}"),
        (0.5, "0.5"),
        ("é", "'é'"),
    ],
)
def test_backslashes_are_not_doubled(value: object, said: str) -> None:
    assert quoted(value) == said
