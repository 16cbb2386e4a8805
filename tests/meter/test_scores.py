from __future__ import annotations

import pytest
from pydantic import ValidationError

from ensign.meter.records import AskedScores
from ensign.meter.requests import NamedPattern, Report
from ensign.model.errors import CommandFailed
from ensign.model.study_workload import ScoreSection
from ensign.model.trials import Better, NamedScore, Score, better_by, contradiction

RATE, TIME = Score("(.)", "MB/s", Better.HIGHER), Score("(.)", "ms", Better.LOWER)


def test_each_name_has_the_unit_of_its_pattern() -> None:
    asked = AskedScores(named=(NamedPattern("in", RATE), NamedPattern("", TIME)))
    assert asked.named_scores([("in", 3.0), ("seen", 4.0)], None) == (
        NamedScore("in", 3.0, "MB/s", Better.HIGHER),
        NamedScore("seen", 4.0, "ms", Better.LOWER),
    )


def test_one_without_a_number_says_so_and_all_without_are_a_failure() -> None:
    asked = AskedScores(named=(NamedPattern("in", RATE), NamedPattern("out", RATE)))
    found = asked.named_scores([("in", 3.0), ("out", None)], None)
    assert (found[1].value, found[1].failed) == (
        None,
        "nothing that it printed is a number above 0",
    )
    with pytest.raises(CommandFailed, match="it says nothing of its speed: in: nothing that"):
        asked.named_scores([("in", None), ("out", None)], None)
    with pytest.raises(CommandFailed, match="no pattern matches"):
        asked.named_scores([], None)


def test_names_that_a_program_prints_cannot_command_a_terminal() -> None:
    asked = AskedScores(named=(NamedPattern("", RATE),))
    (found,) = asked.named_scores([("\x1b[2J\u202e" + "x" * 500, 3.0)], None)
    assert found.name.isprintable()
    assert len(found.name) == 200


def test_a_report_is_read_by_who_knows_it() -> None:
    asked = AskedScores(report=Report("f", lambda text: (NamedScore(text, 1.0),)))
    assert asked.named_scores([], "name") == (NamedScore("name", 1.0),)
    with pytest.raises(CommandFailed, match="says nothing"):
        AskedScores(report=Report("f", lambda _: ())).named_scores([], "")


@pytest.mark.parametrize(
    ("unit", "better"),
    [
        ("ms", Better.LOWER),
        ("s", Better.LOWER),
        ("ns/iter", Better.LOWER),
        ("cycles/byte", Better.LOWER),
        ("MB/s", Better.HIGHER),
        ("requests/sec", Better.HIGHER),
        ("ops per second", Better.HIGHER),
        ("fps", Better.HIGHER),
        ("MIPS", Better.HIGHER),
        ("Gflops", Better.HIGHER),
        ("usec", Better.LOWER),
        ("points", None),
        ("", None),
        ("MB", None),
    ],
)
def test_a_unit_says_which_number_is_better(unit: str, better: Better | None) -> None:
    assert better_by(unit) is better


def test_a_unit_is_not_contradicted() -> None:
    assert contradiction("ms", Better.HIGHER).startswith("'ms' is a time")
    assert contradiction("MB/s", Better.LOWER).startswith("'MB/s' is a rate")
    assert not contradiction("ms", Better.LOWER)
    assert not contradiction("points", Better.LOWER)
    with pytest.raises(ValidationError, match="leave 'better' out"):
        ScoreSection.model_validate({"pattern": "(.)", "unit": "ms", "better": "higher"})


def test_rows_that_sum_up_others_are_no_scores() -> None:
    asked = AskedScores(named=(NamedPattern("", Score("(?P<name>.)", "ns", Better.LOWER)),))
    rows = ["BM_a", "BM_a_mean", "BM_a_median", "BM_a_stddev", "BM_a_cv", "roll", "roll_mean"]
    found = asked.named_scores([(name, 1.0) for name in rows], None)
    assert [each.name for each in found] == ["BM_a", "roll", "roll_mean"]
