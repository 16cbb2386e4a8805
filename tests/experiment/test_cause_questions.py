"""Questions after causes, and repairs, as studies that can be written and read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import report_data as data
from ensign.experiment.study.causes import (
    end_of_flags,
    flag_question,
    function_question,
    guilty_sources,
    named_sources,
    others_hold_most,
    questions,
    rounds_of,
    source_question,
    study_text,
    training_question,
    with_only_choice,
)
from ensign.experiment.study.confirm_plan import confirming_level
from ensign.experiment.study.repair import losers, repair_study, repairs_of
from ensign.experiment.study_file import StudyFile, parse_study
from ensign.model.errors import StudyError
from ensign.model.results import Causes, CauseShare, FunctionCost, FunctionCosts, Result
from ensign.model.study_axes import Layouts
from ensign.model.study_explain import By
from ensign.store.folder import StudyFolder
from ensign.toolchains.single_flags import SingleFlag

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
TRAINING = "".join(
    f'[[training.workloads]]\nname = "t{place}"\ncommand = ["{{artifact}}"]\n' for place in "12"
)
FILE = parse_study(TEXT, Path("mine.toml"))
A, B = FILE.variants[0], FILE.variants[-1]
SOURCES = {"src/hot.c": -0.08, "src/b.c": 0.03, "/usr/include/x.h": 0.02, "c.c": 0.001}
OWN = ["src/hot.c", "src/b.c", "c.c"]


def looked_at(name: str, *functions: str) -> Result:
    """The variant differs, by functions of these sources, or of one of them."""
    shares = dict.fromkeys(functions, -0.04) or SOURCES
    rows = tuple(
        FunctionCost(
            each, "", 1e6, 1e6, share, share - 1e-4, share + 1e-4,
            source="src/hot.c" if functions else each,
        )
        for each, share in shares.items()
    )  # fmt: skip
    total = FunctionCost("", "", 1e7, 1e7, -0.05, -0.06, -0.04)
    base = data.compared()
    return replace(base, functions=(FunctionCosts(name, "w", 0.95, (1, 1), total, rows),))


def asked() -> dict[str, StudyFile]:
    found = questions(A, B, looked_at(B.name), OWN)
    return {question.by: question.asked_of(FILE, "50s") for question in found}


def test_nothing_is_asked_where_no_difference_is_shown() -> None:
    assert [question.by for question in questions(A, B, looked_at(B.name), OWN)] == [
        "choices",
        "sources",
    ]
    same = looked_at(B.name)
    same = replace(same, suite=same.suite[-1:], workloads=())  # the twin alone
    assert questions(A, B, same, OWN) == ()


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


def test_sources_that_cannot_be_told_apart_are_not_asked() -> None:
    def causes_of(own: Sequence[str]) -> list[list[str]]:
        found = questions(A, B, looked_at(B.name), own)
        return [[cause.name for cause in each.causes] for each in found if each.by == "sources"]

    assert causes_of(["src/hot.c"]) == []
    assert causes_of(["src/b.c", "c.c"]) == [["src/b.c", "all other sources"]]
    assert causes_of(["src/b.c", "src/hot.c"]) == [["src/hot.c", "src/b.c"]]


@pytest.mark.parametrize("by", ["choices", "sources"])
def test_what_is_written_is_the_same_study(by: str) -> None:
    derived = asked()[by]
    again = parse_study(study_text(derived), Path("why.toml"))
    assert again.variants == derived.variants
    assert again.study.explain == derived.study.explain
    assert again.study.baseline == derived.study.baseline
    assert (again.study.question, again.study.workloads) == ("Which?", FILE.study.workloads)
    assert again.study.race.budget == "50s"


def toggled(by: By, *names: str, proven: bool = True) -> Causes:
    """Answers of which each next one does more."""
    parts = tuple(
        CauseShare(name, effect=0.01 * place, proven=proven) for place, name in enumerate(names, 1)
    )
    return Causes("b", "w", by, 0.95, CauseShare(""), parts, CauseShare(""), different=True)


HOT = toggled("sources", "src/hot.c")
FLAGS = [SingleFlag(f"-f{place}", f"-fno-{place}") for place in range(13)]


def test_a_level_that_is_a_cause_is_asked_for_its_flags() -> None:
    alone = replace(A, name="b", optimization="-O3")
    assert end_of_flags(A, alone, ()) == replace(A, name="gcc-12-O3", optimization="-O3")
    assert end_of_flags(A, replace(alone, compiler="gcc-11"), ()) is None
    assert end_of_flags(A, replace(A, name="b", lto="full"), ()) is None
    both = replace(alone, target="native", lto="full")
    table = toggled("choices", "optimization: -O2 → -O3", "lto: off → full")
    end = end_of_flags(A, both, [table])
    assert end is not None
    assert (end.optimization, end.target, end.lto) == ("-O3", "default", "off")
    assert end_of_flags(A, both, [toggled("choices", "target: …", proven=False)]) is None


def test_flags_of_a_profile_are_added_where_the_profile_is() -> None:
    trained = replace(B, pgo="on")
    found = flag_question(A, trained, FLAGS[:3], ())
    assert found is not None
    assert found.start == replace(trained, name="", flags=f"-fno-0 -fno-1 -fno-2 {B.flags}")
    assert found.causes[1].added == replace(trained, name="", flags=f"-fno-0 -fno-2 {B.flags}")
    assert found.causes[1].removed == replace(trained, name="", flags=f"-fno-1 {B.flags}")


def test_all_flags_of_a_profile_use_the_same_one() -> None:
    trained = replace(A, name="trained", pgo="on", flags="-g1")
    found = flag_question(replace(A, flags="-g1"), trained, FLAGS[:2], ())
    assert found is not None
    assert found.start is not None
    assert found.start.units == "*: flags=-fno-0 -fno-1 -g1"
    assert [cause.added.units for cause in found.causes] == [
        "*: flags=-fno-1 -g1",
        "*: flags=-fno-0 -g1",
    ]
    study = found.asked_of(FILE, "50s")
    assert study.study.explain is not None
    start = next(v for v in study.variants if v.name == study.study.explain.start)
    assert (start.units, start.pgo, start.flags) == (found.start.units, "on", "-g1")


def test_functions_of_a_source_that_is_a_cause_are_toggled() -> None:
    found = function_question(A, B, looked_at(B.name, "hot", "warm"), OWN, [HOT])
    assert found is not None
    assert [cause.name for cause in found.causes] == ["hot [src/hot.c]", "warm [src/hot.c]"]
    assert found.causes[0].added.units == "src/hot.c#hot: optimization=-O3 flags=-fno-plt -g1"
    assert found.causes[0].removed.units == "src/hot.c#hot: optimization=-O2 flags="
    again = parse_study(study_text(found.asked_of(FILE, "50s")), Path("why.toml"))
    assert again.study.explain is not None
    assert again.study.explain.by == "functions"
    one = looked_at(B.name, "hot")
    assert function_question(A, B, one, OWN, [HOT]) is None  # the source is the function
    unproven = toggled("sources", "src/hot.c", proven=False)
    two = looked_at(B.name, "hot", "warm")
    assert function_question(A, B, two, OWN, [unproven]) is None
    only = function_question(A, B, two, ["src/hot.c"], ())
    assert only is not None
    assert len(only.causes) == len(found.causes)
    assert function_question(A, B, two, OWN, [HOT, toggled("functions", "hot")]) is None
    for other in (replace(B, lto="full"), replace(B, pgo="on"), replace(B, compiler="clang-19")):
        assert function_question(A, other, two, OWN, [HOT]) is None


def test_a_profile_that_is_a_cause_is_asked_for_its_training() -> None:
    trained = replace(A, name="b", pgo="on")
    found = training_question(A, trained, ["t1", "t2"], ["w"], ())
    assert found is not None
    assert [(cause.name, cause.removed.training) for cause in found.causes] == [
        ("t1", "all but t1"),
        ("t2", "all but t2"),
        ("no training on w", "also w"),
    ]
    file = parse_study(f"{TEXT}[training]\n{TRAINING}", Path("mine.toml"))
    derived = found.asked_of(file, "50s")
    again = parse_study(study_text(derived), Path("why.toml"))
    assert again.variants == derived.variants
    assert len(derived.variants) == len((A, trained)) + len(found.causes)
    assert again.study.explain == derived.study.explain
    assert again.study.explain is not None
    assert again.study.explain.only_removed
    told = [toggled("training", "t1")]
    assert training_question(A, trained, ["t1", "t2"], ["w"], told) is None


def test_what_no_profile_explains_is_not_asked_of_its_training() -> None:
    trained = replace(B, name="b", pgo="on")
    proven, unproven = (toggled("choices", "pgo: off → on", proven=each) for each in (True, False))
    assert training_question(A, trained, ["t"], ["w"], [unproven]) is None
    only = training_question(A, trained, ["t"], ["w"], [proven])  # nothing trains without it
    assert only is not None
    assert [cause.name for cause in only.causes] == ["no training on w"]
    assert training_question(A, trained, ["t"], "abcde", [proven]) is None
    assert training_question(A, B, ["t", "u"], ["w"], ()) is None
    assert training_question(A, replace(trained, training="also w"), ["t"], ["w"], ()) is None
    assert training_question(replace(A, pgo="on"), trained, ["t"], ["w"], ()) is None


def test_many_training_workloads_are_asked_in_groups() -> None:
    trained, training = replace(A, name="b", pgo="on"), [f"t{place}" for place in range(11)]
    first = training_question(A, trained, training, ["w"], ())
    assert first is not None
    assert (first.by, [cause.name for cause in first.causes][-2:]) == (
        "training groups",
        ["t10", "no training on w"],
    )
    second = training_question(
        A, trained, training, ["w"], [toggled(first.by, "no training on w", "t0 t1")]
    )
    assert second is not None
    assert (second.by, [cause.name for cause in second.causes]) == ("training", ["t0", "t1"])


def test_few_flags_are_asked_one_by_one() -> None:
    assert flag_question(A, B, (), ()) is None
    found = flag_question(A, B, FLAGS[:2], ())
    assert found is not None
    assert (found.by, [cause.name for cause in found.causes]) == ("flags", ["-f0", "-f1"])
    assert found.causes[0].added.flags == "-f0"
    assert found.causes[0].removed.flags == f"-fno-0 {B.flags}"
    assert flag_question(A, B, FLAGS[:2], [toggled("flags", "-f0")]) is None


def test_many_flags_are_asked_in_groups_and_then_those_of_proven_groups() -> None:
    first = flag_question(A, B, FLAGS, ())
    assert first is not None
    names = [cause.name for cause in first.causes]
    assert names == ["-f0 -f1 -f2", "-f3 -f4 -f5", "-f6 -f7 -f8", "-f9 -f10 -f11", "-f12"]
    study = first.asked_of(FILE, "50s").study
    assert study.explain is not None
    assert study.explain.by == "flag groups"
    second = flag_question(A, B, FLAGS, [toggled("flag groups", names[3], names[0])])
    assert second is not None
    assert [cause.name for cause in second.causes] == [
        "-f0", "-f1", "-f2", "-f9", "-f10", "-f11", "all other flags",
    ]  # fmt: skip
    assert second.causes[-1].added.flags == "-f3 -f4 -f5 -f6 -f7 -f8 -f12"
    unproven = toggled("flag groups", *names, proven=False)
    assert flag_question(A, B, FLAGS, [unproven]) is None


def test_sources_that_no_function_names_are_asked_in_groups() -> None:
    sources = [f"src/{place}.c" for place in range(13)]
    first = source_question(A, B, sources, ())
    assert first is not None
    names = [cause.name for cause in first.causes]
    assert (first.by, names[0], names[-1]) == (
        "source groups", "src/0.c src/1.c src/2.c", "src/12.c",
    )  # fmt: skip
    proven = toggled("source groups", names[1])
    second = source_question(A, B, sources, [proven])
    assert second is not None
    assert [cause.name for cause in second.causes] == [*names[1].split(), "all other sources"]
    assert source_question(A, B, sources, [toggled("source groups", *names, proven=False)]) is None
    beside = source_question(A, B, sources, (), ["hot.c"])
    assert beside is not None
    assert [cause.name for cause in beside.causes] == ["hot.c", *names]
    few = source_question(A, B, sources[:2], ())
    assert few is not None
    assert (few.by, [cause.name for cause in few.causes]) == ("sources", sources[:2])


def test_sources_that_no_function_named_are_asked_where_most_lies_there() -> None:
    table = replace(toggled("sources", "hot.c", "all other sources"), total=CauseShare("", 0.03))
    assert others_hold_most([table])
    assert not others_hold_most([replace(table, total=CauseShare("", -0.05))])
    assert not others_hold_most([replace(table, by="choices")])
    unproven = toggled("sources", "hot.c", "all other sources", proven=False)
    assert not others_hold_most([unproven])
    found = questions(A, B, looked_at(B.name), OWN)
    assert named_sources(found) == ["src/hot.c", "src/b.c"]


def test_a_thousand_sources_are_asked_in_four_rounds_and_one_of_them_is_found() -> None:
    sources = [f"src/{place}.c" for place in range(1000)]
    causes: list[Causes] = []
    asked = []
    while found := source_question(A, B, sources, causes):
        guilty = next(c.name for c in found.causes if "src/777.c" in c.name.split())
        causes.append(toggled(found.by, guilty))
        asked.append((found.by, len(found.causes)))
    assert asked == [("source groups", 6), *[("source groups", 7)] * 2, ("sources", 4)]
    assert rounds_of(sources) == len(asked)
    assert causes[-1].parts[0].name == "src/777.c"


def test_many_proven_groups_end_with_what_does_most() -> None:
    sources = [f"src/{place}.c" for place in range(49)]
    causes: list[Causes] = []
    while found := source_question(A, B, sources, causes):
        causes.append(
            toggled(found.by, *(c.name for c in found.causes if "all other" not in c.name))
        )
    assert [table.by for table in causes] == ["source groups", "source groups", "sources"]
    third, most = (causes[1].parts[place].name.split() for place in (-2, -1))
    assert [part.name for part in causes[-1].parts] == [*most, *third][:8]


def test_causes_of_variants_that_are_not_there_are_a_mistake() -> None:
    table = '[explain]\nvariant = "gcc-12-O4"\n[[explain.causes]]\nname = "x"\n'
    with pytest.raises(StudyError, match="which is no variant; nearest is 'gcc-12-O"):
        parse_study(TEXT + table, Path("mine.toml"))


def test_repairs_are_small_changes_the_best_of_which_is_confirmed() -> None:
    trained = replace(B, pgo="on")
    tried = repairs_of(A, trained, looked_at(B.name), ["w"], gcc=True)
    assert tried[0].flags == "-fno-plt -g1 -fprofile-partial-training"
    assert (tried[1].pgo, tried[1].training) == ("on", "also w")
    assert tried[2].units == "src/b.c: optimization=-O2 pgo=off flags="
    assert [each.alignment for each in tried].count("loops") == 1
    assert [each.pgo for each in tried].count("off") == 1
    derived = repair_study(FILE, (A, B), repairs_of(A, B, looked_at(B.name), ["w"], gcc=True), "3m")
    again = parse_study(study_text(derived), Path("repair.toml"))
    assert again.variants == derived.variants
    assert again.study.race.confirm is not None
    assert again.study.race.confirm.relinks


def test_another_attempt_to_repair_is_judged_more_strictly(tmp_path: Path) -> None:
    file = replace(FILE, path=tmp_path / "mine.toml")
    levels = []
    for place, variant in enumerate((B, replace(B, pgo="on"), replace(B, lto="full"))):
        derived = repair_study(file, (A, B), [replace(variant, alignment="loops")], "3m")
        levels.append(confirming_level(derived.study.race))
        folder = StudyFolder.beside(file.path, derived.study.name)
        if place != 1:  # the second one was not confirmed
            folder.write_json("confirm/key", {})
        assert repair_study(file, (A, B), [replace(variant, alignment="loops")], "3m") == derived
    assert levels == pytest.approx([1 - 0.05 / 2, 1 - 0.05 / 4, 1 - 0.05 / 4])
    assert confirming_level(FILE.study.race) == FILE.study.race.level


def test_losers_are_what_is_not_shown_to_hold_the_worst_first() -> None:
    result = data.study()
    names = {row.comparison.variant for row in result.workloads} - {result.twin}
    for name in names:
        found = losers(result, name)
        shown = [row.workload for row in result.slower_workloads(name)]
        assert list(found[: len(shown)]) == shown or set(shown) <= set(found)


@pytest.mark.parametrize(
    ("axis", "values", "named"),
    [
        ("allocator", ("default", "tcmalloc"), "allocator: default → tcmalloc"),
        ("flags", ("", "-fno-plt"), "-fno-plt"),
        ("flags", ("", "-fno-plt -fwrapv"), ""),
        ("optimization", ("-O2", "-O3"), ""),
        ("lto", ("off", "full"), ""),
    ],
)
def test_the_only_choice_is_the_cause_unless_it_stands_for_many(
    axis: str, values: tuple[str, str], named: str
) -> None:
    choices: list[dict[str, Any]] = [
        {"name": n, axis: v} for n, v in zip("ab", values, strict=True)
    ]
    a, b = (replace(A, **each) for each in choices)
    explain = with_only_choice(replace(FILE, variants=(a, b))).study.explain
    assert (explain.causes[0].name if explain else "") == named
    assert explain is None or explain.variants == ("b",)
    natural = FILE.study.model_copy(update={"layouts": Layouts(variants="none")})
    one_layout = replace(FILE, study=natural, variants=(a, b))
    assert with_only_choice(one_layout).study.explain is None
