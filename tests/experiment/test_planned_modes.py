import pytest

from ensign.experiment.machine import CpuPlan
from ensign.experiment.study.forecast import planned_mode
from ensign.experiment.study.variants import VariantSet, mode_of
from ensign.model.study import Study

VARIANTS = VariantSet((("a", "/a"),), {}, CpuPlan((), (), ()))


def _study(race: dict[str, object], **workload: object) -> Study:
    return Study.model_validate(
        {
            "name": "s",
            "layouts": "natural",
            "source": {"kind": "path", "path": "."},
            "build": {"commands": [["make"]], "artifact": "a"},
            "axes": {"compiler": ["gcc"]},
            "baseline": {},
            "race": {"budget": "60s", **race},
            "workloads": [{"name": "w", **workload}],
        }
    )


RUN: dict[str, object] = {"command": ["{artifact}"]}
LOAD: dict[str, object] = {"load": ["load", "{port}"]}


@pytest.mark.parametrize(
    ("race", "workload", "said"),
    [
        ({}, RUN, "if a pilot shows"),
        ({}, {**RUN, "score": {"pattern": "(.)", "unit": "ms"}}, "its own speed"),
        ({"mode": "interleaved"}, {**RUN, "benchmarks": "pyperf"}, "its own speed"),
        ({}, {**RUN, "operations": "n=(.)"}, "how much it did"),
        ({"mode": "alternating"}, RUN, "'race.mode' says so"),
        ({"mode": "interleaved"}, RUN, "'race.mode' says so"),
        ({"metric": "wall"}, LOAD, "no queues"),
        ({"mode": "driven"}, LOAD, "own load generator"),
    ],
)
def test_a_plan_says_how_variants_take_turns_as_they_will(
    race: dict[str, object], workload: dict[str, object], said: str
) -> None:
    study = _study(race, **workload)
    told = planned_mode(study, study.workloads[0])
    assert said.lower() in told.lower()
    assert told.startswith(mode_of(study, VARIANTS, study.workloads[0]).value)
