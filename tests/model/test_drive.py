from __future__ import annotations

import pytest
from pydantic import ValidationError

from ensign.model.drive import Data, Drive, drive_json

GET: dict[str, object] = {"argv": ["GET", "{key}"], "keys": {"last": 9}}


def test_the_json_is_what_the_meter_reads() -> None:
    drive = Drive.model_validate(
        {
            "pipeline": 10,
            "commands": [
                {"argv": ["SETEX", "{key}", "{expiry}", "{data}"], "share": 3, "keys": {"last": 9}},
                {"transaction": [["INCR", "a"], ["GET", "{key}"]], "keys": {"pattern": "zipf"}},
            ],
            "data": {"sizes": [8, 24]},
            "expiry_s": [5, 6],
        }
    )
    keys = {
        "prefix": "memtier-",
        "first": 0,
        "last": 9,
        "pattern": "random",
        "width": 0,
        "center": None,
        "deviation": None,
        "exponent": None,
    }
    assert drive_json(drive, operations=700, seed=4) == {
        "protocol": 2,
        "connections": 50,
        "pipeline": 10,
        "threads": 1,
        "operations": 700,
        "rate_per_s": None,
        "latency": False,
        "seed": 4,
        "init": [],
        "scripts": {},
        "commands": [
            {
                "argv": ["SETEX", "{key}", "{expiry}", "{data}"],
                "share": 3,
                "keys": keys,
                "reply": None,
                "value": False,
            },
            {
                "transaction": [["INCR", "a"], ["GET", "{key}"]],
                "share": 1,
                "keys": {**keys, "last": 999_999, "pattern": "zipf"},
            },
        ],
        "data": {"sizes": [8, 24], "random": False},
        "expiry_s": [5, 6],
    }


def test_what_a_drive_fixes_itself_stays() -> None:
    drive = Drive.model_validate({"commands": [GET], "operations": 5, "seed": 0})
    said = drive_json(drive, operations=700, seed=4)
    assert (said["operations"], said["seed"]) == (5, 0)
    assert said["data"] == {"size": 32, "random": False}
    with pytest.raises(ValueError, match="without operations"):
        drive_json(Drive.model_validate({"commands": [GET]}), operations=None, seed=4)


@pytest.mark.parametrize(
    ("data", "mean"),
    [
        ({}, 32),
        ({"size": 0}, 0),
        ({"sizes": [10, 30]}, 20),
        ({"weighted": [[10, 3], [50, 1]]}, 20),
    ],
)
def test_mean_sizes(data: dict[str, object], mean: float) -> None:
    assert Data.model_validate(data).mean_bytes == mean


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"commands": [{}]}, "exactly one of 'argv' and 'transaction'"),
        ({"data": {"size": 1, "sizes": [1, 2]}}, "only one of 'size', 'sizes'"),
        ({"data": {"weighted": [[3, 0]]}}, "at least one weight"),
        ({"connections": 10_001}, "less than or equal to 10000"),
        ({"commands": [{**GET, "keys": {"width": 65}}]}, "less than or equal to 64"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Drive.model_validate({"commands": [GET], **changes})
    assert said in str(raised.value)


def test_long_commands_are_cut_where_people_read_them() -> None:
    drive = Drive.model_validate({"commands": [{"argv": ["SET", "a", "x" * 500]}]})
    assert drive.shown.endswith("… (50 connections, pipeline 1)")
    assert len(drive.shown) < 150
