"""Made-up files are what their names say, and larger where more is asked for. Pure."""

from __future__ import annotations

import csv
import io
import json
import plistlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ensign.tools.init.attempts import INPUT, Executable
from ensign.tools.init.documented_commands import Shown, shown_attempts
from ensign.tools.init.made_samples import (
    FORMATS,
    formats_of_name,
    is_made_whole,
    made_content,
    made_sample,
    made_samples,
)


def of_intel_hex(content: bytes) -> int:
    lines = content.decode().split()
    for line in lines:
        assert sum(bytes.fromhex(line[1:])) % 256 == 0
    assert lines[-1] == ":00000001FF"
    return len(lines)


def of_obj(content: bytes) -> int:
    lines = [line.split() for line in content.decode().splitlines()]
    points = sum(line[0] == "v" for line in lines)
    corners = [int(each) for line in lines if line[0] == "f" for each in line[1:]]
    assert min(corners) == 1
    assert max(corners) == points
    return points


def of_mps(content: bytes) -> int:
    """The rows; each has a demand and is covered by some column."""
    sections: dict[str, list[list[str]]] = {}
    name = ""
    for line in content.decode().splitlines():
        if line.startswith(" "):
            sections[name].append(line.split())
        else:
            name = line.split()[0]
            sections[name] = []
    rows = {words[1] for words in sections["ROWS"] if words[0] == "G"}
    assert {words[1] for words in sections["COLUMNS"]} == {*rows, "COST"}
    assert {words[1] for words in sections["RHS"]} == rows
    return len(rows)


READERS: dict[str, Callable[[bytes], int]] = {
    "json": lambda content: len(json.loads(content)),
    "csv": lambda content: len(list(csv.reader(io.StringIO(content.decode())))),
    "plist": lambda content: len(plistlib.loads(content)),
    "xml": lambda content: len(ET.fromstring(content)),  # noqa: S314
    "hex": of_intel_hex,
    "obj": of_obj,
    "mps": of_mps,
}


@pytest.mark.parametrize("suffix", READERS)
def test_a_made_file_is_what_its_name_says(suffix: str) -> None:
    assert READERS[suffix](made_content(suffix, 1)) >= 50


@pytest.mark.parametrize(
    ("suffix", "reader"), [("awk", ("awk", "-f")), ("c", ("gcc", "-fsyntax-only"))]
)
def test_a_made_program_is_one(tmp_path: Path, suffix: str, reader: tuple[str, ...]) -> None:
    file = tmp_path / f"made.{suffix}"
    file.write_bytes(made_content(suffix, 1))
    done = subprocess.run([*reader, file], check=False, capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("suffix", FORMATS)
def test_there_is_more_of_it_where_more_is_asked_for_and_always_the_same(suffix: str) -> None:
    once, more = made_content(suffix, 1), made_content(suffix, 2)
    assert made_content(suffix, 1) == once
    assert made_sample(suffix).size_bytes == len(once)
    assert len(more) > 1.8 * len(once)


def test_formats_are_those_that_a_text_names() -> None:
    def named(text: str) -> list[str]:
        return [each.made for each in made_samples(text, 9)]

    assert named("Usage: mesh [options] -i FILE.obj; also reads .json files") == ["obj", "json"]
    assert named("a disassembler; reads Intel HEX on its standard input") == ["hex"]
    assert named("objects, jsonnet, c, a. md5") == []
    assert named("compiles foo.c") == ["c"]
    assert len(made_samples("json xml csv", 2)) == 2


def test_a_program_may_be_called_like_what_it_reads() -> None:
    assert formats_of_name("jsonlint") == ["json"]
    assert formats_of_name("mawk") == ["awk"]
    assert formats_of_name("csv2json") == ["json", "csv"]
    assert formats_of_name("cat") == []


def test_large_files_are_made_of_formats_of_which_copies_are_no_file() -> None:
    assert [is_made_whole(each) for each in (".mps", ".json", ".txt", ".gz", ".emf", "")] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_a_command_that_names_a_file_of_a_kind_that_the_tree_has_not_gets_a_made_one() -> None:
    shown = Shown(("-i", INPUT), suffix=".obj")
    found = list(shown_attempts(shown, Executable("mesh"), [], []))
    assert [each.sample and each.sample.made for each in found] == ["obj"]
