"""Relinks that differ: the finding, and that its way out builds what it promises."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from ensign.experiment.machine import CpuPlan
from ensign.experiment.study.layouts import layouts_spread, rotating, way_out
from ensign.experiment.study.pilots import PlanContext
from ensign.experiment.study.round_plan import fixed_plan
from ensign.experiment.study.rounds import RaceContext, race_plan
from ensign.experiment.study.variants import VariantSet
from ensign.experiment.study_file import parse_study
from ensign.model.findings import Finding, Severity
from ensign.model.study import Study
from ensign.model.trials import TWIN, Metric
from ensign.stats.rounds import RoundCosts
from ensign.store.folder import StudyFolder
from ensign.variants.expand import expand
from races import SimulatedMeter

TEXT = """\
name = "s"
[source]
kind = "path"
path = "x"
[build]
commands = [["make"]]
artifact = "program"
[axes]
AXES
[baseline]
optimization = "-O2"
BASELINE
[race]
margin = "1%"
[layouts]
count = 12
[[workloads]]
name = "w"
command = ["{artifact}"]
"""
ONE_AT_A_TIME = 'combine = "one-at-a-time"\ncompiler = ["gcc-12"]\noptimization = ["-O2", "-O3"]\n'


def study_of(axes: str, baseline: str = "", more: str = "") -> Study:
    text = TEXT.replace("AXES", axes).replace("BASELINE", baseline) + more
    return parse_study(text, Path("s.toml")).study


def followed(study: Study, advice: str) -> Study:
    """The study with the lines that the advice names."""
    said = advice.partition(": add ")[2]
    axes = study.axes.model_dump(exclude_unset=True)
    baseline = study.baseline.model_dump(exclude_unset=True)
    include = [each.model_dump(exclude_unset=True) for each in study.include]
    for part in said.split("; "):
        table, keys = re.fullmatch(r"(\[axes\]|\[baseline\]|\[\[include\]\]) (.+)", part).groups()  # type: ignore[union-attr]
        values = tomllib.loads("\n".join(re.split(r", (?=\w+ = )", keys)))
        if table == "[axes]":
            axes |= values
        elif table == "[baseline]":
            baseline |= values
        else:
            include.append(values)
    whole = study.model_dump(exclude_unset=True)
    return Study.model_validate({**whole, "axes": axes, "baseline": baseline, "include": include})


@pytest.mark.parametrize(
    ("axes", "baseline", "more"),
    [
        (ONE_AT_A_TIME, "", ""),
        (ONE_AT_A_TIME + 'lto = ["full", "off"]\n', 'lto = "off"', ""),
        (ONE_AT_A_TIME + 'alignment = ["default", "functions"]\n', 'alignment = "default"', ""),
        ('compiler = ["gcc-12"]\noptimization = ["-O2", "-O3"]\n', "", ""),
        (
            'combine = "list"\ncompiler = ["gcc-12"]\n',
            "",
            '[[include]]\noptimization = "-O2"\n[[include]]\noptimization = "-O3"\n',
        ),
        (ONE_AT_A_TIME.replace('"gcc-12"', '"rustc"') + "codegen_units = [16, 1]\n", "", ""),
    ],
)
def test_the_advice_builds_baseline_and_variant_aligned(
    axes: str, baseline: str, more: str
) -> None:
    study = study_of(axes, baseline, more)
    before = expand(study)
    fast = next(each for each in before if each.optimization == "-O3" and each.lto == "off")
    after = expand(followed(study, way_out(study, [fast.name])))
    aligned = [each for each in after if each.alignment == "loops"]
    assert {each.optimization for each in aligned} == {"-O2", "-O3"}
    assert all(each.lto == "off" for each in aligned[:1])
    assert len(after) <= 2 * len(before)
    assert after[0].name == before[0].name


def test_levels_that_align_nothing_are_not_advised_and_what_races_is_not_added_again() -> None:
    small = study_of(ONE_AT_A_TIME.replace('"-O3"', '"-Os"'))
    assert "-Os" not in way_out(small, ["gcc-12-Os"])
    text = TEXT.replace('"-O2"', '"-Os"').replace("AXES", ONE_AT_A_TIME.replace('"-O2"', '"-Os"'))
    text = text.replace('"-O3"', '"-Oz"').replace("BASELINE", "")
    only_small = parse_study(text, Path("s.toml")).study
    assert way_out(only_small, ["gcc-12-Oz"]).startswith("more relinks")
    crossed = study_of(
        'compiler = ["gcc-12"]\noptimization = ["-O2", "-O3"]\nalignment = ["default", "loops"]\n',
        'alignment = "default"',
    )
    assert way_out(crossed, ["gcc-12-O3"]).startswith('aligned builds race; race.prefer = "robust"')


def test_where_the_baseline_moves_the_fastest_are_aligned_first_and_once() -> None:
    three = ONE_AT_A_TIME.replace('"-O3"]', '"-O1", "-O3"]')
    ranked = ["gcc-12-O3", "gcc-12-O2", "gcc-12-O1"]
    said = way_out(study_of(three), ["gcc-12-O2"], ranked)
    assert said.index('"-O3"') < said.index('"-O1"')
    aligned = study_of(three, "", '[[include]]\noptimization = "-O3"\nalignment = "loops"\n')
    again = way_out(aligned, ["gcc-12-O2"], ranked)
    assert again.endswith('add [axes] alignment = ["default", "loops"]')


def costs_of(rounds: int, spread: float) -> RoundCosts:
    rng = np.random.default_rng(1)
    names = ("gcc-12-O2", "gcc-12-O3", TWIN)
    used = np.arange(rounds) % 12
    y = np.stack([rng.normal(0, spread, 12)[used] for _ in names])
    y += rng.normal(0, 0.001, y.shape)
    return RoundCosts(Metric.CPU, names, ("w",), tuple(range(rounds)), (), y[:, None, :])


def said(study: Study, rounds: int, spread: float = 0.04, relinks: int = 12) -> list[Finding]:
    return list(layouts_spread(study, costs_of(rounds, spread), relinks))


def test_the_finding_says_how_sure_it_is() -> None:
    study = study_of(ONE_AT_A_TIME)
    (sure,), (perhaps,) = said(study, 24), said(study, 6)
    assert (sure.code, perhaps.code) == ("layouts-spread", "layouts-spread")
    assert (sure.severity, perhaps.severity) == (Severity.WARNING, Severity.NOTE)
    assert "or by noise" not in sure.text
    assert "or by noise" in perhaps.text
    assert 'add [axes] alignment = ["default", "loops"]; [[include]] optimization' in sure.text


def test_nothing_is_said_below_the_margin_without_one_or_without_relinks() -> None:
    study = study_of(ONE_AT_A_TIME)
    assert said(study, 24, spread=0.001) == []
    assert said(study, 24, relinks=0) == []
    none = study.model_copy(update={"race": study.race.model_copy(update={"margin": None})})
    assert said(none, 24) == []


def test_a_race_tells_of_the_spread_once_and_before_its_end(tmp_path: Path) -> None:
    names = ("gcc-12-O2", "gcc-12-O3")
    relinks = {name: tuple(f"/b/{name}-{k}" for k in range(24)) for name in names}
    natural = VariantSet(
        tuple((name, f"/b/{name}") for name in names), {}, CpuPlan((1,), (0,), (0,))
    )
    study = study_of(ONE_AT_A_TIME)
    race = study.race.model_copy(update={"budget": "4s"})
    study = study.model_copy(update={"race": race})
    variants = rotating(study, natural, relinks)
    places = np.random.default_rng(1).normal(0, 0.04, 100)
    told: list[tuple[int, Finding]] = []

    def cost_ns(variant: str, _execution: int) -> int:
        (program,) = (
            each["program"]["argv"][0]
            for each in meter.requests[-1][1]["variants"]  # type: ignore[attr-defined]
            if each["name"] == variant
        )
        place = sum(map(ord, program)) % len(places)
        return round(20_000_000 * float(np.exp(places[place])))

    meter, folder = SimulatedMeter(cost_ns), StudyFolder(tmp_path)
    plan = fixed_plan(PlanContext(meter, meter, folder, lambda _: None), study, variants, "key")
    context = RaceContext(
        meter,
        meter,
        folder,
        lambda _: None,
        lambda _: None,
        lambda finding: told.append((len(folder.done("key")), finding)),
    )
    closed, _ = race_plan(context, study, variants, plan)
    ((rounds, finding),) = told
    assert finding.code == "layouts-spread"
    assert rounds == 12 + 4 <= closed.pilots < closed.rounds / 2
    assert '[[include]] optimization = "-O3", alignment = "loops"' in finding.text
