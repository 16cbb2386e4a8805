"""The steps of profiled builds as a script: run as ensign verifies it, and as a user runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from build_fixtures import PROJECTS
from builders.test_profiles import PlainTrainer, study
from ensign.builders.build import build_variants
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.training import TrainingRun
from ensign.experiment.machine import CpuPlan
from ensign.experiment.study.variants import VariantSet, training_request
from ensign.experiment.study_file import parse_study
from ensign.meter.requests import race_json
from ensign.model.builds import ignore
from ensign.model.errors import InputError
from ensign.model.shipment import Shipment
from ensign.model.variants import Variant
from ensign.ship.rebuild import ship_variant
from ensign.ship.script import drive_files
from experiment.test_driven_studies import STUDY as DRIVEN

_PLAIN = Variant("plain", "gcc-12", "-O2")


def ship(folder: Path, ports: BuildPorts, variant: Variant, **build: object) -> Shipment:
    shutil.copytree(PROJECTS / "branchy", folder / "branchy")
    asked = study()
    asked = asked.model_copy(update={"build": asked.build.model_copy(update=build)})
    request = BuildRequest(asked, folder / "branchy.toml", (_PLAIN, variant), "plain")
    ports = replace(ports, trainer=PlainTrainer())
    measured = build_variants(request, ports).result(variant.name)
    return ship_variant(request, measured, ports, ignore)


@pytest.mark.parametrize("compiler", ["gcc-12", "clang-19"])
@pytest.mark.parametrize("bolt", ["off", "on"])
def test_a_profiled_build_is_a_script_that_runs_without_ensign(
    tmp_path: Path, recording_ports: BuildPorts, compiler: str, bolt: str
) -> None:
    variant = Variant("pgo", compiler, "-O2", "full", pgo="on", bolt=bolt, alignment="loops")
    shipment = ship(tmp_path, recording_ports, variant)
    assert shipment.verified.problems == ()
    assert shipment.verified.same_bytes  # a batch program counts the same each time
    assert not any("profile" in flag for flag in shipment.flags)
    (file,) = shipment.files
    assert file.executable
    script = tmp_path / "ship me" / file.name
    script.parent.mkdir()
    script.write_bytes(file.content)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    made = tmp_path / "out" / "program"
    subprocess.run(
        ["bash", script, tmp_path / "branchy", made],
        env={**os.environ, "TMPDIR": str(scratch)},
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    assert subprocess.run([made, "10"], capture_output=True, text=True, check=True).stdout == "35\n"
    assert (b".bolt.org.text" in made.read_bytes()) == (bolt == "on")
    assert list(scratch.iterdir()) == []


def test_what_the_recorder_changed_cannot_be_a_script(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    variant = Variant("pgo", "gcc-12", "-O2", pgo="on")
    rewrite = study().build.rewrite.model_copy(update={"compile": ["{cflags}"]})
    with pytest.raises(InputError, match=r"'build\.rewrite' .* cannot"):
        ship(tmp_path, recording_ports, variant, rewrite=rewrite)


def test_what_a_drive_sends_in_the_training_travels_as_a_file() -> None:
    text = DRIVEN.replace(
        "requests = 300\n",
        "requests = 300\npreload = [{ drive = { operations = 7, commands = "
        '[{ argv = ["SET", "a", "{data}"] }] } }]\n',
    )
    asked = parse_study(text, Path("s.toml")).study
    assert asked.training is not None
    files = {name: json.loads(content) for name, content in drive_files(asked).items()}
    assert list(files) == ["learn-preload-0.json", "learn.json"]
    (workload,) = asked.training.workloads
    run = TrainingRun(Path("/bin/c"), workload, (), {}, 10**9)
    field = VariantSet((("gcc-12", "/bin/a"),), {}, CpuPlan((0,), (1,), (0,)))
    said: Any = race_json(training_request(asked, field, run))
    variant = said["variants"][0]
    assert files["learn.json"]["drive"] == json.loads(json.dumps(variant["load"]["drive"]))
    assert files["learn-preload-0.json"]["drive"] == json.loads(
        json.dumps(variant["preload"][0]["drive"])
    )
    assert {each["address"] for each in files.values()} == {"127.0.0.1:PORT"}
