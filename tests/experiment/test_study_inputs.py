"""Workloads with several inputs, as they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.experiment.study_file import StudyFile, parse_study
from ensign.model.errors import StudyError

STUDY = """\
name = "s"

[source]
kind = "path"
path = "."

[build]
commands = [["make"]]
artifact = "program"

[axes]
compiler = ["gcc-12"]

[baseline]
compiler = "gcc-12"

[check]
same_output = ["parse"]

[[workloads]]
name = "first"
command = ["{artifact}"]

[[workloads]]
name = "parse"
command = ["{artifact}", "--file={input}", "{artifact_dir}/x", "{{input}}"]
input = ["in/A b.json", "in/c.json"]

[[workloads]]
name = "last"
command = ["{artifact}"]
"""
INPUTS = 'input = ["in/A b.json", "in/c.json"]'


def read(*changes: tuple[str, str]) -> StudyFile:
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_study(text, Path("s.toml"))


def test_each_input_is_a_workload() -> None:
    study = read().study
    assert [each.name for each in study.workloads] == [
        "first", "parse-a-b.json", "parse-c.json", "last",
    ]  # fmt: skip
    second = study.workloads[1]
    assert second.command == ["{artifact}", "--file=in/A b.json", "{artifact_dir}/x", "{{input}}"]
    assert second.stdin is None
    assert study.check is not None
    assert study.check.same_output == ["parse-a-b.json", "parse-c.json"]


def test_inputs_that_no_command_names_are_standard_input() -> None:
    study = read(("--file={input}", "-")).study
    assert [each.stdin for each in study.workloads] == [None, "in/A b.json", "in/c.json", None]


def test_one_input_changes_no_name() -> None:
    study = read((INPUTS, 'input = "in/c.json"')).study
    assert study.workloads[1].name == "parse"
    assert study.workloads[1].command is not None
    assert study.workloads[1].command[1] == "--file=in/c.json"


def test_files_of_one_name_are_called_by_their_paths() -> None:
    study = read((INPUTS, 'input = ["a/x.json", "b/x.json"]')).study
    assert [each.name for each in study.workloads][1:3] == ["parse-a-x.json", "parse-b-x.json"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (INPUTS, 'input = ["A.json", "a.json"]', "two inputs make the name 'parse-a.json'"),
        (INPUTS, "input = []", "'input': give a file, or a list of files"),
        (INPUTS, "input = 3", "'input': give a file, or a list of files"),
        (INPUTS, "", "'command': placeholder {input} is not known here"),
        (INPUTS, f'{INPUTS}\nenv = {{ A = "{{nix}}" }}', "'A': placeholder {nix} is unknown"),
        ('"last"\ncommand = ["{artifact}"]', '"last"\ncommand = ["x"]', "'last' has no {artifact}"),
    ],
)
def test_mistakes_have_their_line_once(old: str, new: str, said: str) -> None:
    with pytest.raises(StudyError) as raised:
        read((old, new))
    (line,) = str(raised.value).splitlines()
    assert said in line
    lines = STUDY.replace(old, new).splitlines()
    table = 29 if "last" not in old else 34
    number = int(line.split(":")[1])
    assert number in range(table - 6, len(lines) + 1)
    if "last" in old:
        assert lines[number - 1] == 'command = ["x"]'


def test_names_that_meet_others_are_found() -> None:
    with pytest.raises(StudyError, match=r"two workloads are called 'parse-c\.json'"):
        read(('"first"', '"parse-c.json"'))


def test_names_in_lists_keep_their_lines() -> None:
    old = 'same_output = ["parse"]'
    with pytest.raises(StudyError) as raised:
        read((old, 'same_output = [\n  "parse",\n  "nix",\n  "last",\n]'))
    said = str(raised.value)
    assert said.startswith("s.toml:20: 'same_output': no workload is called 'nix'"), said


def test_an_input_of_a_load_must_be_named() -> None:
    server = '[server]\ncommand = ["{artifact}", "{port}"]\n\n[[workloads]]\nname = "first"\n'
    old = '[[workloads]]\nname = "first"\ncommand = ["{artifact}"]\n'
    load = 'load = ["wrk", "{port}", "{requests}"]\ninput = "f"\n'
    with pytest.raises(StudyError, match=r"write \{input\} where 'load' is to get its path"):
        read((old, server + load))
    study = read((old, server + load.replace("wrk", "wrk{input}"))).study
    assert study.workloads[0].load is not None
    assert study.workloads[0].load[0] == "wrkf"
