from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.builders.build import build_variants
from ensign.builders.recorder import (
    Changes,
    Place,
    Recorded,
    compile_commands,
    read_calls,
    recorded_programs,
    set_up,
)
from ensign.builders.request import BuildPorts
from ensign.meter.client import find_meter
from ensign.model.calls import Call, Output
from ensign.toolchains.find import Toolchain
from ensign.toolchains.table import Family, Kind
from recorded import recorded
from small_studies import CLANG_LTO, GCC_O2, request


def toolchain(family: Family, cc: str) -> Toolchain:
    return Toolchain(
        name="x", kind=Kind(family, (19, 0, 0)), version_line="", cc=cc, cxx="", ar="/bin/llvm-ar",
        ranlib="/bin/llvm-ranlib", nm="/bin/llvm-nm", ld="/bin/ld.lld", linker_flag="",
        linker_version="", identity="",
    )  # fmt: skip


def test_the_variants_compiler_is_called_cc_and_plain_ar_stays_what_it_is(tmp_path: Path) -> None:
    for name in ("ar", "gcc"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    found = {
        each.name: each.program
        for each in recorded_programs(toolchain(Family.CLANG, "/opt/clang-19"), str(tmp_path))
    }
    assert found["clang-19"] == found["cc"] == found["clang"] == "/opt/clang-19"
    assert found["ar"] == str(tmp_path / "ar")
    assert found["gcc"] == str(tmp_path / "gcc")
    assert found["llvm-ar"] == "/bin/llvm-ar"
    assert "g++" not in found


def test_settings_are_what_the_recorder_reads(tmp_path: Path) -> None:
    programs = [Recorded("cc", "cc", "/usr/bin/gcc")]
    place = Place(tmp_path / "r", "/seen")
    set_up(place, Path("/bin/true"), programs, Changes(("-O3",), (), ("-g",)))
    assert (tmp_path / "r/bin/cc").readlink() == Path("../front")
    assert (tmp_path / "r/front").stat().st_mode & 0o777 == 0o555
    assert (tmp_path / "r/recorder").stat().st_mode & 0o777 == 0o111
    assert json.loads((tmp_path / "r/settings.json").read_text()) == {
        "schema": 1,
        "socket": "/seen/socket",
        "untraceable": True,
        "recorder": "/seen/recorder",
        "tools": {"cc": {"tool": "cc", "program": "/usr/bin/gcc"}},
        "compile": ["-O3"],
        "link": [],
        "remove": ["-g"],
    }


def test_calls_are_read_on_from_where_reading_ended(tmp_path: Path) -> None:
    file = tmp_path / "calls.jsonl"
    assert read_calls(file) == ()
    raw = {"tool": "cc", "program": "/cc", "argv": [], "ran": [], "cwd": "/", "wall_ns": 1,
           "started_unix_ns": 1, "outputs": [], "line": None}  # fmt: skip
    lines = [json.dumps({**raw, "exit": status}) + "\n" for status in range(3)]
    file.write_text("".join(lines[:2]))
    assert [call.exit for call in read_calls(file)] == [0, 1]
    file.write_text("".join(lines))
    assert [call.exit for call in read_calls(file, skip=2)] == [2]


def test_compile_commands_name_each_source_that_was_compiled() -> None:
    def call(*words: str, exit_status: int = 0) -> Call:
        outputs = (Output("/b/a.o", "", 1),)
        made = recorded(("cc", *words), "/b", program="/usr/bin/gcc", outputs=outputs)
        return replace(made, exit=exit_status)

    assert compile_commands(
        [
            call("-include", "b.c", "-c", "a.c"),
            call("-c", "bad.c", exit_status=1),
            call("a.o", "-o", "p"),
        ]
    ) == [
        {
            "directory": "/b",
            "file": "a.c",
            "arguments": ["/usr/bin/gcc", "-include", "b.c", "-c", "a.c"],
            "output": "/b/a.o",
        }
    ]


@pytest.mark.usefixtures("project")
def test_a_build_keeps_its_calls(tmp_path: Path, recording_ports: BuildPorts) -> None:
    report = build_variants(request(tmp_path, GCC_O2, CLANG_LTO), recording_ports)
    for result, compiler in zip(report.results, ("gcc-12", "clang-19"), strict=True):
        assert result.files is not None
        calls = read_calls(result.files.parent / "calls.jsonl")
        assert {call.argv[0] for call in calls if call.tool == "cc"} == {compiler}
        made = {output.path: call for call in calls for output in call.outputs}
        link = next(call for path, call in made.items() if path.endswith("/program"))
        assert set(result.facts.link_flags) <= set(link.argv)
        assert sum(path.endswith("/tool") for path in made) == (compiler == "gcc-12")
        before = read_calls(result.files.parent / "dependency-calls.jsonl")
        assert [call.outputs[0].path.rpartition("/")[2] for call in before] == [
            "part.o",
            "libpart.a",
        ]
        compiled = json.loads((result.files.parent / "compile_commands.json").read_text())
        assert sorted(each["file"] for each in compiled) == ["main.c", "twice.c"]


@pytest.mark.usefixtures("project")
def test_a_project_that_does_not_listen_gets_its_flags(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    deaf = [["make", "CC=cc", "program"]]
    rewrite = {"compile": ["{cflags}"], "link": ["{ldflags}"], "remove": ["-O?"]}
    report = build_variants(
        request(tmp_path, CLANG_LTO, commands=deaf, rewrite=rewrite), recording_ports
    )
    files = report.results[0].files
    assert files is not None
    calls = read_calls(files.parent / "calls.jsonl")
    compiled = [call for call in calls if "-c" in call.ran]
    assert compiled
    assert all({"-O3", "-flto"} <= set(call.ran) for call in compiled)
    assert {call.program.rsplit("/", 1)[-1] for call in compiled} == {"clang-19"}
    assert find_meter().exists()
