"""Which commands are the same program on the same input, by canned traces and real files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ensign.experiment.compare.commands import command_variants
from ensign.experiment.compare.options import Options
from ensign.experiment.compare.tracing import (
    SamePrograms,
    content_of,
    may_be_same,
    own_input,
    same_programs,
)
from ensign.experiment.tracing import Identities
from ensign.model.traced_execution import MappedFile, TracedExecution

RAN = TracedExecution((MappedFile("/prog", "x"),), (), 0, 1, 1, "")
CONTENTS = {"/old/data": "1", "/new/data": "1", "/new/other": "2", "/dark": ""}


def judged(*read: tuple[str, ...], options: Options | None = None) -> SamePrograms:
    """Commands that run the same program and read these files."""
    options = options or Options(commands=tuple(f"./{index}" for index in range(len(read))))
    commands = command_variants(options)
    seen = {
        command.variant: replace(RAN, read=paths)
        for command, paths in zip(commands, read, strict=True)
    }
    return same_programs(commands, seen, lambda path: CONTENTS.get(path, path))


def test_files_of_equal_content_are_the_same_wherever_they_lie() -> None:
    found = judged(("/etc/common", "/old/data"), ("/etc/common", "/new/data"))
    assert found.of == {"2": "1"}
    assert [each.code for each in found.findings] == ["same-bytes"]


def test_other_files_are_named() -> None:
    found = judged(("/old/data",), ("/new/other",), ("/old/data", "/dark"))
    assert found.of == {}
    assert [each.code for each in found.findings] == ["same-program"] * 2
    assert "they read other files: /new/other, /old/data" in found.findings[0].text
    assert "/dark" in found.findings[1].text


def test_a_file_that_one_reads_besides_is_another_input() -> None:
    assert judged(("/old/data",), ("/new/data", "/new/other")).of == {}
    assert judged(("/old/data",), ()).of == {}


def test_what_is_run_around_them_may_make_another_input() -> None:
    options = Options(commands=("./a", "./a"), prepare=("touch a", "touch b"))
    found = judged((), (), options=options)
    assert found.of == {}
    assert "--prepare differs" in found.findings[0].text


@pytest.mark.parametrize(
    "options",
    [{"input": "in-{variant}"}, {"env": ("DATA={variant}",)}, {"prepare": ("cp {variant} in",)}],
)
def test_an_input_of_its_own_is_another(options: dict[str, Any]) -> None:
    plain = Options(commands=("/bin/true", "/bin/true"))
    commands = command_variants(plain)
    assert may_be_same(plain, commands, Identities())
    own = replace(plain, **options)
    assert not may_be_same(own, commands, Identities())
    found = same_programs(commands, {"1": RAN, "2": RAN}, str, own_input(own))
    assert (found.of, found.findings[0].code) == ({}, "same-program")
    assert "by {variant}" in found.findings[0].text


def test_files_that_a_program_wrote_itself_are_not_its_input() -> None:
    commands = command_variants(Options(commands=("./a", "./b")))
    first = replace(RAN, read=("/tmp/x1",), written=("/tmp/x1",))  # noqa: S108
    second = replace(RAN, read=("/tmp/x2",), written=("/tmp/x2",))  # noqa: S108
    assert same_programs(commands, {"1": first, "2": second}, str).of == {"2": "1"}
    in_part = replace(second, read_in_part=True)
    assert same_programs(commands, {"1": first, "2": in_part}, str).of == {}


def test_what_was_not_seen_in_full_is_not_the_same_as_anything() -> None:
    commands = command_variants(Options(commands=("./a", "./b")))
    dark = replace(RAN, not_judged="dark")
    assert same_programs(commands, {"1": dark, "2": dark}, str) == SamePrograms({})


def test_scripts_with_other_bytes_do_not_look_the_same(tmp_path: Path) -> None:
    for name, text in (("a", "#!/bin/sh\n"), ("b", "#!/bin/sh\n"), ("c", "#!/bin/sh\ntrue\n")):
        (tmp_path / name).write_text(text)
    identities = Identities()

    def pair(first: str, second: str) -> bool:
        options = Options(commands=(f"{tmp_path}/{first}", f"{tmp_path}/{second}"))
        return may_be_same(options, command_variants(options), identities)

    assert pair("a", "b")
    assert not pair("a", "c")
    assert not pair("a", "b x")
    assert not pair("a", "gone")


def test_a_folder_is_what_it_lists(tmp_path: Path) -> None:
    for folder, names in (("one", "ab"), ("two", "ba"), ("three", "abc")):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).touch()
    identities = Identities()
    one, two, three = (
        content_of(str(tmp_path / name), identities) for name in ("one", "two", "three")
    )
    assert one == two != three
    assert content_of(str(tmp_path / "gone"), identities) == ""
