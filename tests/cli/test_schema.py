from __future__ import annotations

import json

import pytest

from ensign.cli.schema import schema
from ensign.model.study import Study


def test_the_schema_is_json_with_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    schema()
    printed = json.loads(capsys.readouterr().out)
    assert set(printed["properties"]) == set(Study.model_fields)
