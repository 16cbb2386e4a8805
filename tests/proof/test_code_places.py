"""Where functions begin, in files that compilers made with and without an alignment."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ensign.model.variants import Variant
from ensign.proof.bounded_elf import elf_of
from ensign.proof.elf import code_places, read_binary
from ensign.proof.evidence import BuildEvidence, Request
from ensign.proof.facts import Binary, CodePlaces, Proof
from ensign.proof.rules.artifact import artifact_findings
from ensign.proof.rules.description import describe
from ensign.toolchains.table import Flags

SOURCE = "".join(
    f"__attribute__((used)) int f{at}(int x) {{ return x * {at + 3} + {at}; }}\n" for at in range(9)
)
MAIN = "int main(int n, char **v) { (void)v; return f1(n) & 1; }\n"


def compiled(tmp_path: Path, compiler: str, *flags: str) -> Path:
    (tmp_path / "program.c").write_text(SOURCE + MAIN)
    command = [compiler, "-O2", *flags, "program.c", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return tmp_path / "program"


@pytest.mark.parametrize("compiler", ["gcc-12", "clang-19"])
@pytest.mark.parametrize("lto", [(), ("-flto",)])
def test_functions_of_a_program_begin_where_they_were_asked_to(
    compiler: str, lto: tuple[str, ...], tmp_path: Path
) -> None:
    flags = (*lto, *(("-fuse-ld=lld",) if compiler == "clang-19" else ()), "-fno-inline")
    before = read_binary(compiled(tmp_path, compiler, *flags))
    after = read_binary(compiled(tmp_path, compiler, *flags, "-falign-functions=64"))
    assert before is not None
    assert after is not None
    assert 0 < before.places.strictest < 64
    assert after.places.strictest == 64
    assert after.places.aligned > before.places.aligned


@pytest.mark.parametrize("bits", ["-m64", "-m32"])
def test_symbols_of_both_widths_are_read(bits: str, tmp_path: Path) -> None:
    made = compiled(tmp_path, "gcc-12", bits, "-c", "-falign-functions=64")
    with elf_of(made) as elf:
        assert code_places(elf) == CodePlaces(functions=10, aligned=10, strictest=64)


def seen(binary: Binary, alignment: str, file: str = "") -> BuildEvidence:
    request = Request(Variant("v", "gcc-12", "-O2", alignment=alignment), Flags((), ()))
    return BuildEvidence("v", Proof(binary), request, file=file)


def codes(binary: Binary, alignment: str = "functions", file: str = "") -> list[str]:
    return [each.code for each in artifact_findings(seen(binary, alignment, file))]


def test_a_program_without_an_aligned_section_shows_no_trace() -> None:
    binary = Binary("p", read=True, places=CodePlaces(200, 50, 16))
    assert codes(binary) == codes(binary, "loops") == ["alignment-without-effect"]
    assert codes(binary, "default") == []
    assert codes(Binary("p")) == []
    assert codes(binary, file="lib.so") == [], "nothing is known to be compiled here"


def test_code_that_a_profile_calls_cold_need_not_be_aligned() -> None:
    binary = Binary("p", read=True, places=CodePlaces(200, 90, 64))
    assert codes(binary) == []
    assert "functions aligned to 64 bytes: 90 of 200 (some came compiled)" in describe(
        seen(binary, "functions")
    )
    assert not any("aligned" in line for line in describe(seen(binary, "default")))


def test_what_bolt_moved_is_counted() -> None:
    by_chance = Binary("p", read=True, bolted=True, places=CodePlaces(181, 96))
    (found,) = (
        each for each in artifact_findings(seen(by_chance, "loops")) if "aligned" in each.text
    )
    assert "only 96 of 181 that BOLT moved are" in found.text
    told = Binary("p", read=True, bolted=True, places=CodePlaces(181, 181))
    assert "alignment-without-effect" not in codes(told)
