from __future__ import annotations

from dataclasses import replace

from ensign.model.finding_kinds.race import MOSTLY_WAITING
from ensign.model.findings import Finding, Severity
from ensign.model.results import SignificantWorkloads, SuiteComparison, WorkloadComparison
from ensign.report.verdict import verdict_of
from report_data import (
    compared,
    compared_rows,
    compared_several,
    comparison,
    confirmed_study,
    empty_study,
    study,
    unbounded,
)


def suite(*rows: tuple[str, float, float]) -> tuple[SuiteComparison, ...]:
    return tuple(SuiteComparison(comparison(*row), 14) for row in rows)


def test_the_best_variant_is_named_with_its_interval_and_claim() -> None:
    verdict = verdict_of(study())
    assert verdict.headline.startswith(
        "clang-19-O3-lto is 4.0 % faster than gcc-12-O2 by CPU time, "
    )
    assert "No workload is slower by more than 1 %" in verdict.details[0]


def test_overlap_means_not_decided() -> None:
    verdict = verdict_of(study(suite=suite(("a", -0.04, 0.01), ("b", -0.035, 0.01))))
    assert any("overlaps with b" in detail for detail in verdict.details)
    apart = verdict_of(study(suite=suite(("a", -0.08, 0.01), ("b", -0.035, 0.01))))
    assert not any("overlaps" in detail for detail in apart.details)


def test_a_variant_with_an_error_cannot_win() -> None:
    wrong = Finding("tests-failed", Severity.ERROR, "fails the program's own tests", "a")
    rows = suite(("a", -0.08, 0.01), ("b", -0.03, 0.01))
    verdict = verdict_of(study(suite=rows, findings=(wrong,)))
    assert verdict.headline.startswith("b is ")
    assert any("fails the program's own tests" in caveat for caveat in verdict.caveats)


def test_no_winner_is_said_in_the_strongest_true_words() -> None:
    slower = verdict_of(study(suite=suite(("a", 0.03, 0.01))))
    assert slower.headline == "Every variant is slower than gcc-12-O2 by CPU time."
    alike = verdict_of(study(suite=suite(("a", 0.001, 0.005))))
    assert alike.headline == "No variant differs from gcc-12-O2 by more than 1 % (CPU time)."
    unclear = verdict_of(study(suite=suite(("a", 0.0, 0.05))))
    assert unclear.headline == "No variant is shown to be faster than gcc-12-O2 by CPU time."
    none = verdict_of(empty_study())
    assert none.headline == "No variant was compared with the baseline."


def test_what_bounds_all_workloads_goes_before_an_undecided_verdict() -> None:
    rows = suite(("a", 0.0, 0.05))
    names = study().workload_names
    told = tuple(
        MOSTLY_WAITING.found("spends 97 % of its time waiting for the disk (fsync); raced", name)
        for name in names
    )
    verdict = verdict_of(study(suite=rows, findings=told))
    assert verdict.headline.endswith(": spends 97 % of its time waiting for the disk (fsync).")
    assert verdict.details[0].startswith("No variant is shown to be faster")
    some = verdict_of(study(suite=rows, findings=told[1:]))
    assert some.headline == verdict.details[0], "the others may tell the builds apart"
    shown = verdict_of(study(findings=told))
    assert shown.headline.startswith("clang-19-O3-lto is 4.0 % faster")


def test_what_bounds_it_does_not_go_before_what_a_confirmation_shows() -> None:
    told = tuple(MOSTLY_WAITING.found("waits", name) for name in study().workload_names)
    both = replace(confirmed_study(), suite=suite(("a", 0.0, 0.05)), findings=told)
    assert both.confirmation is not None
    shown = verdict_of(replace(both, confirmation=replace(both.confirmation, result=study())))
    assert shown.headline.startswith("clang-19-O3-lto is 4.0 % faster")


def test_of_two_revisions_it_is_said_how_they_differ() -> None:
    one = study(suite=suite(("a", 0.03, 0.01)))
    builds = tuple(replace(each, choices=(("revision", each.variant),)) for each in one.builds)
    revisions = replace(one, builds=builds)
    verdict = verdict_of(revisions)
    assert verdict.headline.startswith("a needs 3.0 % more CPU time than gcc-12-O2, between ")
    same = verdict_of(replace(revisions, suite=(), withheld="the same program"))
    assert (same.headline, same.details, same.caveats) == ("The same program", (), ())


