"""Hardening of packages that make shared libraries beside programs."""

from __future__ import annotations

import pytest

from ensign.toolchains.hardening import beside_libraries, hardening_flags
from ensign.toolchains.table import Family, Flags, Kind

GCC, CLANG = Kind(Family.GCC, (12, 2, 0)), Kind(Family.CLANG, (19, 1, 0))


@pytest.mark.parametrize(
    ("preset", "word"), [("pie", "pie"), ("openssf", "pie"), ("none", "no-pie")]
)
def test_gcc_is_told_by_specs_that_spare_libraries(preset: str, word: str) -> None:
    told = beside_libraries(GCC, Flags(*hardening_flags(GCC, preset)))
    assert f"-specs=/usr/share/dpkg/{word}-compile.specs" in told.compile
    assert f"-specs=/usr/share/dpkg/{word}-link.specs" in told.link
    words = {*told.compile, *told.link}
    assert not words & {"-fPIE", "-pie", "-fno-pie", "-no-pie"}


def test_clang_makes_such_programs_by_itself() -> None:
    assert beside_libraries(CLANG, Flags(("-O2", "-fPIE"), ("-O2", "-pie"))) == Flags(
        ("-O2",), ("-O2",)
    )
    plain = Flags(("-fno-pie",), ("-no-pie",))
    assert beside_libraries(CLANG, plain) == plain
