"""Command lines as the recorder reads them, of calls that it did not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.meter.client import find_meter
from ensign.meter.questions import calls_of, command_line
from ensign.model.calls import AskedCall, CommandLine, LinkWord
from ensign.model.errors import InternalError
from recorded import recorded


def test_words_of_a_link_line() -> None:
    line = (
        "cc -O2 -Lx -L y main.o -Wl,--whole-archive liba.a -Wl,--no-whole-archive -Wl,-Bstatic "
        "-lz -Wl,-Bdynamic -Wl,--start-group -lm -Wl,--end-group -Xlinker -z -Xlinker now -o out"
    )
    read = recorded(line.split(), "/b").line
    assert [word.text for word in read.inputs] == ["main.o", "liba.a", "-lz", "-lm"]
    assert [word.whole for word in read.inputs] == [False, True, False, False]
    assert [word.static for word in read.inputs] == [False, False, True, False]
    assert [word.grouped for word in read.inputs] == [False, False, False, True]
    assert read.folders == ("x", "y")
    assert read.output == "out"


@pytest.mark.parametrize(
    "output", [("-o", "out"), ("-oout",), ("--output=out",)], ids=["apart", "joined", "long"]
)
def test_an_output_is_known_however_it_is_spelled(output: tuple[str, ...]) -> None:
    call = recorded(("cc", "-O2", *output, "main.o"), "/b")
    assert call.line.output == "out"
    assert call.words_without_output() == ("-O2", "main.o")


def test_without_an_output_nothing_is_left_out() -> None:
    call = recorded(("cc", "-object", "main.o", "-o"), "/b")
    assert call.line.output is None
    assert call.words_without_output() == ("-object", "main.o")


def test_values_of_options_are_no_files() -> None:
    before = ("-include", "a.c", "-MF", "b.c", "-B", "c.o", "-dumpdir", "d.o")
    words = (*before, "main.c", "-Xclang", "e.c", "f.o", "-l", "g.o")
    line = recorded(("cc", *words), "/b").line
    assert [words[at] for at in line.files] == ["main.c", "f.o"]
    assert line.sources == ("main.c",)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cc main.c", True),
        ("cc main.o -lm", True),
        ("cc -c main.c", False),
        ("cc -E main.c", False),
        ("cc --version", False),
        ("cc -o out", False),
    ],
)
def test_a_link_has_something_to_link(line: str, *, expected: bool) -> None:
    assert recorded(line.split(), "/b").line.links is expected


def test_calls_say_what_they_would_write() -> None:
    compiled, archived = calls_of(
        find_meter(),
        [
            AskedCall("cc", ("gcc", "-c", "../a.c", "b.c"), "/b/sub"),
            AskedCall("ar", ("ar", "rcs", "lib.a", "a.o"), "/b"),
        ],
    )
    assert [each.path for each in compiled.outputs] == ["/b/sub/a.o", "/b/sub/b.o"]
    assert (archived.outputs, archived.line) == ((), CommandLine())


def test_a_record_without_a_line_says_nothing() -> None:
    assert command_line(None) == CommandLine()
    with pytest.raises(ValueError, match="links"):
        command_line({"links": "perhaps"})


def test_a_line_with_other_paths() -> None:
    line = recorded(("cc", "/x/a.c", "/x/b.o", "-L/x", "-lm", "-o", "/x/p"), "/x").line
    there = line.with_paths(lambda text: text.replace("/x", "/y"))
    assert (there.output, there.sources, there.folders) == ("/y/p", ("/y/a.c",), ("/y",))
    assert there.inputs == (LinkWord("/y/b.o"), LinkWord("-lm"))


def test_a_meter_that_does_not_answer_is_a_fault_of_the_installation() -> None:
    with pytest.raises(InternalError, match="make setup"):
        calls_of(Path("/bin/true"), [AskedCall("cc", ("cc", "a.c"), "/b")])
