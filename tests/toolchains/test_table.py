from __future__ import annotations

import pytest

from ensign.model.errors import InputError
from ensign.toolchains.table import Family, Kind, flags_for, kind_of, tool_names

GCC = Kind(Family.GCC, (12, 2, 0))
CLANG = Kind(Family.CLANG, (19, 1, 7))


def test_a_compiler_is_what_it_defines() -> None:
    gcc = "#define __GNUC__ 12\n#define __GNUC_MINOR__ 2\n#define __GNUC_PATCHLEVEL__ 0\n"
    clang = (
        "#define __clang_major__ 19\n#define __clang_minor__ 1\n#define __clang_patchlevel__ 7\n"
    )
    assert kind_of(gcc) == GCC
    assert kind_of("#define __GNUC__ 4\n" + clang) == CLANG
    assert kind_of("#define __TINYC__ 927\n") is None


def test_lto_and_level_are_passed_at_the_link_too() -> None:
    gcc = flags_for(GCC, "-O3", "full", "", "")
    assert gcc.compile == ("-O3", "-flto=auto")
    assert gcc.link == ("-O3", "-flto=auto")
    clang = flags_for(CLANG, "-O3", "full", "", "-fuse-ld=lld")
    assert clang.compile == ("-O3", "-flto")
    assert clang.link == ("-O3", "-flto", "-fuse-ld=lld")


def test_all_variants_of_a_compiler_have_one_linker() -> None:
    assert "-fuse-ld=lld" in flags_for(CLANG, "-O2", "off", "", "-fuse-ld=lld").link
    assert "-fuse-ld=lld" not in flags_for(CLANG, "-O2", "off", "", "-fuse-ld=lld").compile


def test_further_flags_reach_the_compiler_unless_they_are_the_linkers() -> None:
    flags = flags_for(GCC, "-O2", "off", "-march=native -Wl,-O1 -DNAME='a b' -static", "")
    assert flags.compile == ("-O2", "-march=native", "-DNAME=a b")
    assert flags.link == ("-O2", "-march=native", "-Wl,-O1", "-DNAME=a b", "-static")
    with pytest.raises(InputError, match="quot"):
        flags_for(GCC, "-O2", "off", "-DNAME='a", "")


def test_tools_are_looked_for_by_the_drivers_version_first() -> None:
    assert tool_names(GCC, "gcc-12")["ar"] == ("gcc-ar-12", "gcc-ar")
    assert tool_names(CLANG, "clang")["ranlib"] == ("llvm-ranlib-19", "llvm-ranlib")
