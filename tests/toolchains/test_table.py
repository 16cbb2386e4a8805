from __future__ import annotations

from ensign.toolchains.table import Family, Kind, kind_of, tool_names

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


def test_tools_are_looked_for_by_the_drivers_version_first() -> None:
    assert tool_names(GCC, "gcc-12")["ar"] == ("gcc-ar-12", "gcc-ar")
    assert tool_names(CLANG, "clang")["ranlib"] == ("llvm-ranlib-19", "llvm-ranlib")
