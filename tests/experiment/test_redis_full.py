"""The study of the whole specification: its tests are what the written rule yields."""

from __future__ import annotations

import runpy
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from ensign.experiment.study_file import read_study
from ensign.workloads.registry import suite_named

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies/redis/full.toml"
RULE = runpy.run_path(str(ROOT / "bench/select_redis_tests.py"))


@pytest.fixture(scope="module")
def listing() -> list[object]:
    found: list[object] = RULE["read_listing"](RULE["LISTING"].read_text())
    return found


def test_the_lists_are_what_the_rule_yields(listing: list[object]) -> None:
    content = tomllib.loads(STUDY.read_text())
    raced = RULE["tests"](listing)
    kept = RULE["kept"](raced)
    assert content["suite"]["tests"] == RULE["names"](kept)
    assert len(kept) == len(raced) - len(RULE["TAKEN_OUT"])
    assert content["training"]["tests"] == RULE["names"](RULE["training"](listing, raced))


def test_nothing_that_is_learned_from_is_measured(listing: list[object]) -> None:
    raced = RULE["tests"](listing)
    measured = {sent for test in raced for sent in test.sent}
    learned = RULE["training"](listing, raced)
    assert len(learned) >= 10
    for test in learned:
        assert not test.sent & measured


def test_every_kind_of_test_is_there(listing: list[object]) -> None:
    raced = RULE["tests"](listing)
    assert len(raced) >= 50
    groups = Counter(test.groups[0] for test in raced)
    assert set(groups) == set(RULE["GROUPS"])
    assert {1, 10} <= {test.pipeline for test in raced}
    assert max(test.pipeline for test in raced) > 10
    assert {10, 65_536} <= {test.value_bytes for test in raced}
    assert any(len(test.sent) > 1 for test in raced)


def test_the_study_is_that_of_builds_but_for_its_tests_and_the_original_compiler() -> None:
    file = read_study(STUDY)
    builds = read_study(ROOT / "studies/redis/builds.toml")
    original = [each for each in file.variants if each.compiler == "gcc-9@bullseye"]
    assert {(each.optimization, each.lto) for each in original} == {
        (level, lto) for level in ("-O2", "-O3") for lto in ("off", "full")
    }
    assert tuple(each for each in file.variants if each not in original) == builds.variants
    assert file.study.source == builds.study.source
    assert file.study.server == builds.study.server
    assert file.study.check == builds.study.check
    assert (file.study.race.mode, file.study.race.rounds) == ("driven", 12)
    assert file.study.race.budget == "150m"


def test_the_wheel_is_the_one_that_ensign_lists() -> None:
    suite, pinned = read_study(STUDY).suite, suite_named("redis").pinned
    assert suite is not None
    assert (suite.version, suite.sha256) == (pinned.version, pinned.sha256)


def test_the_search_for_the_most_races_the_same_tests_and_trains_the_same() -> None:
    full, best = read_study(STUDY), read_study(ROOT / "studies/redis/best.toml")
    assert best.suite == full.suite
    assert best.study.training == full.study.training
    assert best.study.server == full.study.server
    assert best.study.source == full.study.source
    assert best.variants[0].name == full.variants[0].name
    assert all((each.pgo, each.bolt) == ("on", "on") for each in best.variants[1:])
