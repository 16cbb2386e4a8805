"""What the meter says of races before they are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.meter.client import find_meter
from ensign.meter.request_checks import RequestProblem, check_races
from ensign.meter.requests import DriveLoad, ProcessSpec, RaceRequest, VariantSpec
from ensign.model.drive import Drive
from ensign.model.errors import InternalError
from ensign.model.trials import Mode

GET: dict[str, object] = {"argv": ["GET", "{key}"], "keys": {"last": 9}}


def driven(changes: dict[str, object]) -> RaceRequest:
    drive = Drive.model_validate({"commands": [GET], **changes})
    server = ProcessSpec(("server", "{port}"))
    variant = VariantSpec("a", server, DriveLoad(drive, 1000, 3))
    return RaceRequest((variant,), Mode.DRIVEN, 10**6, 1, 7)


def problems_of(changes: dict[str, object]) -> tuple[RequestProblem, ...]:
    (found,) = check_races(find_meter(), [driven(changes)])
    return found


def keyed(**keys: object) -> dict[str, object]:
    return {"commands": [{**GET, "keys": keys}]}


@pytest.mark.parametrize(
    ("changes", "place", "said"),
    [
        ({"commands": [{"argv": ["GET", "{key}"]}]}, "commands/0/argv", "needs `keys`"),
        (
            {"commands": [{"transaction": [["GET", "x"]], "value": True}]},
            "commands/0",
            "`reply` and `value` are not for transactions",
        ),
        ({"commands": [{"argv": ["PING"], "value": True}]}, "commands/0/value", "one `{key}`"),
        ({"commands": [{"argv": ["A", "{hex:0g}"]}]}, "commands/0/argv", "pairs of hexadecimal"),
        ({"commands": [{"argv": ["A", "{expiry}"]}]}, "commands/0/argv", "needs `expiry_s`"),
        ({"commands": [{"argv": ["A", "{script:a}"]}]}, "commands/0/argv", '`scripts` has no "a"'),
        (
            {"pipeline": 2, "commands": [{"argv": ["SCAN", "{cursor}"]}]},
            "commands/0/argv",
            "`pipeline` must be 1",
        ),
        ({"expiry_s": [7, 6]}, "expiry_s", "[least, most]"),
        ({"data": {"sizes": [3, 2]}}, "data/sizes", "[least, most]"),
        ({"threads": 51}, "threads", "between 1 and 50"),
        (keyed(last=9, pattern="parallel"), "commands/0/keys/last", "fewer keys"),
        (keyed(first=5, last=4), "commands/0/keys/last", "first <= last"),
        (keyed(pattern="zipf", center=1.0), "commands/0/keys/center", '"gaussian"'),
        (keyed(exponent=1.0), "commands/0/keys/exponent", '"zipf"'),
        (keyed(pattern="gaussian", last=9, center=10.0), "commands/0/keys/center", "in the range"),
    ],
)
def test_each_mistake_has_its_place(changes: dict[str, object], place: str, said: str) -> None:
    (problem,) = problems_of(changes)
    assert problem.path == f"/variants/0/load/drive/{place}"
    assert said in problem.text


def test_fewer_operations_than_connections_need_fewer_keys() -> None:
    assert problems_of({**keyed(last=9, pattern="parallel"), "operations": 10}) == ()


def test_each_race_has_its_own_answer() -> None:
    good, bad = driven({}), driven({"threads": 51, "expiry_s": [7, 6]})
    found = check_races(find_meter(), [good, bad, good])
    assert [len(each) for each in found] == [0, 2, 0]
    assert check_races(find_meter(), []) == ()


def test_steps_of_a_pointer() -> None:
    problem = RequestProblem(code="range", path="/variants/0/env/a~1b~0c", text="so it is")
    assert problem.steps == ("variants", 0, "env", "a/b~c")


def test_a_meter_that_does_not_answer_is_a_fault_of_the_installation(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="make setup"):
        check_races(tmp_path / "nowhere", [driven({})])
    with pytest.raises(InternalError, match="check"):
        check_races(Path("/bin/true"), [driven({})])
