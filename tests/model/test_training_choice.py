"""What a variant says of its training."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ensign.experiment.study_file import parse_study
from ensign.model.errors import StudyError
from ensign.model.training_choice import read_training_choice

STUDY = """\
name = "x"
layouts = "natural"
source = {{ kind = "path", path = "." }}
build = {{ commands = [["make"]], artifact = "x" }}
server = {{ command = ["{{artifact}}", "{{port}}"] }}
[axes]
compiler = ["gcc-12"]
pgo = ["off", "on"]
training = ["", "{said}"]
[[exclude]]
pgo = "off"
training = "{said}"
[baseline]
pgo = "off"
[[training.workloads]]
name = "learn"
load = ["load", "{{port}}", "{{requests}}"]
requests = 9
[[workloads]]
name = "test"
load = ["load", "{{port}}", "{{requests}}"]
"""


@pytest.mark.parametrize("text", ["", "also test", "also a b", "all but learn"])
def test_a_choice_is_written_as_it_was_read(text: str) -> None:
    assert str(read_training_choice(text)) == text


@pytest.mark.parametrize("text", ["test", "also", "all but ", "but learn"])
def test_what_is_no_choice_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not written as"):
        read_training_choice(text)


def test_tests_that_train_send_as_many_requests_as_the_training_says() -> None:
    study = parse_study(STUDY.format(said="also test"), Path("x.toml")).study
    learn, test = study.trained_on("also test")
    assert (learn.name, test.name, test.requests) == ("learn", "test", 100_000)
    assert study.trained_on("all but learn") == ()


def test_variants_are_named_by_what_trains_them() -> None:
    found = parse_study(STUDY.format(said="also test"), Path("x.toml"))
    assert found.variants[-1].name == "gcc-12-O2-pgo-trained-also-test"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("also tset", "no workload 'tset'; nearest is 'test'"),
        ("all but test", "no training workload 'test'"),
        ("tset", "is not written as 'also TEST …' or 'all but WORKLOAD …'"),
    ],
)
def test_what_is_not_there_cannot_train(said: str, told: str) -> None:
    with pytest.raises(StudyError, match=re.escape(told)):
        parse_study(STUDY.format(said=said), Path("x.toml"))


def test_a_test_of_the_name_of_a_training_workload_trains_under_its_own() -> None:
    text = STUDY.format(said="also test").replace('name = "learn"', 'name = "test"')
    study = parse_study(text, Path("x.toml")).study
    assert [each.name for each in study.trained_on("also test")] == ["test", "test-test"]
    more = text + '[[workloads]]\nname = "test-test"\nload = ["load", "{port}", "{requests}"]\n'
    study = parse_study(more, Path("x.toml")).study
    assert [each.name for each in study.trained_on("also test")] == ["test", "test-test-test"]
