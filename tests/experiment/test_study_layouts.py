"""Relinks in a study: turns, requests, the spread's own race, and what n counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ensign.experiment.machine import CpuPlan
from ensign.experiment.record import Record
from ensign.experiment.study.budget import SPREAD_EXECUTIONS, Demand, WorkloadPilot
from ensign.experiment.study.layouts import rotating, spread_race
from ensign.experiment.study.phase import plan_key
from ensign.experiment.study.result import study_result
from ensign.experiment.study.round_plan import RoundPlan
from ensign.experiment.study.variants import VariantSet, race_request
from ensign.meter.records import TrialPlace, trials
from ensign.model.builds import BuildFacts, BuildStatus
from ensign.model.comparisons import Direction
from ensign.model.results import MachineFacts, Result
from ensign.model.study import Study
from ensign.model.trials import TWIN, Trial
from ensign.report.effects import effects_view
from ensign.report.layouts import scope
from ensign.stats.winner import winner
from ensign.store.folder import StudyFolder
from experiment.test_study_racing import race_all
from races import SimulatedMeter, execution

NATURAL = VariantSet(
    (("gcc-O2", "/b/O2"), ("gcc-O3", "/b/O3"), ("gcc-bolt", "/b/bolt")),
    {},
    CpuPlan((1,), (0,), (0,)),
)
RELINKS = {
    "gcc-O2": tuple(f"/b/O2-{k}" for k in range(6)),
    "gcc-O3": tuple(f"/b/O3-{k}" for k in range(3)),
    "gcc-bolt": (),
}
START = {"type": "start", "schema": 1, "freezer": "cgroup", "mode": "interleaved"}
SAID = {
    "name": "s",
    "source": {"kind": "path", "path": "x"},
    "build": {"commands": [["make"]], "artifact": "program"},
    "axes": {"compiler": ["gcc-12"], "optimization": ["-O2", "-O3"]},
    "baseline": {"compiler": "gcc-12", "optimization": "-O2"},
    "workloads": [{"name": name, "command": ["{artifact}", name]} for name in ("a", "b")],
}


def a_study(variants: str = "all", count: int = 3, rounds: int = 6) -> Study:
    layouts = {"count": count, "variants": variants}
    return Study.model_validate(SAID | {"layouts": layouts, "race": {"rounds": rounds}})


def built(variant: str, relinks: int) -> BuildFacts:
    return BuildFacts(
        variant=variant, choices=(), compiler="", flags=(), link_flags=(), status=BuildStatus.BUILT,
        build_s=1.0, size_bytes=1, text_bytes=1, loadable_sha256=variant,
        layouts=tuple(f"{variant} {k}" for k in range(relinks)), layout_kind="object order",
    )  # fmt: skip


def record(*builds: BuildFacts, relinks: int) -> Record:
    return Record(
        key="key", raced=tuple(each.variant for each in builds), rounds_planned=6, builds=builds,
        machine=MachineFacts(()), findings=(), commands=(), toolchains=(), source=(), version="0",
        made_at="now", complete=True, relinks=relinks,
    )  # fmt: skip


def test_each_round_takes_the_next_relink_of_every_variant_and_the_twin_its_own() -> None:
    variants = rotating(a_study(), NATURAL, RELINKS)
    programs = []
    for round_index in range(4):
        request = race_request(
            a_study(), variants.in_round(round_index), a_study().workloads[0], None, seed=1
        )
        programs.append([variant.program.argv[0] for variant in request.variants])
        assert [variant.name for variant in request.variants] == [
            "gcc-O2",
            "gcc-O3",
            "gcc-bolt",
            TWIN,
        ]
        assert request.env_padding
    assert programs[0] == ["/b/O2-0", "/b/O3-0", "/b/bolt", "/b/O2-3"]
    assert programs[1] == ["/b/O2-1", "/b/O3-1", "/b/bolt", "/b/O2-4"]
    assert programs[3] == programs[0]


def test_where_too_few_relinks_differ_the_twin_has_another_turn() -> None:
    few = rotating(a_study(), NATURAL, {**RELINKS, "gcc-O2": ("/b/x", "/b/y")})
    assert few.rotation == 2
    assert few.relinks[TWIN] == ("/b/y", "/b/x")


def test_a_study_that_says_nothing_of_layouts_races_relinks() -> None:
    silent = Study.model_validate(SAID)
    assert (silent.layouts.variants, silent.layouts.relinks) == ("all", 12)
    assert rotating(silent, NATURAL, RELINKS).rotation == 3
    natural = Study.model_validate(SAID | {"layouts": "natural"})
    assert rotating(natural, NATURAL, RELINKS) == NATURAL


def test_rounds_that_are_looked_at_one_by_one_race_programs_as_they_were_linked() -> None:
    looking = SAID | {"race": {"stopping": "sequential"}}
    assert Study.model_validate(looking).layouts.variants == "none"


def test_what_gives_hardly_any_different_links_does_not_hold_the_others_back() -> None:
    few = {"gcc-O2": RELINKS["gcc-O2"] * 4, "gcc-O3": RELINKS["gcc-O3"], "gcc-bolt": ("/a",) * 9}
    variants = rotating(a_study(count=12), NATURAL, few)
    assert (variants.rotation, sorted(variants.relinks)) == (9, ["gcc-O2", "gcc-bolt", TWIN])


def test_without_relinks_of_the_baseline_nothing_is_perturbed() -> None:
    assert rotating(a_study(), NATURAL, {**RELINKS, "gcc-O2": ()}) == NATURAL
    assert rotating(a_study("baseline"), NATURAL, RELINKS) == NATURAL
    assert NATURAL.in_round(5) == NATURAL


def test_the_spread_is_a_race_of_its_own_on_natural_and_relinked_baseline(tmp_path: Path) -> None:
    study, plan = a_study("baseline"), RoundPlan("key", 6, {"a": None, "b": None}, 0)
    race = spread_race(study, NATURAL, plan, built("gcc-O2", 6), RELINKS)
    assert race is not None
    variants, spread_plan = race
    assert spread_plan.key != plan.key
    meter = SimulatedMeter(lambda _variant, _n: 1_000_000)
    race_all(meter, study, variants, spread_plan, StudyFolder(tmp_path))
    names = [variant["name"] for variant in meter.requests[0][1]["variants"]]  # type: ignore[attr-defined]
    assert names == ["natural", *(f"relink-{k}" for k in range(1, 7)), TWIN]
    assert len(meter.requests) == SPREAD_EXECUTIONS * 2
    assert spread_race(a_study(), NATURAL, plan, built("gcc-O2", 6), RELINKS) is None
    assert spread_race(study, NATURAL, plan, built("gcc-O2", 0), {}) is None


def test_the_spread_takes_its_part_of_the_budget() -> None:
    pilots = {"a": WorkloadPilot(None, 100, 0), "b": WorkloadPilot(None, 100, 0)}
    lengths = {"a": 100.0, "b": 100.0}
    assert Demand(a_study(), pilots, 2).extras_ns(lengths) == 0
    banded = Demand(a_study("baseline"), pilots, 2)
    assert banded.extras_ns(lengths) == 2 * 100 * SPREAD_EXECUTIONS * 5


def test_other_relinks_are_other_trials_and_a_spread_leaves_the_rounds_as_they_are() -> None:
    plain = plan_key(a_study(), {"x": "1"})
    assert plan_key(a_study("baseline"), {"x": "1"}, {}) == plain
    assert plan_key(a_study(), {"x": "1"}, {"x": ["2"]}) != plain


def raced(
    cost: Callable[[str, int], float], rounds: int, variants: tuple[str, ...]
) -> tuple[Trial, ...]:
    """Trials of both workloads; `cost` is the log cost of a variant in a round."""
    rng = np.random.default_rng(3)
    done: list[Trial] = []
    for workload in ("a", "b"):
        for round_index in range(rounds):
            costs = {
                variant: int(1e9 * np.exp(cost(variant, round_index) + rng.normal(0, 0.001)))
                for variant in variants
            }
            done += trials(
                [START, *execution(0, costs)], TrialPlace(workload, round_index, 1, 5_000_000)
            )
    return tuple(done)


def suite_row(result: Result, variant: str) -> tuple[Direction, int]:
    (row,) = [each.comparison for each in result.suite if each.comparison.variant == variant]
    return row.direction, row.executions


def test_one_binary_says_faster_and_the_layouts_say_no() -> None:
    """Flags that do nothing, in a program whose layouts differ by 2 %.

    One link of each variant happens to lie well: every execution agrees that it is faster.
    """
    places = np.random.default_rng(1).normal(0, 0.02, (2, 8))
    places[1, 0] = places[0, 0] - 0.03
    variants = ("gcc-O2", "gcc-O3", TWIN)

    def one_binary(variant: str, _round: int) -> float:
        return float(places[variants.index(variant) % 2, 0])

    def relinked(variant: str, round_index: int) -> float:
        row = variants.index(variant) % 2
        return float(places[row, (round_index + (4 if variant == TWIN else 0)) % 8])

    builds = (built("gcc-O2", 8), built("gcc-O3", 8))
    study = a_study(count=8, rounds=16)
    single = study_result(study, record(*builds, relinks=0), raced(one_binary, 16, variants))
    layouts = study_result(study, record(*builds, relinks=8), raced(relinked, 16, variants))
    assert suite_row(single, "gcc-O3") == (Direction.FASTER, 16)
    assert "not of these flags" in scope(single)
    assert suite_row(layouts, "gcc-O3") == (Direction.UNCLEAR, 8)
    assert scope(layouts).startswith("These flags")
    assert layouts.layouts is not None
    split = next(each for each in layouts.layouts.splits if each.variant == "gcc-O3")
    assert (split.relinks, split.executions) == (8, 16)
    assert split.layout_sd > 10 * split.execution_sd


def test_a_level_that_pays_only_when_code_is_aligned() -> None:
    """As mawk's -O3: what it gains lies anywhere between layouts, unless loops are aligned."""
    means = {"O2": 0.0, "O3": 0.0, "O2-align": -0.005, "O3-align": -0.08}
    rng = np.random.default_rng(4)
    places = {
        name: rng.normal(0, 0.002 if "align" in name else 0.02, 12) for name in (*means, TWIN)
    }

    def cost(variant: str, round_index: int) -> float:
        return float(means.get(variant, 0.0) + places[variant][round_index % 12])

    builds = tuple(
        replace(
            built(name, 24 if name == "O2" else 12),
            choices=(
                ("compiler", "gcc-12"),
                ("optimization", f"-{name[:2]}"),
                *([("alignment", "loops")] if "align" in name else []),
            ),
        )
        for name in means
    )
    study = a_study(count=12, rounds=24)
    race = study.race.model_copy(update={"prefer": "robust"})
    study = study.model_copy(update={"race": race})
    result = study_result(study, record(*builds, relinks=12), raced(cost, 24, (*means, TWIN)))
    effects = effects_view(result)
    assert effects is not None
    (level,) = [each for each in effects.sentences if each.startswith("-O3 instead of -O2 is")]
    assert "It depends: with default alignment unclear (" in level
    assert "; with functions and loops aligned +7." in level
    best = winner(result)
    assert best is not None
    assert best.comparison.variant == "O3-align"
    assert [each.code for each in result.findings].count("layouts-spread") == 1


