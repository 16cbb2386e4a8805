"""Budgets of studies with real builds and races; simulated ones are in tests/experiment."""

from __future__ import annotations

import json
import re

import pytest

from end_to_end.conftest import Ensign
from end_to_end.small_study import BATCH, SERVER, write_study


def trials(ensign: Ensign) -> int:
    return len(list(ensign.folder.glob(".ensign/small/trials/*/*.csv.gz")))


def test_without_rounds_a_study_races_as_many_as_fit_and_no_more_later(ensign: Ensign) -> None:
    write_study(ensign.folder, BATCH, ('budget = "60s"\nrounds = 3', 'budget = "15s"'))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    said = json.loads(ensign("report", "study.toml", "--json", "-").out)["experiment"]
    assert said["rounds_done"] == said["rounds_planned"] >= 3
    raced = trials(ensign)
    assert raced == 2 * said["rounds_done"]
    assert ensign("run", "study.toml").status == 0
    assert trials(ensign) == raced


def test_a_precision_that_is_soon_reached_ends_a_study_early(ensign: Ensign) -> None:
    asked = 'budget = "10m"\nprecision = "90%"'
    write_study(ensign.folder, BATCH, ('budget = "60s"\nrounds = 3', asked))
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    said = json.loads(ensign("report", "study.toml", "--json", "-").out)["experiment"]
    assert 5 <= said["rounds_done"] < 100


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        (SERVER, ("rounds = 3\n", "rounds = 3\nconfirm = {}\n")),
        (BATCH, ("rounds = 3\n", "rounds = 9000\n")),
    ],
)
def test_what_surely_does_not_fit_is_refused_before_anything_is_built(
    ensign: Ensign, text: str, changes: tuple[str, str]
) -> None:
    text = re.sub('budget = "[0-9]+s"', 'budget = "300ms"', text)
    write_study(ensign.folder, text, changes)
    done = ensign("run", "study.toml")
    assert done.status == 2
    assert "budget of 300ms cannot hold" in done.complaint
    assert "give at least" in done.complaint
    assert "source: done" not in done.err


def test_a_program_that_is_too_slow_is_refused_by_its_first_pilot(ensign: Ensign) -> None:
    write_study(
        ensign.folder,
        BATCH,
        ('budget = "60s"\nrounds = 3', 'budget = "2s"'),
        ('"1000000"', '"60000000000"'),
    )
    done = ensign("run", "study.toml")
    assert done.status == 2
    assert "budget of 2s" in done.complaint
    assert "give" in done.complaint
    assert trials(ensign) == 0
