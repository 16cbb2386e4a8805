from __future__ import annotations

import json
from pathlib import Path

import pytest

from ensign.meter.questions import MeterAbilities, parse_abilities, read_abilities
from ensign.model.errors import InternalError

LINE = {
    "type": "probe",
    "meter": "0.1.0",
    "freezer": "signal",
    "obstacle": "not writable",
    "counters": ["cycles"],
    "new-key": 1,
}


def test_one_line_of_json() -> None:
    expected = MeterAbilities("0.1.0", "signal", "not writable", ("cycles",))
    assert parse_abilities(json.dumps(LINE)) == expected
    assert parse_abilities(json.dumps({**LINE, "obstacle": None})).obstacle == ""


@pytest.mark.parametrize("text", ["", "usage: …", "[]", '{"meter": "1"}'])
def test_anything_else_is_the_meters_fault(text: str) -> None:
    with pytest.raises(InternalError, match="make setup"):
        parse_abilities(text)


def test_a_meter_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="absent probe"):
        read_abilities(tmp_path / "absent")
