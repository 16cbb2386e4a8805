from __future__ import annotations

import json

import pytest

from ensign.cli.main import run_command_line
from ensign.model.study import Study


def test_the_schema_is_json_with_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["schema"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed["properties"]) == set(Study.model_fields)


def test_the_schema_of_results_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["schema", "--results"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["$ref"] == "#/$defs/Result"
    assert {"comparisons", "suite", "workloads", "findings"} <= set(
        printed["$defs"]["Result"]["properties"]
    )
