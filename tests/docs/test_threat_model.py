"""Each promise of the threat model names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/background/threat-model.md"
NAMED = re.compile(r"`([\w/]+\.py)?::(test_\w+)`")


def test_every_promise_is_held_by_a_test_that_is_there() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if "::test_" in line]
    assert len(rows) > 20
    for row in rows:
        file = ""
        for named, test in NAMED.findall(row):
            file = named or file
            text = (ROOT / "tests" / file).read_text("utf-8")
            assert f"def {test}(" in text, f"{file}::{test}"
