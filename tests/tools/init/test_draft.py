"""The text of a first study is one that the parser takes, whatever names are in it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensign.experiment.study_file import parse_study
from ensign.tools.init.draft import Draft, DraftWorkload, draft_text, study_name

WORKLOAD = DraftWorkload("work", ("{artifact}", "-c", "{input}"), "ensign-input", "Seen.")


def draft(**more: object) -> Draft:
    said = {"name": "pack", "system": "cmake", "artifact": "ensign-build/pack",
            "compilers": ("gcc-12", "clang-19"), "workload": WORKLOAD}  # fmt: skip
    return Draft(**{**said, **more})  # type: ignore[arg-type]


def test_it_runs_as_it_is() -> None:
    file = parse_study(draft_text(draft(exclude=("ensign-input",)), "ensign.toml"), Path("x.toml"))
    names = [each.name for each in file.variants]
    assert names == ["gcc-12-O2", "clang-19-O2", "gcc-12-O3", "gcc-12-O2-lto"]
    assert file.study.build.artifact == "ensign-build/pack"
    assert file.study.workloads[0].command == ["{artifact}", "-c", "ensign-input"]
    assert file.study.race.budget == "20s"


def test_keys_of_the_build_system_are_said() -> None:
    text = draft_text(draft(system="make", artifact="pack", keys={"flags_by": "recorder"}), "a")
    assert parse_study(text, Path("x.toml")).study.build.flags_by == "recorder"


@given(st.text(max_size=40))
def test_any_folder_gives_a_name(text: str) -> None:
    name = study_name(text)
    assert parse_study(draft_text(draft(name=name), "a"), Path("x.toml")).study.name == name


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40))
def test_any_word_of_a_command_is_written_as_it_is(word: str) -> None:
    text = draft_text(draft(workload=DraftWorkload("work", ("{artifact}", word))), "a")
    assert tomllib.loads(text)["workloads"][0]["command"] == ["{artifact}", word]


@pytest.mark.parametrize("note", ["one", "two\nlines", "a\rb"])
def test_a_note_never_becomes_a_key(note: str) -> None:
    keys = tomllib.loads(draft_text(draft(notes=(note,)), "a")).keys()
    assert keys == tomllib.loads(draft_text(draft(), "a")).keys()