def test_executions_of_one_relink_are_one_observation() -> None:
    result = study_result(
        a_study(rounds=10),
        record(built("gcc-O2", 6), built("gcc-O3", 3), relinks=3),
        raced(lambda _variant, _round: 0.0, 10, ("gcc-O2", "gcc-O3", TWIN)),
    )
    assert {each.comparison.executions for each in result.suite} == {3}
    assert {each.comparison.executions for each in result.workloads} == {3}
    assert result.rounds_done == 10


def test_each_variant_has_its_own_spread_and_a_prediction() -> None:
    """A fragile baseline (2 %) and a robust variant that is 5 % cheaper."""
    places = np.random.default_rng(2).normal(0, 0.02, 16)
    robust = np.random.default_rng(3).normal(-0.05, 0.001, 8)

    def cost(variant: str, round_index: int) -> float:
        if variant == "gcc-O3":
            return float(robust[round_index % 8])
        return float(places[round_index % 8 + (8 if variant == TWIN else 0)])

    variants, study = ("gcc-O2", "gcc-O3", TWIN), a_study(count=8, rounds=16)
    trials_of = raced(cost, 16, variants)
    builds = (built("gcc-O2", 16), built("gcc-O3", 8))
    facts = study_result(study, record(*builds, relinks=8), trials_of).layouts
    assert facts is not None
    baseline, variant = facts.variants
    assert (len(baseline.ratios), len(variant.ratios)) == (16, 8)
    assert np.log(baseline.ratios).mean() == pytest.approx(0, abs=1e-6)
    assert (baseline.executions, variant.executions) == (32, 16)
    for row, truth in ((baseline, 0.02), (variant, 0.001)):
        assert row.low is not None
        assert row.high is not None
        assert row.low < truth < row.high
    assert (baseline.fresh_low, baseline.fresh_high) == (None, None)
    assert variant.fresh_low is not None
    assert variant.fresh_high is not None
    # Both ends by the spread of the baseline alone.
    assert variant.fresh_low < np.exp(-0.05 - 0.02) < np.exp(-0.05 + 0.02) < variant.fresh_high

    few = (built("gcc-O2", 8), built("gcc-O3", 8))
    facts = study_result(study, record(*few, relinks=8), trials_of).layouts
    assert facts is not None
    baseline, variant = facts.variants
    assert (baseline.sd, variant.sd, len(baseline.ratios)) == (None, None, 8)
    assert variant.fresh_low is not None


