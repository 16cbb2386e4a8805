from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ensign.builders.training import TrainingRun
from ensign.experiment.study.training import MeterTrainer
from ensign.meter.client import LocalMeter
from ensign.model.errors import Interrupted
from ensign.model.study import Study
from fakes import FakeMeter

START = {"type": "start", "schema": 1, "freezer": "signal", "mode": "alternating", "counters": []}
VARIANT = {
    "type": "variant", "execution": 0, "variant": "training", "wall_ns": 5, "cpu_ns": 4,
    "user_ns": 3, "system_ns": 1, "operations": 1,
}  # fmt: skip
EXECUTION = {
    "type": "execution", "execution": 0, "wall_ns": 9, "started_unix_ns": 1, "running_share": 1.0,
    "valid": True,
}  # fmt: skip
END = {"type": "end", "status": "complete", "executions": 1}

STUDY = Study.model_validate(
    {
        "name": "x",
        "layouts": "natural",
        "source": {"kind": "path", "path": "."},
        "build": {"commands": [["make"]], "artifact": "x", "tools": {"load": "load"}},
        "axes": {"compiler": ["gcc-12"]},
        "baseline": {},
        "server": {"command": ["{artifact}", "{port}"], "stop": "kill", "env": {"A": "1"}},
        "training": {
            "workloads": [
                {"name": "learn", "load": ["{load}", "{port}", "{requests}"], "requests": 7},
                {"name": "brief", "load": ["{load}", "{port}"], "requests": 7, "deadline": "2s"},
            ]
        },
        "workloads": [{"name": "run", "load": ["{load}", "{port}", "{requests}"]}],
    }
)


def run(workload: int = 0) -> TrainingRun:
    assert STUDY.training is not None
    return TrainingRun(
        program=Path("/made/server"),
        workload=STUDY.training.workloads[workload],
        env=(("GCOV_PREFIX", "/counts"),),
        tools={"load": Path("/made/load")},
        deadline_ns=60 * 10**9,
        wrapper=("perf", "--"),
    )


def outcome(**how: object) -> dict[str, object]:
    return {"type": "outcome", "execution": 0, "variant": "training", "role": "server", **how}


def test_a_training_is_one_execution_that_a_server_may_end_by_itself() -> None:
    records = (START, outcome(signal=15), VARIANT, EXECUTION, END)
    meter = FakeMeter([records, records])
    trainer = MeterTrainer(meter, STUDY, Path("/study"))
    assert trainer.train(run()) == ""
    assert trainer.train(run(1)) == ""
    (_, request), (_, brief) = meter.requests
    assert (request["mode"], request["executions"]) == ("alternating", 1)
    variant: dict[str, Any]
    (variant,) = request["variants"]  # type: ignore[misc]
    assert variant["ask_to_stop"] is True
    assert variant["program"]["argv"] == ["perf", "--", "/made/server", "{port}"]
    assert variant["program"]["env"] == {"A": "1", "GCOV_PREFIX": "/counts"}
    load = variant["load"]["process"]
    assert load["argv"] == ["/made/load", "{port}", "7"]
    assert "GCOV_PREFIX" not in load["env"]
    assert load["deadline_ns"] == 60 * 10**9
    assert brief["variants"][0]["load"]["process"]["deadline_ns"] == 2 * 10**9  # type: ignore[index]


def test_a_server_that_had_to_be_killed_lost_its_profile() -> None:
    meter = FakeMeter([(START, outcome(signal=9, reason="ended"), VARIANT, EXECUTION, END)])
    said = MeterTrainer(meter, STUDY, Path("/study")).train(run())
    assert said.endswith("was killed, so its profile is lost")


def test_an_error_is_a_reason_and_an_interruption_is_none() -> None:
    error = {
        "type": "error",
        "code": "crashed",
        "variant": "training",
        "text": 'variant "training": boo',
    }
    meter = FakeMeter([(START, error, END), (START, END)])
    trainer = MeterTrainer(meter, STUDY, Path("/study"))
    assert trainer.train(run()) == "boo"
    with pytest.raises(Interrupted):
        trainer.train(run())


_SONAME = "-Wl,-soname,libwork.so.1"


def compiled(path: Path, source: str, *options: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    argv = ["gcc-12", "-x", "c", "-", "-o", str(path), *options]
    subprocess.run(argv, input=source, text=True, check=True)
    return path


@pytest.mark.parametrize("folder", ["built", "elsewhere"])
def test_a_training_with_a_library_that_was_not_built_is_for_nothing(
    tmp_path: Path, folder: str
) -> None:
    for place in ("built", "elsewhere"):
        library = compiled(
            tmp_path / place / "libwork.so.1.2", "int work(void) { return 0; }", "-shared", _SONAME
        )
        (library.parent / "libwork.so.1").symlink_to(library.name)
    program = compiled(
        tmp_path / "built" / "program",
        "#include <unistd.h>\nint work(void); int main(void) { sleep(3); return work(); }",
        "-Wl,--no-as-needed", "-x", "none", str(tmp_path / "built/libwork.so.1.2"),
    )  # fmt: skip
    path = f"LD_LIBRARY_PATH={tmp_path / folder}"
    study = STUDY.model_copy(update={"server": None})
    workload = study.workloads[0].model_copy(
        update={"load": None, "command": ["env", path, "{artifact}"]}
    )
    learn = TrainingRun(program, workload, (), {}, 60 * 10**9, root=tmp_path / "built")
    said = MeterTrainer(LocalMeter(), study, tmp_path).train(learn)
    if folder == "built":
        assert said == ""
    else:
        assert "elsewhere/libwork.so.1.2, not libwork.so.1.2, which was built" in said
