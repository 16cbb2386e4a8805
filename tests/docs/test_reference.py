"""The reference pages say what the code says."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from ensign.cli.main import EXIT_STATUSES, exit_status
from ensign.model import errors
from ensign.model.study import study_schema

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
MADE = runpy.run_path(str(REFERENCE / "make.py"))
PAGES: dict[str, str] = MADE["pages"]()


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_what_the_code_says(name: str) -> None:
    committed = (REFERENCE / name).read_text(encoding="utf-8")
    assert committed == PAGES[name], "run 'python docs/reference/make.py'"


def test_every_variable_of_the_sources_has_a_meaning() -> None:
    sources = (*(ROOT / "src").rglob("*.py"), *(ROOT / "meter").rglob("src/**/*.rs"))
    texts = [path.read_text(encoding="utf-8") for path in sources]
    found = {name for text in texts for name in re.findall(r"\bENSIGN_[A-Z_]+\b", text)}
    assert found == {*MADE["FOR_USERS"], *MADE["FOR_PROGRAMS"]}


def test_every_error_ends_with_a_status_that_has_a_meaning() -> None:
    kinds = [errors.InputError, errors.CommandFailed, errors.Interrupted, errors.InternalError]
    assert [exit_status(kind("")) for kind in kinds] == [2, 3, 4, 5]
    assert list(EXIT_STATUSES) == [0, 1, 2, 3, 4, 5]


def test_every_key_of_a_study_has_a_description() -> None:
    assert [key for key, value in _keys() if not value.get("description")] == []


def _keys() -> Iterator[tuple[str, dict[str, object]]]:
    schema = study_schema()
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    for table in (schema, *definitions.values()):
        yield from table["properties"].items()
