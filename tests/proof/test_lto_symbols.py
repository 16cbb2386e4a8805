from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ensign.proof.archives import (
    LtoSymbols,
    UnreadError,
    bitcode_symbols,
    gcc_symbols,
    symbols_by_member,
)
from ensign.proof.bounded_elf import elf_of
from real_processes import PlainProcesses

SOURCE = """
int data; int common_in_old_c; static int hidden(int x) { return x + 1; }
extern int needed(int); extern int known; __attribute__((weak)) int perhaps(int);
__attribute__((weak)) int mine(void) { return 1; }
int given(int x) { return needed(hidden(x)) + known + (perhaps ? perhaps(x) : 0); }
"""
DEFINES = frozenset({"data", "common_in_old_c", "mine", "given"})
EXPECTED = LtoSymbols(DEFINES, frozenset({"needed", "known"}))


def compiled(folder: Path, compiler: str, *flags: str) -> Path:
    (folder / "part.c").write_text(SOURCE)
    argv = (compiler, "-O2", *flags, "-c", "part.c", "-o", "part.o")
    subprocess.run(argv, cwd=folder, check=True, capture_output=True)
    return folder / "part.o"


@pytest.mark.parametrize("compiler", ["gcc-11", "gcc-12"])
@pytest.mark.parametrize("flags", [(), ("-fcommon",), ("-ffat-lto-objects",)])
def test_gccs_table_is_read(compiler: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    part = compiled(tmp_path, compiler, "-flto", *flags)
    with elf_of(part) as elf:
        assert gcc_symbols(elf) == EXPECTED


def test_inline_functions_of_cxx_have_a_group_and_are_defined(tmp_path: Path) -> None:
    (tmp_path / "part.cc").write_text(
        "inline int twice(int x) { return x * 2; }\nint (*f)(int) = twice;"
    )
    argv = ("g++-12", "-O2", "-flto", "-c", "part.cc", "-o", "part.o")
    subprocess.run(argv, cwd=tmp_path, check=True)
    with elf_of(tmp_path / "part.o") as elf:
        assert gcc_symbols(elf) == LtoSymbols(frozenset({"f", "_Z5twicei"}))


@pytest.mark.parametrize("flags", [("-flto",), ("-flto=thin",), ("-flto", "-fcommon")])
def test_bitcode_is_read_by_the_llvm_nm_beside_clang(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    part = compiled(tmp_path, "clang-19", *flags)
    assert bitcode_symbols(part, "clang-19", PlainProcesses()) == {"": EXPECTED}
    subprocess.run(("llvm-ar-19", "rcs", "lib part.a", "part.o"), cwd=tmp_path, check=True)
    library = tmp_path / "lib part.a"
    assert bitcode_symbols(library, "clang-19", PlainProcesses()) == {"part.o": EXPECTED}


def test_without_llvm_nm_or_bitcode_the_reason_is_given(tmp_path: Path) -> None:
    (tmp_path / "clang").symlink_to("/bin/true")
    with pytest.raises(UnreadError, match="there is no llvm-nm by clang-none"):
        bitcode_symbols(tmp_path / "part.o", "clang-none", PlainProcesses())
    (tmp_path / "part.o").write_text("no object")
    with pytest.raises(UnreadError, match=r"llvm-nm ended with status 1 at part\.o"):
        bitcode_symbols(tmp_path / "part.o", "clang-19", PlainProcesses())


def test_names_of_members_are_told_from_names_of_symbols() -> None:
    text = "/p[1]/l.a[x y.o]: f T 0 0\n/p[1]/l.a[z.o]: f U 0 0\n/p[1]/l.a[z.o]: w w 0 0\n"
    assert symbols_by_member(text, "/p[1]/l.a") == {
        "x y.o": LtoSymbols(frozenset({"f"})),
        "z.o": LtoSymbols(needs=frozenset({"f"})),
    }
