"""The number of relinks that a study makes, by a pilot of its baseline's layouts."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from ensign.builders.build_results import BuildResult
from ensign.experiment.machine import CpuPlan
from ensign.experiment.study.pilots import PlanContext, piloted
from ensign.experiment.study.relink_count import (
    RelinkCount,
    chosen_count,
    store_count,
    stored_count,
)
from ensign.experiment.study.variants import VariantSet
from ensign.model.builds import BuildFacts, BuildStatus
from ensign.model.study import Study
from ensign.model.trials import TWIN
from ensign.store.folder import StudyFolder
from races import SimulatedMeter

BUILD_S, RELINK_S, COST_NS = 2.0, 1.2, 100_000_000


def a_study(**layouts: object) -> Study:
    return Study.model_validate(
        {
            "name": "s",
            "source": {"kind": "path", "path": "x"},
            "build": {"commands": [["make"]], "artifact": "program"},
            "axes": {"compiler": ["gcc-12"], "optimization": ["-O2", "-O3"]},
            "baseline": {"compiler": "gcc-12", "optimization": "-O2"},
            "layouts": layouts,
            "race": {"budget": "60s", "mode": "interleaved", "metric": "cpu"},
            "workloads": [{"name": "a", "command": ["{artifact}"]}],
        }
    )


def variants(relinks: int = 12) -> VariantSet:
    paths = {name: tuple(f"/b/{name}-{n}" for n in range(relinks)) for name in ("O2", "O3", TWIN)}
    natural = VariantSet((("O2", "/b/O2"), ("O3", "/b/O3")), {}, CpuPlan((1,), (0,), (0,)))
    return replace(natural, relinks=paths, rotation=relinks)


def result(build_s: float) -> BuildResult:
    facts = BuildFacts(
        variant="O2", choices=(), compiler="", flags=(), link_flags=(), status=BuildStatus.BUILT,
        build_s=build_s, size_bytes=1, text_bytes=1, loadable_sha256="", layouts=("a",),
    )  # fmt: skip
    return BuildResult(facts, None, None, {}, layouts=(Path("a"),), relink_s=RELINK_S)


def chosen(
    tmp_path: Path, study: Study, layout_ns: int, build_s: float = BUILD_S, seed: int = 0
) -> RelinkCount:
    def cost_ns(variant: str, execution: int) -> int:
        layout = int(variant.rpartition("-")[2]) * layout_ns if variant.startswith("relink") else 0
        noise = random.Random(f"{variant} {execution} {seed}")  # noqa: S311  # not for secrets
        return COST_NS + layout + noise.randrange(10**6)

    meter = SimulatedMeter(cost_ns)
    context = PlanContext(meter, meter, StudyFolder(tmp_path), lambda _: None)
    found = piloted(context, study, variants())
    return chosen_count(context, study, variants(), [result(build_s)], found)


def test_where_the_layouts_move_the_baseline_rounds_get_about_as_many_as_they_are(
    tmp_path: Path,
) -> None:
    found = chosen(tmp_path, a_study(), layout_ns=2_000_000)
    assert found.relinks > 60
    assert found.spent_ns > 0


def test_where_they_do_not_a_dozen_are_enough(tmp_path: Path) -> None:
    drawn = [chosen(tmp_path, a_study(), layout_ns=0, seed=seed).relinks for seed in range(15)]
    assert median(drawn) < 30


def test_builds_that_take_long_are_not_done_again(tmp_path: Path) -> None:
    found = chosen(tmp_path, a_study(), layout_ns=2_000_000, build_s=3600.0)
    assert found == RelinkCount(12, 0)


def test_a_number_that_the_study_says_is_that(tmp_path: Path) -> None:
    found = chosen(tmp_path, a_study(count=12), layout_ns=2_000_000)
    assert found == RelinkCount(12, 0)


@pytest.mark.parametrize("key", ["k1", "k2"])
def test_the_number_stays_for_the_same_programs(tmp_path: Path, key: str) -> None:
    folder = StudyFolder(tmp_path)
    assert stored_count(folder, key) is None
    store_count(folder, key, 40)
    assert stored_count(folder, key) == 40
