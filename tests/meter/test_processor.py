from __future__ import annotations

import json
from pathlib import Path

import pytest

from ensign.meter.client import find_meter
from ensign.meter.questions import parse_registers, read_processor, read_registers
from ensign.model.errors import InternalError


def test_one_line_of_json() -> None:
    line = {"type": "processor", "registers": {"7.0.ebx": 5, "xcr0": 1 << 62}, "new": 1}
    assert parse_registers(json.dumps(line)) == line["registers"]


@pytest.mark.parametrize("text", ["", "[]", '{"registers": {"a": -1}}', '{"registers": [1]}'])
def test_anything_else_is_the_meters_fault(text: str) -> None:
    with pytest.raises(InternalError, match="make setup"):
        parse_registers(text)


def test_it_is_the_same_each_time() -> None:
    assert read_registers(find_meter()) == read_registers(find_meter())
    assert read_processor() == read_processor()


def test_without_a_meter_linux_tells_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_meter() -> Path:
        raise InternalError("not installed")

    monkeypatch.setattr("ensign.meter.questions.read_cpuinfo", lambda: "flags : sse2 avx\n")
    monkeypatch.setattr("ensign.meter.questions.find_meter", no_meter)
    found = read_processor()
    assert found.flags == {"sse2", "avx"}
    assert not found.sets.whole
