from __future__ import annotations

from typing import Any

import pytest

from ensign.experiment.machine import CpuPlan
from ensign.experiment.study.budget import WorkloadPilot
from ensign.experiment.study.round_plan import (
    RoundPlan,
    connections_at_once,
    turns_findings,
    with_longer_slices,
)
from ensign.experiment.study.variants import VariantSet, race_request
from ensign.meter.requests import race_json
from ensign.model.study import Study
from experiment.test_driven_studies import STUDY, file_of

VARIANTS = VariantSet((("gcc-12", "/bin/a"),), {}, CpuPlan((0,), (1,), (0, 1)))


def study_of(drive: str = "pipeline = 10", **race: object) -> Study:
    study = file_of(STUDY.replace("pipeline = 4", drive)).study
    changed = {"slice": "2ms", **race}
    return study.model_copy(update={"race": study.race.model_copy(update=changed)})


def at_once(study: Study, ns_per_request: int) -> dict[str, int]:
    return connections_at_once(study, {"get": WorkloadPilot(1000, ns_per_request * 1000, 0)})


@pytest.mark.parametrize(
    ("ns_per_request", "expected"),
    [(1_000, {}), (2_600, {}), (2_700, {"get": 49}), (40_000, {"get": 3}), (10**7, {"get": 1})],
)
def test_two_rounds_of_requests_fill_a_slice(ns_per_request: int, expected: dict[str, int]) -> None:
    assert at_once(study_of(), ns_per_request) == expected


def test_all_connections_send_where_that_is_asked_for_or_times_decide() -> None:
    assert at_once(study_of(slice_connections="all"), 40_000) == {}
    assert at_once(study_of(mode="alternating"), 40_000) == {}
    assert at_once(study_of("rate_per_s = 1000"), 40_000) == {}
    assert at_once(study_of("connections = 2"), 40_000) == {}


def test_the_plan_reaches_every_variant_but_not_the_longer_slices() -> None:
    study = study_of()
    plan = RoundPlan("k", 5, {"get": 100}, 0, at_once={"get": 3})
    placed = plan.placed(VARIANTS, "get")
    request: Any = race_json(race_request(study, placed, study.workloads[0], 100, seed=1))
    assert [variant["load"]["drive"]["at_once"] for variant in request["variants"]] == [3, 3]
    assert not any("at_once" in variant["preload"][1]["drive"] for variant in request["variants"])
    _, longer = with_longer_slices(study, plan)
    assert longer.placed(VARIANTS, "get").at_once is None


def test_it_is_said() -> None:
    (said,) = turns_findings({"a": 2, "b": 17})
    assert said.text.startswith("2 workloads: 2 to 17 connections send in one slice, by turns")
    (alone,) = turns_findings({"a": 3})
    assert alone.text.startswith("1 workload: 3 connections send in one slice")
    assert turns_findings({}) == ()
