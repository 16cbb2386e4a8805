"""Relinks, PGO and BOLT of libraries that a program runs with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from end_to_end.conftest import Ensign
from end_to_end.parts import write_parts
from end_to_end.small_study import ANYWAY

_BUILD = """\
mkdir lib
echo 'int more(void) { return 1; }' > more.c
$cc $cflags -fPIC -c work.c
$cc $cflags -fPIC -c more.c
$cc $cflags -fPIC -shared -o lib/libwork.so work.o more.o $ldflags
$cc $cflags -o main main.c -Llib -lwork $ldflags"""
_TRAINED = """
[training]
deadline = "20s"

[[training.workloads]]
name = "learn"
command = ["{artifact}", "7"]
"""


def results(ensign: Ensign) -> dict[str, Any]:
    done = ensign("report", "study.toml", "--json", "-")
    assert done.status == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def entries(folder: Path, name: str) -> list[Path]:
    return sorted(folder.glob(f"cache/entries/program-*/{name}"))


@pytest.mark.parametrize("other", ["", "unused"])
def test_a_library_is_relinked_with_its_program(ensign: Ensign, other: str) -> None:
    build = _BUILD
    if other:
        build += (
            "\n$cc $cflags -shared -fPIC -o lib/other.tmp more.c\ncp lib/other.tmp lib/other.so"
        )
    path = write_parts(ensign.folder, build, "main", "lib/*.so")
    path.write_text(
        path.read_text().replace('layouts = "natural"\n', "")
        + '\n[layouts]\ncount = 2\nhow = "order"\n'
    )
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    result = results(ensign)
    said = [each["text"] for each in result["findings"] if each["code"] == "not-relinked"]
    assert len(entries(ensign.folder, "layouts/*/lib/libwork.so")) >= 4
    hashes = {each.read_bytes() for each in entries(ensign.folder, "layouts/*/lib/libwork.so")}
    assert len(hashes) >= 4
    assert said == []


@pytest.mark.skipif(shutil.which("llvm-bolt-19") is None, reason="BOLT is not installed")
def test_pgo_and_bolt_reach_a_library_or_it_is_said(ensign: Ensign) -> None:
    axes = ('optimization = ["-O1", "-O2"]', 'optimization = ["-O1"]\nbolt = ["off", "on"]')
    compiler = ('compiler = ["gcc-12"]', 'compiler = ["clang-19"]')
    baseline = ('optimization = "-O1"\n\n[race]', 'bolt = "off"\n\n[race]')
    path = write_parts(ensign.folder, _BUILD, "main", "lib", changes=(axes, compiler, baseline))
    path.write_text(path.read_text() + _TRAINED)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err
    result = results(ensign)
    bolted = result["builds"][1]
    assert bolted["status"] == "built", bolted["log_tail"]
    said = [each["text"] for each in result["findings"] if each["code"] == "not-bolted"]
    libraries = entries(ensign.folder, "files/lib/libwork.so")
    laid_out = [each for each in libraries if b".note.bolt_info" in each.read_bytes()]
    assert laid_out or any("lib/libwork.so" in each for each in said)
    assert not (laid_out and said), said


_SHIP = """
[ship]
commands = [["sh", "build.sh", "{cc}", "", ""]]

[[ship.edits]]
file = "build.sh"
line = "LINE"
replace = "SHIPPED"
"""
_BY_LINE = {
    "all of it": (
        "flags=$cflags",
        "flags='{cflags}'",
        f"flags=$cflags\n{_BUILD.replace('$cflags', '$flags')}",
        0,
    ),
    "not the library": (
        "$cc $cflags -o main main.c -Llib -lwork $ldflags",
        "$cc {cflags} -o main main.c -Llib -lwork",
        _BUILD,
        1,
    ),
}


@pytest.mark.parametrize("form", _BY_LINE)
def test_a_shipped_library_is_compared_with_the_measured_one(ensign: Ensign, form: str) -> None:
    line, shipped, build, status = _BY_LINE[form]
    path = write_parts(ensign.folder, build, "main", "lib")
    path.write_text(path.read_text() + _SHIP.replace("LINE", line).replace("SHIPPED", shipped))
    assert ensign("run", "study.toml").status == 0
    done = ensign("ship", "study.toml", "gcc-12-O2", *ANYWAY, "-o", "out")
    assert done.status == status, done.err
    if status:
        assert "lib/libwork.so" in " ".join((done.err + done.out).split())
