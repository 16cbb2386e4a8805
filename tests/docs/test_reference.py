"""The reference pages say what the code says."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ensign.cli.main import EXIT_STATUSES, exit_status, run_command_line
from ensign.model import errors
from ensign.model.study import study_schema
from ensign.report.formats import results_schema_text

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
    # The one whose name says nothing of ensign.
    assert found | {"PADDING"} == {*MADE["FOR_USERS"], *MADE["FOR_PROGRAMS"]}


def test_every_error_ends_with_a_status_that_has_a_meaning() -> None:
    kinds = [errors.InputError, errors.CommandFailed, errors.Interrupted, errors.InternalError]
    assert [exit_status(kind("")) for kind in kinds] == [2, 3, 4, 5]
    assert list(EXIT_STATUSES) == [0, 1, 2, 3, 4, 5]


def test_every_key_of_a_study_is_on_its_page_with_a_meaning() -> None:
    page = PAGES["study-file.md"]
    keys = dict(_keys(study_schema()))
    assert {"name", "slice_connections", "finalists", "own_flags"} <= set(keys)
    assert [
        key for key in keys if not re.search(rf"^\| `{key}` \|.*\| .+ \|$", page, re.MULTILINE)
    ] == []


def test_every_key_of_the_results_is_on_its_page_with_a_meaning() -> None:
    page = PAGES["results.md"]
    keys = dict(_keys(json.loads(results_schema_text())))
    assert {"suite", "comparisons", "findings", "ratio", "within_layout_spread"} <= set(keys)
    written = re.compile(r"^\| `(?:\w+\.)*(\w+)` \| .+ \| .+ \|$", re.MULTILINE)
    assert set(keys) - set(written.findall(page)) == set()


def test_every_option_is_on_its_page(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run_command_line(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:")[2]
    commands = re.findall(r"^  ([a-z-]+)  ", listed, re.MULTILINE)
    sections = dict(
        re.findall(r"## ensign (\S+)\n(.*?)(?=\n## |\Z)", PAGES["options.md"], re.DOTALL)
    )
    assert sorted(commands) == sorted(sections)
    for command in commands:
        assert run_command_line([command, "--help"]) == 0
        options = re.findall(r"^  .*?(--[a-z0-9-]+)", capsys.readouterr().out, re.MULTILINE)
        missing = {option for option in options if f"`{option}`" not in sections[command]}
        assert missing == {"--help"}


def _keys(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for table in (schema, *schema["$defs"].values()):
        yield from table.get("properties", {}).items()
