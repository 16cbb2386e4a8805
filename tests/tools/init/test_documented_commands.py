"""What a project shows its users is found, and prose is not taken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensign.tools.init.attempts import INPUT, OUTPUT, Executable, Sample
from ensign.tools.init.documented_commands import (
    Shown,
    choices_of,
    is_manual_of,
    options_of,
    plain_text,
    shown_attempts,
    shown_commands,
)

FILES = ("data/real.emf", "README.md", "pack.c")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            "    pack -i in.emf -o out.svg",
            Shown(("-i", INPUT, "-o", f"{OUTPUT}.svg"), suffix=".emf"),
        ),
        ("$ ./pack -z < some.txt", Shown(("-z",), reads_input=True, suffix=".txt")),
        ("zcat x.gz | pack -c 'a b'", Shown(("-c", "a b"), reads_input=True)),
        ("Usage: pack [OPTIONS] -i FILE", Shown(("-i", INPUT))),
        ("  build/pack --all real.emf 2>&1", Shown(("--all", INPUT), suffix=".emf", path=FILES[0])),
        ("`pack -e '{print $1}' in.txt`", Shown(("-e", "{print $1}", INPUT), suffix=".txt")),
        ("pack -x in.txt > result", Shown(("-x", INPUT), suffix=".txt")),
    ],
)
def test_commands_are_found(line: str, shown: Shown) -> None:
    assert shown_commands(line, "pack", FILES) == [shown]


@pytest.mark.parametrize(
    "line",
    [
        "pack is a program that packs files.",
        "Run pack -z to compress",
        "pack - compress files",
        "pack --help",
        "unpack -z file.txt",
        "pack 'no end",
        "pack",
    ],
)
def test_prose_and_help_are_not(line: str) -> None:
    assert shown_commands(line, "pack", FILES) == []


def test_a_manual_is_read_without_its_markup() -> None:
    page = ".TH PACK 1\n.SH EXAMPLES\n.B pack \\-z\n.I in.txt\n.PP\n\\fBpack \\-d \\fIin.pk\\fR\n"
    assert "pack -d in.pk" in plain_text(page)
    assert Shown(("-d", INPUT), suffix=".pk") in shown_commands(page, "pack", FILES)
    assert is_manual_of("doc/pack.1", "pack")
    assert not is_manual_of("doc/pack.c", "pack")


def test_options_are_those_of_the_help_that_do_something() -> None:
    said = "Usage: pack [-z] [--level N]\n  -h, --help  this\n  -o FILE\n  -V, --version\n  -\n"
    assert options_of(said) == ["-z", "--level", "-o"]


def test_words_to_choose_from_are_found_in_a_help() -> None:
    said = (
        "Usage: pack <COMMAND>\n\nCommands:\n  squeeze   makes it small\n  help  this\n\n  a  b\n"
    )
    assert choices_of(said) == ["squeeze"]
    assert choices_of("the program | reads") == []


def test_a_made_up_name_stands_for_files_of_its_kind() -> None:
    program = Executable("pack")
    best, emf = Sample("big.txt", 9), Sample("data/real.emf", 5)
    shown = Shown(("-i", INPUT), suffix=".emf")
    assert [each.sample for each in shown_attempts(shown, program, [best], [best, emf])] == [emf]
    unknown = Shown(("-i", INPUT), suffix=".qqq")
    assert [each.sample for each in shown_attempts(unknown, program, [best], [best, emf])] == [best]


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    for shown in shown_commands(f"pack {text}\n$ pack -{text}", "pack", FILES):
        assert all("\x00" not in word or "\x00" in text for word in shown.words)


def test_a_sentence_after_a_command_is_no_part_of_it() -> None:
    text = "clp model.mps -primalsimplex would use primal instead"
    assert [each.words for each in shown_commands(text, "clp", [])] == [(INPUT, "-primalsimplex")]
    text = "git-like add remote origin"
    assert [each.words for each in shown_commands(text, "git-like", [])] == []
