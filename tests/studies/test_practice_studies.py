"""The studies of `studies/`: each can be read and expanded, and those that are made are current."""

from __future__ import annotations

import json
import runpy
import tomllib
from pathlib import Path

import pytest

from ensign.experiment.study_file import read_study
from ensign.model.study_workload import Workload
from ensign.model.variants import DEFAULTS
from ensign.variants.expand import expand

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies"
MADE = runpy.run_path(str(ROOT / "bench/practice_studies.py"))
TABLE = runpy.run_path(str(ROOT / "bench/practice_table.py"))
OWN = sorted(STUDIES.glob("*/study.toml"))
PUBLISHED = {"zeromq"}  # its builds are those of a study that others made, and what it left open
AXES = sorted([*STUDIES.glob("practices/*.toml"), *STUDIES.glob("hardening/*.toml")])


def test_made_studies_are_what_their_origins_give() -> None:
    made = MADE["studies"]()
    locks = {file.with_suffix(".lock.json") for file in AXES}
    assert {*AXES, *locks, STUDIES / "valkey/study.toml"} == set(made)
    for file, text in made.items():
        assert file.read_text() == text, "run python3 bench/practice_studies.py"


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.parent.name)
def test_a_program_has_four_variants_with_lto_and_pgo_and_is_confirmed(file: Path) -> None:
    assert file.with_suffix(".lock.json").exists()
    study = read_study(file).study
    variants = expand(study)
    assert len(variants) >= 4
    values = [{**DEFAULTS, **dict(variant.choices)} for variant in variants]
    assert file.parent.name in PUBLISHED or any(each["lto"] == "full" for each in values)
    assert any(each["pgo"] == "on" for each in values)
    assert study.race.confirm is not None
    assert study.training is not None


@pytest.mark.parametrize("file", OWN, ids=lambda file: file.parent.name)
def test_training_runs_nothing_that_is_raced(file: Path) -> None:
    content = tomllib.loads(file.read_text())
    study = read_study(file).study
    assert study.training is not None
    assert not {*map(_sent, study.workloads)} & {*map(_sent, study.training.workloads)}
    suite = set(content.get("suite", {}).get("tests", []))
    assert not suite & set(content["training"].get("tests", []))


def _sent(workload: Workload) -> str:
    drive = None if workload.drive is None else workload.drive.model_dump_json()
    return json.dumps(workload.command or workload.load or drive)


@pytest.mark.parametrize("file", AXES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_each_row_of_the_table_is_a_variant_of_each_study(file: Path) -> None:
    variants = [{**DEFAULTS, **dict(variant.choices)} for variant in expand(read_study(file).study)]
    baseline = variants[0]
    for row in TABLE["ROWS"][file.parent.name]:
        assert {**baseline, **row.given} in variants, row.label
        assert {**baseline, **row.given, **row.change} in variants, row.label
    asked = [{**baseline, **row.given, **row.change} for row in TABLE["ROWS"][file.parent.name]]
    between = [{**baseline, **row.given} for row in TABLE["ROWS"][file.parent.name]]
    assert [each for each in variants if each not in [*asked, *between]] == []
