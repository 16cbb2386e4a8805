"""Two studies against each other: what changed, what differs, and what cannot be compared."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import report_data as data
from ensign.experiment.record import Record
from ensign.model.errors import InputError
from ensign.model.results import MachineFacts
from ensign.model.study import Study
from ensign.model.trials import Trial
from ensign.report import as_difference
from ensign.stats.changes import StudyDifference
from ensign.tools.diff_studies import study_difference
from study_results import a_record, a_study, swept

RACED = tuple[Study, Record, tuple[Trial, ...]]


def difference(a: RACED, b: RACED) -> StudyDifference:
    return study_difference(("a.toml", "b.zip"), a, b)


SAME = (a_study(), a_record(), swept(1, (0.9, 0.9)))


def test_what_did_not_change_is_shown_to_be_within_the_margin() -> None:
    found = difference(SAME, (a_study(), a_record(), swept(2, (0.9, 0.9))))
    assert (found.machine, found.settings, found.findings) == ((), (), ())
    assert all(each.same for each in found.builds)
    text = as_difference.text(found, 200)
    assert "no variant changed against gcc-O2 by more than 1 %: shown for each" in text
    assert "Same builds" in text
    assert "Same machine" in text
    assert "Same settings" in text
    assert "shown to be within 1 %" in text


def test_no_evidence_is_not_called_the_same() -> None:
    noisy = [(a_study(), a_record(), swept(seed, (0.9, 0.9), sd=0.03)) for seed in (3, 4)]
    text = as_difference.text(difference(noisy[0], noisy[1]), 200)
    assert "No evidence that a variant changed" in text
    assert "that it did not is not shown for gcc-O3" in text


def test_a_change_of_one_workload_is_named_on_its_side() -> None:
    found = difference(SAME, (a_study(), a_record(), swept(2, (0.9, 0.95))))
    changes = {(each.workload, each.comparison.variant): each for each in found.workloads}
    moved = changes["b", "gcc-O3"].comparison
    assert moved.low < 0.95 / 0.9 < moved.high
    named = {each.variant: each for each in found.significant}
    assert (named["gcc-O3"].slower, named["gcc-O3"].faster) == (("b",), ())
    assert (named["twin"].slower, named["twin"].faster) == ((), ())
    assert "gcc-O3: 1 lost (b)" in as_difference.text(found, 200)


def test_what_else_differs_is_listed() -> None:
    other = a_record(
        machine=MachineFacts((("CPU", "EPYC"), ("kernel", "6.1"), ("load average", "3.00"))),
        commands=(("a", "program a"), ("b", "program b --fast")),
        builds=(data.build("gcc-O2"), replace(data.build("gcc-O3"), loadable_sha256="11" * 32)),
    )
    found = difference(SAME, (a_study(slice="2ms"), other, swept(2, (0.9, 0.9))))
    assert [(each.name, each.a, each.b) for each in found.machine] == [("CPU", "Xeon", "EPYC")]
    assert {each.name for each in found.settings} == {"slice", "command of b"}
    assert [each.same for each in found.builds] == [True, False]
    text = as_difference.text(found, 200)
    assert "the bytes of gcc-O3 differ" in text
    assert "Another machine" in text
    assert "Measured otherwise; what differs: slice and command of b." in text


def test_only_what_both_have_is_compared() -> None:
    other = (a_study("bc"), a_record(), swept(2, (0.9, 0.5), "bc"))
    found = difference(SAME, other)
    assert {each.workload for each in found.workloads} == {"b"}
    assert (found.only_a, found.only_b) == (("workload a",), ("workload c",))


def test_the_stricter_margin_counts_and_none_where_one_has_none() -> None:
    wide = (a_study(margin="3%"), a_record(), swept(2, (0.9, 0.9)))
    assert difference(SAME, wide).margin == 0.01
    none = (a_study(margin="none"), a_record(), swept(2, (0.9, 0.9)))
    assert difference(SAME, none).margin is None


def test_a_twin_that_changed_is_a_warning() -> None:
    off = tuple(
        replace(
            trial,
            variants=tuple(
                replace(variant, cpu_ns=int(variant.cpu_ns * 1.05))
                if variant.variant == "twin"
                else variant
                for variant in trial.variants
            ),
        )
        for trial in swept(2, (0.9, 0.9))
    )
    found = difference(SAME, (a_study(), a_record(), off))
    assert [each.code for each in found.findings] == ["twin-changed"]


@pytest.mark.parametrize(
    ("b", "complaint"),
    [
        (SAME, "the same measurement"),
        ((a_study(metric="wall"), a_record(), swept(2, (1, 1))), "different metrics"),
        ((a_study(), a_record(raced=("gcc-O3",)), swept(2, (1, 1))), "different baselines"),
        ((a_study("cd"), a_record(), swept(2, (1, 1), "cd")), "no workload in common"),
    ],
)
def test_what_cannot_be_compared(b: RACED, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        difference(SAME, b)


def test_markdown_is_escaped_and_json_has_everything() -> None:
    hostile = a_record(machine=MachineFacts((("CPU", data.HOSTILE),)))
    found = difference(SAME, (a_study(), hostile, swept(2, (0.9, 0.95))))
    page = as_difference.markdown(found)
    assert "<script>" not in page
    assert "| gcc-O3 |" in page
    said = json.loads(as_difference.as_json(found))
    assert {row["variant"] for row in said["suite"]} == {"gcc-O3", "twin"}
    assert said["machine"][0]["b"] == data.HOSTILE
    assert said["suite"][0]["answer"].startswith("lost")
