from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ensign.model.errors import InputError
from ensign.model.variants import Variant
from ensign.toolchains.find import ToolchainFinder, installed_compilers
from ensign.toolchains.table import Family
from real_processes import PlainProcesses


@pytest.fixture
def finder(tmp_path: Path) -> ToolchainFinder:
    return ToolchainFinder(PlainProcesses(), tmp_path / "scratch")


def test_gcc_and_its_tools(finder: ToolchainFinder) -> None:
    gcc = finder.find("gcc-12")
    assert (gcc.kind.family, gcc.kind.version[0]) == (Family.GCC, 12)
    assert Path(gcc.ar).name == "gcc-ar-12"
    assert gcc.linker_flag == ""
    assert gcc.linker_version.startswith("GNU ld")
    assert finder.find("gcc-12").identity == gcc.identity


def test_clang_links_with_lld(finder: ToolchainFinder) -> None:
    clang = finder.find("clang-19")
    assert clang.kind.family is Family.CLANG
    assert Path(clang.ranlib).name == "llvm-ranlib-19"
    assert clang.linker_flag == "-fuse-ld=lld"
    assert "LLD" in clang.linker_version
    flags = clang.flags(Variant("", "clang-19", "-O3", "full"))
    assert finder.complaint(clang.cc, flags.compile, flags.link) == ""


def test_a_misleading_name_does_not_mislead(tmp_path: Path) -> None:
    real = shutil.which("clang-19")
    assert real is not None
    (tmp_path / "bin").mkdir()
    named = tmp_path / "bin/gcc-77"
    named.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    named.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    found = ToolchainFinder(PlainProcesses(), tmp_path / "scratch", path).find("gcc-77")
    assert found.kind.family is Family.CLANG


def test_a_program_that_is_no_compiler(finder: ToolchainFinder) -> None:
    with pytest.raises(InputError, match=r"'true' .* is neither GCC nor Clang"):
        finder.find("true")


def test_flags_that_do_not_work_are_explained(finder: ToolchainFinder) -> None:
    gcc = finder.find("gcc-12")
    assert "-fno-such-flag" in finder.complaint(gcc.cc, ("-fno-such-flag",), ())
    assert finder.complaint(gcc.cc, (), ("-fuse-ld=nonsense",)) != ""


def test_installed_compilers_are_listed_by_name_and_number(tmp_path: Path) -> None:
    for name in ("gcc-9", "gcc-12", "clang-19", "gcc-ar-12", "cc1"):
        (tmp_path / name).touch(0o755)
    assert installed_compilers(f"{tmp_path}:/nowhere") == ["clang-19", "gcc-9", "gcc-12"]


def test_a_linker_that_is_not_on_path_is_found_where_llvm_keeps_it(
    finder: ToolchainFinder,
) -> None:
    gcc = finder.find("gcc-12")
    flags = gcc.flags(Variant("", "gcc-12", "-O2", linker="lld"))
    assert finder.complaint(gcc.cc, flags.compile, flags.link) == ""


def test_the_line_that_says_why_is_given(finder: ToolchainFinder) -> None:
    gcc = finder.find("gcc-12")
    assert "cannot find -lnosuch" in finder.complaint(gcc.cc, (), ("-lnosuch",))