def test_copies_of_the_same_relinks_count_once() -> None:
    places = np.random.default_rng(4).normal(0, 0.02, 4)

    def cost(variant: str, round_index: int) -> float:
        turn = round_index + (variant == TWIN)
        return 0.0 if variant == "gcc-O3" else float(places[turn % 4])

    def width(relinks: int) -> float:
        builds = (built("gcc-O2", relinks), built("gcc-O3", 4))
        result = study_result(
            a_study(count=4, rounds=8),
            record(*builds, relinks=4),
            raced(cost, 8, ("gcc-O2", "gcc-O3", TWIN)),
        )
        row = next(each.comparison for each in result.suite if each.comparison.variant == "gcc-O3")
        return float(np.log(row.high / row.low))

    # The records differ in nothing but whether the twin's relinks are its own.
    assert width(4) != width(8)
    assert width(4) == pytest.approx(2 * 3.182 * places.std(ddof=1) / 2, rel=0.2)


def test_a_variant_without_relinks_is_named() -> None:
    builds = (built("gcc-O2", 6), built("gcc-bolt", 0))
    trials_of = raced(lambda _variant, _round: 0.0, 6, ("gcc-O2", "gcc-bolt", TWIN))
    result = study_result(a_study(), record(*builds, relinks=3), trials_of)
    assert result.layouts is not None
    assert result.layouts.unable == ("gcc-bolt",)


def test_the_spread_of_the_relinked_baseline_is_found() -> None:
    places = {"natural": 0.0} | {f"relink-{k}": 0.005 * k for k in range(1, 9)}
    variants = (*places, TWIN)
    spread = raced(lambda variant, _round: float(places.get(variant, 0)), 3, variants)
    rounds = raced(lambda _variant, _round: 0.0, 6, ("gcc-O2", "gcc-O3", TWIN))
    study = a_study("baseline", count=8)
    builds = (built("gcc-O2", 8), built("gcc-O3", 0))
    result = study_result(study, record(*builds, relinks=0), rounds, (), spread)
    assert result.layouts is not None
    whole, *each = result.layouts.spreads
    assert (whole.workload, whole.relinks) == ("", 8)
    assert [one.workload for one in each] == ["a", "b"]
    assert 1.003 < whole.least < 1.007
    assert 1.038 < whole.greatest < 1.043
    assert whole.low < whole.least < whole.greatest < whole.high
    (split,) = result.layouts.splits
    assert split.execution_sd < 0.003
    assert split.layout_sd > 0.008
    without = study_result(study, replace(record(*builds, relinks=0)), rounds)
    assert without.layouts is None
