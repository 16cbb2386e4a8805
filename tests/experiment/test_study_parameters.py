"""Workloads with a parameter, as they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.experiment.study_file import StudyFile, parse_study
from ensign.model.curves import AskedCurve
from ensign.model.errors import StudyError
from ensign.model.study_workload import asked_curves

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
same_output = ["fill", "last"]

[[workloads]]
name = "fill"
parameter = { name = "size", values = [1, 64.5], unit = "B", also = { count = [9, 7] } }
command = ["{artifact}", "{size}", "-n{count}", "{{size}}"]
env = { SIZE = "{size}" }
operations = "{count}"

[[workloads]]
name = "last"
command = ["{artifact}"]
"""
COMMAND = """\
command = ["{artifact}", "{size}", "-n{count}", "{{size}}"]
env = { SIZE = "{size}" }
operations = "{count}"
"""
DRIVE = """\
[workloads.drive]
connections = "{size}"
commands = [{ argv = ["GET", "{key}"], keys = { last = "{count}" } }]
"""
FIRST = '[[workloads]]\nname = "fill"\n'
LAST = '[[workloads]]\nname = "last"\n'


def read(*changes: tuple[str, str]) -> StudyFile:
    text = STUDY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return parse_study(text, Path("s.toml"))


def test_each_value_is_a_workload_in_which_placeholders_stand_for_it() -> None:
    first, second, _ = read().study.workloads
    assert (first.name, second.name) == ("fill-1", "fill-64.5")
    assert first.command == ["{artifact}", "1", "-n9", "{{size}}"]
    assert second.command == ["{artifact}", "64.5", "-n7", "{{size}}"]
    assert (first.env, second.env) == ({"SIZE": "1"}, {"SIZE": "64.5"})
    assert (first.operations, second.operations) == (9, 7)


def test_a_key_that_is_a_placeholder_is_a_number() -> None:
    served = '[race]\nmode = "alternating"\n\n[server]\ncommand = ["{artifact}", "{port}"]\n\n'
    server = (FIRST, f"{served}{FIRST}")
    unchecked = ('[check]\nsame_output = ["fill", "last"]\n', "")
    whole = ("values = [1, 64.5]", "values = [1, 64]")
    file = read(server, unchecked, whole, (COMMAND, DRIVE))
    drives = [each.drive for each in file.study.workloads if each.drive is not None]
    assert [each.connections for each in drives] == [1, 64]
    assert [each.commands[0].keys.last for each in drives if each.commands[0].keys] == [9, 7]


def test_its_name_means_all_of_it() -> None:
    file = read()
    assert file.study.check is not None
    assert file.study.check.same_output == ["fill-1", "fill-64.5", "last"]
    chosen = file.with_workloads(["fill"]).study.workloads
    assert [each.name for each in chosen] == ["fill-1", "fill-64.5"]


def test_a_study_has_its_curves() -> None:
    expected = AskedCurve("fill", "size", "B", (1, 64.5), ("fill-1", "fill-64.5"))
    assert asked_curves(read().study.workloads) == (expected,)


def test_workloads_of_one_curve() -> None:
    more = '[[workloads]]\nname = "large"\nparameter = { name = "size", values = [99], unit = "B", '
    more += 'curve = "fill" }\ncommand = ["{artifact}", "{size}"]\n\n' + LAST
    file = read((LAST, more))
    (curve,) = asked_curves(file.study.workloads)
    assert curve.workloads == ("fill-1", "fill-64.5", "large-99")
    with pytest.raises(StudyError, match="'fill-1' and 'large-1' are the same point"):
        read((LAST, more.replace("[99]", "[1]")))


def test_what_it_is_called_does_not_count_as_what_it_runs() -> None:
    one, other = read(), read(('unit = "B"', 'unit = "bytes"'))
    assert one.study.workloads[0].identity == other.study.workloads[0].identity


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        (("[1, 64.5]", "[64.5, 1]"), 22, "must rise"),
        (("[1, 64.5]", "[]"), 22, "at least 1 item"),
        (("[1, 64.5]", '["1"]'), 22, "is not a whole number|is not a number"),
        (("[9, 7]", "[9]"), 22, "count has 1 for 2 values"),
        (('name = "size"', 'name = "port"'), 22, "means something already"),
        (('name = "size"', 'name = "Size"'), 22, "small letters"),
        (('unit = "B"', 'units = "B"'), 22, "nearest is 'unit'"),
        (('"-n{count}"', '"-n{counts}"'), 23, "{counts} is unknown"),
        (('env = { SIZE = "{size}" }', "expected = 3"), 24, "'expected'"),
        ((LAST, LAST.replace("name", "names")), 28, "number 2"),
    ],
)
def test_mistakes_are_told_once_with_their_line(
    change: tuple[str, str], line: int, said: str
) -> None:
    with pytest.raises(StudyError, match=said) as caught:
        read(change)
    assert caught.value.line == line
    if line < 28:
        assert str(caught.value).count("\n") <= 1