def test_a_claim_that_fails_names_the_workloads() -> None:
    rows = (SuiteComparison(comparison("a", -0.04, 0.01), 14, False, ("get", "mset")),)  # noqa: FBT003
    verdict = verdict_of(study(suite=rows))
    assert verdict.details[0].endswith("is not shown for get and mset.")


def strings(half: float, ratio: float = 0.05) -> tuple[WorkloadComparison, ...]:
    rows = (("get", -0.06, 0.005), ("strings", ratio, half), ("lists", 0.004, 0.002))
    return tuple(WorkloadComparison(w, comparison("a", *row), 1.0, 1.0, 0.5) for w, *row in rows)


def test_what_hurts_is_said_first_and_with_its_size() -> None:
    rows = (SuiteComparison(comparison("a", -0.04, 0.01), 3, False, ("strings",)),)  # noqa: FBT003
    named = (SignificantWorkloads("a", ("strings",), ("get",)),)
    found = verdict_of(study(suite=rows, workloads=strings(0.01), significant=named))
    assert found.details == ("But strings needs 5.1 % more CPU time (4.1 to 6.2 %).",)
    # The same workload is not also "not shown", and one within the margin is no regression.
    assert not any("not shown" in line or "lists" in line for line in found.details)


def test_a_workload_that_is_slower_by_its_own_interval_alone_is_said_so() -> None:
    rows = (SuiteComparison(comparison("a", -0.04, 0.01), 3, False, ("strings",)),)  # noqa: FBT003
    named = (SignificantWorkloads("a", (), ("get",)),)
    found = verdict_of(study(suite=rows, workloads=strings(0.045), significant=named))
    assert found.details[0].startswith(
        "By its own interval alone, strings needs 5.1 % more CPU time (0.5 to 10.0 %)"
    )
    assert "by chance" in found.details[0]


def test_what_hurts_the_nearest_is_said_where_nothing_is_faster() -> None:
    rows = suite(("a", -0.001, 0.03))
    named = (SignificantWorkloads("a", ("strings",), ()),)
    found = verdict_of(study(suite=rows, workloads=strings(0.01), significant=named))
    assert found.headline.startswith("No variant is shown to be faster")
    assert "But strings needs 5.1 % more CPU time (4.1 to 6.2 %)." in found.details


def test_what_may_overturn_the_result_stands_beside_it() -> None:
    twin = SuiteComparison(comparison("twin", 0.004, 0.001), 14)
    verdict = verdict_of(study(suite=(*suite(("a", -0.04, 0.01)), twin), rounds_done=5))
    text = " ".join(verdict.caveats)
    assert "Not finished: 5 of 8 rounds" in text
    assert "1 build failed: clang-14-O3-lto" in text
    assert "baseline's copy needs 0.4 % more CPU time" in text


def test_a_comparison_has_a_sentence_per_variant_and_doubts_its_twin() -> None:
    several = verdict_of(compared_several())
    assert several.headline.startswith("quick is 49.2 % faster than old")
    assert len(several.details) == 4
    assert "Distrust differences of that size" in several.caveats[0]
    assert verdict_of(compared()).caveats == ()


def test_too_few_executions_is_not_a_percentage() -> None:
    verdict = verdict_of(compared(suite=compared_rows(unbounded("new"))))
    assert "too few for an interval" in verdict.headline
    assert "%" not in verdict.headline


def failing(name: str) -> Finding:
    return Finding("check-failed", Severity.ERROR, "fails the check: 'make' ended", name)


def test_where_every_variant_fails_its_check_there_is_no_winner() -> None:
    rows = suite(("a", -0.08, 0.01), ("b", -0.03, 0.01))
    none = verdict_of(study(suite=rows, findings=(failing("a"), failing("b"))))
    assert none.headline == "No winner: every variant was measured, but none is to be used."
    assert sum("fails the check: 'make' ended" in caveat for caveat in none.caveats) == 2
    one = verdict_of(study(suite=rows[:1], findings=(failing("a"),)))
    assert one.headline == "No winner: a was measured, but is not to be used."
    twin = SuiteComparison(comparison("twin", 0.0, 0.001), 14)
    assert verdict_of(study(suite=(*rows[:1], twin), findings=(failing("a"),))) == one
