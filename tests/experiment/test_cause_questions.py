"""Questions after causes, and repairs, as studies that can be written and read again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import report_data as data
from ensign.experiment.study.causes import guilty_sources, questions, study_text
from ensign.experiment.study.repair import losers, repair_study, repairs_of
from ensign.experiment.study_file import StudyFile, parse_study
from ensign.model.errors import StudyError
from ensign.model.results import FunctionCost, FunctionCosts, Result

TEXT = """\
name = "mine" # a study
question = "Which?"
exclude = []
source = { kind = "path", path = "src" }
[build]
system = "make"
artifact = "tool"
[axes]
compiler = ["gcc-12"]
optimization = ["-O2", "-O3"]
flags = ["", "-fno-plt -g1"]
[baseline]
optimization = "-O2"
flags = ""
[race]
budget = "2m"
confirm = { rounds = 7 }
[[workloads]]
name = "w"
command = ["{artifact}"]
"""
FILE = parse_study(TEXT, Path("mine.toml"))
A, B = FILE.variants[0], FILE.variants[-1]
SOURCES = {"src/hot.c": -0.08, "src/b.c": 0.03, "/usr/include/x.h": 0.02, "c.c": 0.001}


def looked_at(name: str) -> Result:
    """The variant differs, by functions of these sources."""
    rows = tuple(
        FunctionCost(source, "", 1e6, 1e6, share, share - 1e-4, share + 1e-4, source=source)
        for source, share in SOURCES.items()
    )
    total = FunctionCost("", "", 1e7, 1e7, -0.05, -0.06, -0.04)
    base = data.compared()
    return replace(base, functions=(FunctionCosts(name, "w", 0.95, (1, 1), total, rows),))


def asked(*, proof_ns: int = 100) -> dict[str, StudyFile]:
    found = questions(A, B, looked_at(B.name), proof_ns)
    return {question.by: question.asked_of(FILE, "50s") for question, _ in found}


def test_the_time_is_shared_by_what_can_be_asked() -> None:
    assert [time for _, time in questions(A, B, looked_at(B.name), 100)] == [50, 50]
    assert questions(A, B, looked_at(B.name), 0) == ()
    same = looked_at(B.name)
    same = replace(same, suite=same.suite[-1:], workloads=())  # the twin alone
    assert questions(A, B, same, 100) == ()


def test_choices_are_added_to_one_end_and_taken_from_the_other() -> None:
    study = asked()["choices"].study
    assert study.explain is not None
    assert study.explain.variant == B.name
    assert [cause.name for cause in study.explain.causes] == [
        "optimization: -O2 → -O3", "-fno-plt", "-g1",
    ]  # fmt: skip
    variants = {variant.name: variant for variant in asked()["choices"].variants}
    assert len(variants) == 2 + 2 * 3
    plt = study.explain.causes[1]
    assert variants[plt.added].flags == "-fno-plt"
    assert variants[plt.removed].flags == "-g1"
    assert study.race.confirm is None


def test_sources_are_those_whose_functions_differ() -> None:
    assert guilty_sources(looked_at(B.name), B.name) == ["src/hot.c", "src/b.c"]
    assert guilty_sources(looked_at(B.name), B.name, worse=True) == ["src/b.c"]
    assert guilty_sources(looked_at("another"), B.name) == []
    study = asked()["sources"].study
    assert study.explain is not None
    assert [cause.name for cause in study.explain.causes] == [
        "src/hot.c", "src/b.c", "all other sources",
    ]  # fmt: skip


@pytest.mark.parametrize("by", ["choices", "sources"])
def test_what_is_written_is_the_same_study(by: str) -> None:
    derived = asked()[by]
    again = parse_study(study_text(derived), Path("why.toml"))
    assert again.variants == derived.variants
    assert again.study.explain == derived.study.explain
    assert again.study.baseline == derived.study.baseline
    assert (again.study.question, again.study.workloads) == ("Which?", FILE.study.workloads)
    assert again.study.race.budget == "50s"


def test_causes_of_variants_that_are_not_there_are_a_mistake() -> None:
    table = '[explain]\nvariant = "gcc-12-O4"\n[[explain.causes]]\nname = "x"\n'
    with pytest.raises(StudyError, match="which is no variant; nearest is 'gcc-12-O"):
        parse_study(TEXT + table, Path("mine.toml"))


def test_repairs_are_small_changes_the_best_of_which_is_confirmed() -> None:
    trained = replace(B, pgo="on")
    tried = repairs_of(A, trained, looked_at(B.name), gcc=True)
    assert tried[0].flags == "-fno-plt -g1 -fprofile-partial-training"
    assert tried[1].units == "src/b.c: optimization=-O2 pgo=off flags="
    assert [each.alignment for each in tried].count("loops") == 1
    assert [each.pgo for each in tried].count("off") == 1
    derived = repair_study(FILE, (A, B), repairs_of(A, B, looked_at(B.name), gcc=True), "3m")
    again = parse_study(study_text(derived), Path("repair.toml"))
    assert again.variants == derived.variants
    assert again.study.race.confirm is not None
    assert again.study.race.confirm.relinks


def test_losers_are_what_is_not_shown_to_hold_the_worst_first() -> None:
    result = data.study()
    names = {row.comparison.variant for row in result.workloads} - {result.twin}
    for name in names:
        found = losers(result, name)
        shown = [row.workload for row in result.slower_workloads(name)]
        assert list(found[: len(shown)]) == shown or set(shown) <= set(found)
