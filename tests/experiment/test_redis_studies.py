"""The larger Redis studies, which are too slow to build here."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from ensign.experiment.study_file import StudyFile, parse_study, read_study

ROOT = Path(__file__).parents[2]
MISTAKES = runpy.run_path(str(ROOT / "bench/redis_mistakes.py"))


@pytest.fixture(scope="module")
def builds() -> StudyFile:
    return read_study(ROOT / "studies/redis/builds.toml")


def test_there_are_the_24_builds(builds: StudyFile) -> None:
    variants = builds.variants
    assert variants[0].name == "gcc-12-O2"
    plain = [each for each in variants if each.pgo == "off" and each.dependencies == "plain"]
    assert {(each.compiler, each.optimization, each.lto) for each in plain} == {
        (compiler, level, lto)
        for compiler in ("gcc-11", "gcc-12", "clang-14", "clang-19")
        for level in ("-O2", "-O3")
        for lto in ("off", "full")
    }
    profiled = {(each.compiler, each.lto, each.bolt) for each in variants if each.pgo == "on"}
    assert profiled == {
        (compiler, lto, bolt)
        for compiler in ("gcc-12", "clang-19")
        for lto, bolt in (("off", "off"), ("full", "off"), ("full", "on"))
    }
    deps = [each.compiler for each in variants if each.dependencies == "flags"]
    assert deps == ["gcc-12", "clang-19"]
    assert len(variants) == 24


def test_the_training_is_no_test(builds: StudyFile) -> None:
    study = builds.study
    assert study.training is not None
    measured = [
        [word.lower() for word in command.argv or ()]
        for each in study.workloads
        if each.drive is not None
        for command in each.drive.commands
    ]
    assert len(measured) == 16
    for workload in study.training.workloads:
        load = workload.load or []
        assert not any(" ".join(words) in " ".join(load) for words in measured)
        assert workload.requests is not None
        assert not {"set", "get", "incr", "mset", "hset", "zadd"} & set(load)
        if "-P" in load:
            assert workload.requests % int(load[load.index("-P") + 1]) == 0
    # LRANGE is the one command in both: with other bounds, so compared above.
    assert "lrange" in {words[0] for words in measured}


def test_both_studies_build_redis_alike_and_measure_the_same(builds: StudyFile) -> None:
    quick = read_study(ROOT / "studies/redis/quick.toml").study
    assert builds.study.source == quick.source
    assert builds.study.build.commands == quick.build.commands
    assert builds.study.ship == quick.ship
    assert builds.study.workloads == quick.workloads
    assert builds.study.server == quick.server


@pytest.mark.parametrize("case", MISTAKES["CASES"], ids=lambda case: case.name)
def test_every_mistake_is_a_study_of_two_variants(case: object) -> None:
    file = parse_study(MISTAKES["study_of"](case), Path("mistake.toml"))
    assert len(file.variants) == 2
    assert file.variants[0].name in ("gcc-12-O2", "clang-19-O2")


def test_every_mistake_of_the_history_has_a_case() -> None:
    expected = {case.expected for case in MISTAKES["CASES"]}
    assert expected == {*MISTAKES["CODES"], ""}


def test_the_planted_study_has_one_build_that_does_more_work() -> None:
    file = read_study(ROOT / "tests/planted/planted.toml")
    flags = [each.flags for each in file.variants]
    assert [each for each in flags if "PLANTED=10" in each] == ["-DENSIGN_PLANTED=10"]
    assert len(flags) == 5
    (patch,) = file.study.source.apply
    assert "ENSIGN_PLANTED / 1000" in (file.folder / patch).read_text()
