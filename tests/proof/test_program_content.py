"""Equal programs by what runs, whatever build-ids, symbols and debug information they carry."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ensign.proof.loaded_bytes import content_sha256

SOURCE = """
#include <stdio.h>
int table[4] = {1, 2, 3, 4};
int main(int argc, char **argv) { printf("%d\\n", table[argc & 3]); return 0; }
"""


def build(folder: Path, name: str, *options: str, source: str = SOURCE) -> Path:
    (folder / "p.c").write_text(source)
    subprocess.run(["gcc", "-O2", *options, "-o", name, "p.c"], cwd=folder, check=True, timeout=60)
    return folder / name


@pytest.mark.parametrize(
    "options",
    [
        ("-g",),
        ("-s",),
        ("-Wl,--build-id=none",),
        ("-Wl,--build-id=uuid",),
        ("-Wl,--build-id=0xdeadbeef",),
    ],
)
def test_what_does_not_run_makes_no_other_program(tmp_path: Path, options: tuple[str, ...]) -> None:
    plain = content_sha256(build(tmp_path, "plain"))
    assert plain
    assert content_sha256(build(tmp_path, "other", *options)) == plain
    exported = content_sha256(build(tmp_path, "exported", "-rdynamic"))
    assert content_sha256(build(tmp_path, "both", "-rdynamic", *options)) == exported != plain


@pytest.mark.parametrize(
    ("options", "source"),
    [
        ((), SOURCE.replace("{1, 2", "{2, 1")),
        ((), SOURCE.replace("%d", "%x")),
        ((), SOURCE.replace("& 3", "& 1")),
        (("-Wl,-z,now",), SOURCE),
        (("-no-pie",), SOURCE),
        (("-Wl,-rpath,/opt",), SOURCE),
        (("-Wl,-z,execstack",), SOURCE),
        (("-Wl,--section-start=.text=0x4000",), SOURCE),
    ],
)
def test_what_runs_or_is_read_makes_another(
    tmp_path: Path, options: tuple[str, ...], source: str
) -> None:
    plain = content_sha256(build(tmp_path, "plain"))
    assert content_sha256(build(tmp_path, "other", *options, source=source)) != plain


def test_what_is_no_program_cannot_tell(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    assert content_sha256(tmp_path / "text") == ""
    assert content_sha256(tmp_path / "gone") == ""
