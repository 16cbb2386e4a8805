"""Start-up code of links with -ffast-math is seen, and code that sets the same bits is not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ensign.model.finding_kinds.proof import FAST_MATH_START
from ensign.proof.fast_math import links_fast_math
from ensign.tools.doctor.inspect_program import examine_program
from real_processes import PlainProcesses

SOURCE = "int f(int c) { return c + 1; }\nint main(int c, char **v) { (void)v; return f(c); }\n"
SETS_ITSELF = """
#include <xmmintrin.h>
void quick(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
__attribute__((constructor)) void first(void) { quick(); }
int main(void) { quick(); return 0; }
"""
LINKERS = [each for each in ("bfd", "gold", "lld", "mold") if shutil.which(f"ld.{each}")]


def built(folder: Path, *flags: str, source: str = SOURCE, compiler: str = "gcc-12") -> Path:
    (folder / "m.c").write_text(source)
    subprocess.run([compiler, "m.c", "-o", "app", *flags], cwd=folder, check=True)
    return folder / "app"


@pytest.mark.parametrize("way", [(), ("-static",), ("-no-pie",), ("-shared", "-fPIC"), ("-O2",)])
def test_it_is_seen_in_stripped_files(tmp_path: Path, way: tuple[str, ...]) -> None:
    assert links_fast_math(built(tmp_path, "-s", "-ffast-math", *way))
    assert not links_fast_math(built(tmp_path, "-s", *way))


@pytest.mark.parametrize("linker", LINKERS)
def test_whatever_linked_it(tmp_path: Path, linker: str) -> None:
    path = built(tmp_path, "-s", f"-fuse-ld={linker}", "-ffast-math")
    assert links_fast_math(path)


def test_compiled_so_and_linked_without(tmp_path: Path) -> None:
    built(tmp_path, "-c", "-O2", "-ffast-math")
    subprocess.run(["gcc-12", "-x", "none", "app", "-o", "linked"], cwd=tmp_path, check=True)
    assert not links_fast_math(tmp_path / "linked")


def test_a_function_that_sets_the_bits_is_no_start_up_code(tmp_path: Path) -> None:
    assert not links_fast_math(built(tmp_path, "-O1", "-fno-inline", source=SETS_ITSELF))


def test_doctor_says_so(tmp_path: Path) -> None:
    found = examine_program(built(tmp_path, "-shared", "-fPIC", "-ffast-math"), PlainProcesses())
    texts = [each.text for each in found.findings if each.is_a(FAST_MATH_START)]
    assert len(texts) == 1
    assert "also in programs that load it" in texts[0]
    found = examine_program(built(tmp_path), PlainProcesses())
    assert not [each for each in found.findings if each.is_a(FAST_MATH_START)]


def test_damaged_files_have_none(tmp_path: Path) -> None:
    data = built(tmp_path, "-ffast-math").read_bytes()
    for size in range(0, len(data), 1499):
        (tmp_path / "cut").write_bytes(data[:size])
        links_fast_math(tmp_path / "cut")  # raises nothing
    (tmp_path / "cut").write_bytes(b"\x7fELF")
    assert not links_fast_math(tmp_path / "cut")
