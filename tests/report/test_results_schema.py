"""The schema of the results says what outputs have: no less, and no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

import report_data as data
from ensign.model.builds import BuiltFile, ProfileCoverage
from ensign.model.results import FailingRuns, Result
from ensign.model.study_explain import By
from ensign.model.traced_execution import MappedFile, WhatRan
from ensign.model.trials import (
    Latency,
    RaceMapping,
    TaskActivity,
    VariantFailure,
    Wait,
    WaitCall,
    WaitsFor,
)
from ensign.report import as_json
from ensign.report.formats import results_schema_text
from ensign.report.words import KINDS_OF_CAUSE
from report_simulation import simulated_study

FAILURE = VariantFailure("gcc-11-Os", "crashed", "it crashed", None, 11, "get", 2)


def _full_study() -> Result:
    """A study with everything that not every study has."""
    study = data.study(layouts=data.SPREAD, latency=data.latencies())
    file = BuiltFile("src/redis-server", "program", 2_000_000, 900_000, "9f" * 32)
    more: dict[str, Any] = {
        "files": (file,),
        "same_as": "gcc-12-O2",
        "evidence": ("compile units by level: -O2 9",),
        "coverage": (ProfileCoverage("PGO", 9, 3), ProfileCoverage("BOLT")),
    }
    builds = tuple(replace(build, **more) for build in study.builds)
    ran = (
        WhatRan(
            "src/redis-server", built=True, variants=("gcc-12-O2",), workloads=("get",), same=True
        ),
    )
    return replace(study, builds=builds, ran=ran, failures=(FAILURE,))


def _full_comparison() -> Result:
    compared = data.compared()
    (first, *others), *trials = compared.trials[0].variants, *compared.trials
    totals = replace(
        first,
        counters=(("instructions", 1_000),),
        latency=Latency(1, 2, 3, 4, 5, 2, 100),
        activity=TaskActivity(waits=(Wait(1, (WaitCall(WaitsFor.DISK),)),)),
        mapped=(RaceMapping("/usr/lib/libc.so.6", "fe:00", 7),),
    )
    trial = replace(trials[0], variants=(totals, *others), failures=(FAILURE,))
    variant = replace(
        compared.measured[0],
        failing_runs=(FailingRuns(1, 0, 2, 20),),
        ran=(MappedFile("/usr/bin/gzip", "9f" * 32),),
    )
    return replace(
        compared,
        trials=(trial, *trials[1:]),
        measured=(variant, *compared.measured[1:]),
        failures=(VariantFailure("c", "crashed", "it crashed", None, 11, "", 2),),
    )


GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.json"))
SCHEMA = json.loads(results_schema_text())
OUTPUTS = {
    **{path.name: path.read_text(encoding="utf-8") for path in GOLDEN},
    "simulated": as_json.render(simulated_study()),
    "full": as_json.render(_full_study()),
    "empty": as_json.render(data.empty_study()),
    "full comparison": as_json.render(_full_comparison()),
    "explained": as_json.render(data.explained()),
    "curves": as_json.render(data.curved_study()),
    "several": as_json.render(data.compared_several()),
    "no twin": as_json.render(data.compared(suite=data.compared().suite[:1], twin="")),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_follow_the_schema(name: str) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(OUTPUTS[name]))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _keys(one)


def test_no_key_is_invented() -> None:
    written = {key for text in OUTPUTS.values() for key in _keys(json.loads(text))}
    said = {key for table in SCHEMA["$defs"].values() for key in table["properties"]}
    assert said - written == set()


def test_every_way_to_split_a_difference_is_in_the_schema() -> None:
    assert SCHEMA["$defs"]["Causes"]["properties"]["by"]["enum"] == [*get_args(By)]
    assert [*KINDS_OF_CAUSE] == [*get_args(By)]
