"""The plan of a confirmation: who is chosen, what it fixes, and that it stays as it was written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import report_data as data
from ensign.experiment.record import Record
from ensign.experiment.study.budget import Demand, WorkloadPilot, fitted
from ensign.experiment.study.confirm_plan import (
    ConfirmPlan,
    TimeLeft,
    choose_extremes,
    choose_finalists,
    confirming,
    made_afresh,
    new_plan,
    read_plan,
    write_plan,
)
from ensign.experiment.study.phase import plan_key
from ensign.experiment.study.record import write_record
from ensign.experiment.study.round_plan import RoundPlan
from ensign.experiment.study.stored import second_phase, with_confirmation
from ensign.experiment.study_file import StudyFile, parse_study
from ensign.model.builds import CheckStatus
from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.model.results import LayoutFacts, MachineFacts, Result, WorstLayout
from ensign.model.variants import Variant
from ensign.store.folder import StudyFolder

TEXT = """\
name = "s"
[source]
kind = "path"
path = "x"
[build]
commands = [["make"]]
artifact = "program"
[axes]
compiler = ["gcc-12"]
optimization = ["-O2", "-O3", "-Os"]
pgo = ["off", "on"]
[baseline]
optimization = "-O2"
pgo = "off"
[layouts]
count = 4
seed = 3
[training]
profiles = 2
[[training.workloads]]
name = "learn"
command = ["{artifact}", "learn"]
[race]
margin = "2%"
confirm = {}
[[workloads]]
name = "set"
command = ["{artifact}", "set"]
[[workloads]]
name = "get"
command = ["{artifact}", "get"]
"""
FILE = parse_study(TEXT, Path("s.toml"))
NAMES = [each.name for each in FILE.variants]
EXPLORED = RoundPlan("key", 7, {"set": 1000, "get": None}, 0)
ROOM = TimeLeft(left_ns=12_500_000_000, round_ns=10**9)


def explored(**ratios: float) -> Result:
    truth = {name.replace("_", "-"): ratio for name, ratio in ratios.items()}
    return replace(data.study(truth, ("set", "get")), baseline=NAMES[0], findings=(), builds=())


_LAYOUTS = "[layouts]\ncount = 4\nseed = 3\n"


def plan_of(file: StudyFile, result: Result) -> ConfirmPlan:
    asked = file.study.race.confirm
    assert asked is not None
    finalists = choose_finalists(result, file.variants, asked.finalists)
    return new_plan(file, asked, finalists, EXPLORED, ROOM)


def test_robust_finalists_are_the_best_at_their_worst_and_the_plan_keeps_it() -> None:
    robust = FILE.study.race.model_copy(update={"prefer": "robust"})
    file = replace(FILE, study=FILE.study.model_copy(update={"race": robust}))
    result = explored(gcc_12_O3=0.9, gcc_12_Os=0.95)
    rows = (("gcc-12-O2", 1.04), ("gcc-12-O3", 1.02), ("gcc-12-Os", 0.97))
    worst = tuple(WorstLayout(*row) for row in rows)
    result = replace(result, prefer="robust", layouts=LayoutFacts(4, "order", worst=worst))
    plan = plan_of(file, result)
    assert plan.finalists == ("gcc-12-Os", "gcc-12-O3")
    assert plan_of(FILE, replace(result, prefer="mean")).finalists == plan.finalists[::-1]
    # The plan was fixed beforehand, whatever the study says later.
    assert plan.sha256 != plan_of(FILE, result).sha256
    assert confirming(FILE, plan).study.race.prefer == "robust"
    unsafe = LayoutFacts(4, "order", worst=(WorstLayout("gcc-12-O2", 1.01), *worst[1:]))
    assert plan_of(file, replace(result, layouts=unsafe)).finalists == ("gcc-12-Os",)


def test_the_names_of_this_study() -> None:
    assert NAMES == [
        "gcc-12-O2", "gcc-12-O2-pgo-p1", "gcc-12-O2-pgo-p2", "gcc-12-O3", "gcc-12-O3-pgo-p1",
        "gcc-12-O3-pgo-p2", "gcc-12-Os", "gcc-12-Os-pgo-p1", "gcc-12-Os-pgo-p2",
    ]  # fmt: skip
    assert FILE.study.race.rounds is None


def test_the_best_that_nothing_speaks_against_are_chosen_once_each() -> None:
    result = explored(
        gcc_12_O2_pgo_p1=0.93, gcc_12_O2_pgo_p2=0.92, gcc_12_O3=0.95, gcc_12_Os=0.94,
        gcc_12_O3_pgo_p1=0.90, gcc_12_Os_pgo_p1=0.96, gcc_12_Os_pgo_p2=1.2,
    )  # fmt: skip
    failed = replace(data.build("gcc-12-Os"), check=CheckStatus.FAILED)
    bad = Finding("flag-lost", Severity.ERROR, "no trace", "gcc-12-O3-pgo-p1")
    result = replace(result, builds=(failed,), findings=(bad,))
    chosen = choose_finalists(result, FILE.variants, 3)
    assert chosen == ("gcc-12-O2-pgo-p2", "gcc-12-O3", "gcc-12-Os-pgo-p1")
    assert choose_finalists(result, FILE.variants, 1) == chosen[:1]
    assert choose_finalists(explored(gcc_12_O3=1.01), FILE.variants, 3) == ()


def test_the_extremes_of_each_compiler() -> None:
    two = ('["gcc-12"]', '["gcc-12", "clang-19"]')
    baseline = ("[baseline]\n", '[baseline]\ncompiler = "gcc-12"\n')
    text = TEXT.replace(*two).replace(*baseline).replace('pgo = ["off", "on"]\n', "")
    file = parse_study(text, Path("s.toml"))
    result = explored(
        gcc_12_O3=1.2, gcc_12_Os=1.1, clang_19_O2=0.98, clang_19_O3=0.9, clang_19_Os=1.3
    )
    chosen = choose_extremes(result, file.variants, 8)
    # The baseline is the best of its compiler, and raced anyway.
    assert chosen == ("clang-19-O3", "gcc-12-O3", "clang-19-Os")
    assert choose_extremes(result, file.variants, 1) == ("clang-19-O3",)
    bad = Finding("flag-lost", Severity.ERROR, "no trace", "clang-19-Os")
    without = choose_extremes(replace(result, findings=(bad,)), file.variants, 8)
    assert without == ("clang-19-O3", "gcc-12-O3", "clang-19-O2")


def test_the_plan_fixes_everything_and_is_the_same_from_the_same_exploration() -> None:
    plan = plan_of(FILE, explored(gcc_12_O3=0.95, gcc_12_Os=0.94))
    assert plan == plan_of(FILE, explored(gcc_12_O3=0.95, gcc_12_Os=0.94))
    assert plan.finalists == ("gcc-12-Os", "gcc-12-O3")
    assert (plan.rounds, plan.margin, plan.metric, plan.level) == (12, "2%", "cpu", 0.95)
    assert plan.level_each == pytest.approx(0.975)
    assert plan_of(FILE, explored(gcc_12_O3=0.95)).rounds == 12


def test_relinks_profiles_and_executions_are_fresh_and_the_study_no_longer_matters() -> None:
    plan = plan_of(FILE, explored(gcc_12_O2_pgo_p2=0.92, gcc_12_O3=0.95))
    edited = parse_study(TEXT.replace('"2%"', '"5%"'), Path("s.toml"))
    again = confirming(edited, plan)
    assert [each.name for each in again.variants] == ["gcc-12-O2", "gcc-12-O2-pgo-p2", "gcc-12-O3"]
    assert [each.profile for each in again.variants] == [1, 3, 1]
    layouts, race = again.study.layouts, again.study.race
    assert (layouts.seed, layouts.count) == (4, 12)
    assert (race.margin, race.rounds, race.confirm) == ("2%", 12, None)
    assert race.seed != FILE.study.race.seed
    assert made_afresh(FILE, plan) == ("executions", "relinks", "profiles")
    natural = TEXT.replace(_LAYOUTS, '[layouts]\nvariants = "none"\n')
    plain = parse_study(natural, Path("s.toml"))
    assert made_afresh(plain, plan_of(plain, explored(gcc_12_O3=0.95))) == ("executions",)


def test_a_confirmation_may_ask_for_relinks_that_the_rounds_did_not_have() -> None:
    text = 'layouts = "natural"\n' + TEXT.replace(_LAYOUTS, "")
    file = parse_study(text.replace("confirm = {}", "confirm = { relinks = true }"), Path("s.toml"))
    plan = plan_of(file, explored(gcc_12_O3=0.95))
    layouts = confirming(file, plan).study.layouts
    assert file.study.layouts.variants == "none"
    assert (layouts.variants, layouts.how, layouts.count) == ("all", "order", 12)
    assert made_afresh(file, plan) == ("executions", "relinks")


def test_a_finalist_that_the_study_no_longer_has_is_named() -> None:
    plan = plan_of(FILE, explored(gcc_12_O3=0.95))
    changed = replace(FILE, variants=(Variant("gcc-12-O2", "gcc-12", "-O2"),))
    with pytest.raises(InputError, match=r"no longer has gcc-12-O3"):
        confirming(changed, plan)


def test_asking_for_a_confirmation_later_keeps_the_trials() -> None:
    with_rounds = TEXT.replace("confirm = {}", "rounds = 7\nconfirm = {}")
    without = TEXT.replace("confirm = {}", "rounds = 7")
    keys = {plan_key(parse_study(text, Path("s")).study, {}) for text in (with_rounds, without)}
    assert len(keys) == 1


def test_a_plan_that_was_edited_is_an_error(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    plan = plan_of(FILE, explored(gcc_12_O3=0.95))
    assert read_plan(folder, "key") is None
    write_plan(folder, plan)
    assert read_plan(folder, "key") == plan
    path = folder.json_file("confirm/key")
    for change in (
        ("0.95", "0.9"),
        ('"2%"', '"5%"'),
        ("gcc-12-O3", "gcc-12-Os"),
        ('"seed"', '"s"'),
    ):
        write_plan(folder, plan)
        text = path.read_text()
        assert change[0] in text
        path.write_text(text.replace(*change))
        with pytest.raises(InputError, match=r"edited after it was written.*put it back"):
            read_plan(folder, "key")


def a_record(plan: ConfirmPlan, key: str) -> Record:
    return Record(
        key=key, raced=(plan.baseline, *plan.finalists), rounds_planned=plan.rounds, builds=(),
        machine=MachineFacts(()), findings=(), commands=(), toolchains=(), source=(), version="0",
        made_at="now", complete=False, plan_sha256=plan.sha256,
    )  # fmt: skip


def as_stored(result: Result, file: StudyFile, folder: StudyFolder) -> Result:
    return with_confirmation(result, file, folder, second_phase(file, folder, "key"))


def test_another_plan_with_its_own_hash_is_not_the_one_that_was_raced(tmp_path: Path) -> None:
    folder, result = StudyFolder(tmp_path), explored(gcc_12_O3=0.95)
    plan = plan_of(FILE, result)
    write_plan(folder, plan)
    write_record(folder, a_record(plan, f"{plan.prefix}x"), "confirm/key-record")
    waiting = as_stored(result, FILE, folder).confirmation
    assert waiting is not None
    assert (waiting.result, waiting.rounds_done, waiting.rounds) == (None, 0, 12)
    write_plan(folder, replace(plan, margin="5%"))
    with pytest.raises(InputError, match="edited after it was written"):
        as_stored(result, FILE, folder)


def test_an_exploration_claims_nothing_and_a_plain_study_stays_as_it_is(tmp_path: Path) -> None:
    result = explored(gcc_12_O3=0.95)
    seen = as_stored(result, FILE, StudyFolder(tmp_path))
    assert seen.confirmation is not None
    assert seen.confirmation.plan_sha256 == ""
    assert {entry.non_inferior for entry in seen.suite} == {None}
    assert seen.significant == ()
    plain = parse_study(TEXT.replace("confirm = {}", ""), Path("s.toml"))
    assert as_stored(result, plain, StudyFolder(tmp_path)) == result


def test_the_file_is_text_that_people_can_read(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    plan = plan_of(FILE, explored(gcc_12_O3=0.95))
    write_plan(folder, plan)
    said = json.loads(folder.json_file("confirm/key").read_text())
    assert said["sha256"] == plan.sha256
    assert said["plan"]["finalists"] == ["gcc-12-O3"]


def both(text: str) -> tuple[float, float]:
    """Time for exploring, and for confirming after it, of a budget of 300 s (in s)."""
    study = parse_study(TEXT.replace("confirm = {}", text), Path("s.toml")).study
    pilots = {"set": WorkloadPilot(None, 10**8, 0), "get": WorkloadPilot(None, 10**8, 0)}
    demand = Demand(study, pilots, len(NAMES) - 1)
    fit = fitted(demand, 0)
    explored = fit.rounds * fit.round_ns
    return explored / 1e9, (300e9 - explored) / 1e9


def test_the_budget_is_for_both_phases() -> None:
    # Five variants of a confirmation, two workloads: a second for each round.
    exploring, confirming = both("confirm = {}")
    assert 140 < exploring <= 150 <= confirming
    exploring, confirming = both("confirm = { rounds = 16 }")
    assert 16 <= confirming < 16 + 3
    exploring, confirming = both("rounds = 7\nconfirm = {}")
    assert exploring == pytest.approx(7 * 0.1 * 2 * 10, rel=0.3)


def test_as_many_confirming_rounds_are_planned_as_fit_or_a_precision_needs() -> None:
    plan = plan_of(FILE, explored(gcc_12_O3=0.95))
    assert (plan.rounds, plan.allowed_ns) == (12, ROOM.left_ns)
    asked = FILE.study.race.model_copy(update={"precision": "1%"})
    file = replace(FILE, study=FILE.study.model_copy(update={"race": asked}))
    confirm = asked.confirm
    assert confirm is not None
    narrow = replace(EXPLORED, reached=0.011)
    assert new_plan(file, confirm, ["gcc-12-O3"], narrow, ROOM).rounds == 9
    wide = replace(EXPLORED, reached=0.5)
    assert new_plan(file, confirm, ["gcc-12-O3"], wide, ROOM).rounds == 12
    late = new_plan(file, confirm, ["gcc-12-O3"], narrow, TimeLeft(10**9, 10**9))
    assert (late.rounds, late.allowed_ns) == (12, None)
