from __future__ import annotations

import pytest

from ensign.toolchains.driver_line import (
    input_words,
    links,
    output_of,
    places_of_files,
    sources,
    without_output,
)


def test_words_of_a_link_line() -> None:
    line = (
        "cc -O2 -Lx -L y main.o -Wl,--whole-archive liba.a -Wl,--no-whole-archive -Wl,-Bstatic "
        "-lz -Wl,-Bdynamic -Wl,--start-group -lm -Wl,--end-group -Xlinker -z -Xlinker now -o out"
    )
    argv = line.split()
    words = input_words(argv)
    assert [word.text for word in words] == ["main.o", "liba.a", "-lz", "-lm"]
    assert [word.whole for word in words] == [False, True, False, False]
    assert [word.static for word in words] == [False, False, True, False]
    assert [word.grouped for word in words] == [False, False, False, True]
    assert words[2].folders == ("x", "y")
    assert output_of(argv) == "out"


@pytest.mark.parametrize(
    "output", [("-o", "out"), ("-oout",), ("--output=out",)], ids=["apart", "joined", "long"]
)
def test_an_output_is_known_however_it_is_spelled(output: tuple[str, ...]) -> None:
    line = ("cc", "-O2", *output, "main.o")
    assert output_of(line) == "out"
    assert tuple(without_output(line)) == ("cc", "-O2", "main.o")


def test_without_an_output_nothing_is_left_out() -> None:
    line = ("cc", "-object", "main.o", "-o")
    assert output_of(line) == ""
    assert tuple(without_output(line)) == line[:-1]


def test_values_of_options_are_no_files() -> None:
    before = ("-include", "a.c", "-MF", "b.c", "-B", "c.o", "-dumpdir", "d.o")
    words = (*before, "main.c", "-Xclang", "e.c", "f.o", "-l", "g.o")
    assert [words[at] for at in places_of_files(words)] == ["main.c", "f.o"]
    assert sources(("cc", *words)) == ("main.c",)


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
    assert links(line.split()) is expected
