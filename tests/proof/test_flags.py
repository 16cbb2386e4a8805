from __future__ import annotations

import pytest

from ensign.proof.elf import unit_of
from ensign.proof.facts import UnitKind
from ensign.proof.flags import effects, level_of, lto_of


def test_the_last_flag_of_a_subject_counts() -> None:
    line = "-O3 -fno-plt -flto=auto -O2 -fplt -D_FORTIFY_SOURCE=2 -U_FORTIFY_SOURCE -g -g0"
    words = line.split()
    assert effects(words) == {
        "O": "-O2",
        "plt": "on",
        "lto": "full",
        "D:_FORTIFY_SOURCE": "undefined",
        "g": "off",
    }


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("-O", "-O1"),
        ("-flto", "-flto=auto"),
        ("-flto=full", "-flto"),
        ("-fcf-protection", "-fcf-protection=full"),
        ("-fprofile-use=/a", "-fprofile-use=/b"),
        ("-fno-pie", "-fno-PIE"),
    ],
)
def test_spellings_of_the_same(left: str, right: str) -> None:
    assert effects([left]) == effects([right]) != {}


@pytest.mark.parametrize(
    ("left", "right"), [("-flto", "-flto=thin"), ("-fPIC", "-fPIE"), ("-Os", "-O2")]
)
def test_different_choices(left: str, right: str) -> None:
    assert effects([left]) != effects([right])


def test_what_does_not_decide_code_is_left_out() -> None:
    assert effects(["-Wall", "-I/x", "-grecord-command-line", "-fdiagnostics-color", "a.c"]) == {}
    assert not lto_of(["-flto", "-fno-lto"])
    assert not lto_of(None)
    assert level_of(["-O3", "-Og"]) == "-Og"
    assert level_of([]) == ""


@pytest.mark.parametrize(
    ("producer", "kind", "compiler", "flags"),
    [
        ("GNU C17 12.2.0 -g -O2", UnitKind.WHOLE, "GCC 12.2.0", ("-g", "-O2")),
        ("GNU C++17 12.2.0 -O2 -flto", UnitKind.EARLY, "GCC 12.2.0", ("-O2", "-flto")),
        ("GNU GIMPLE 12.2.0 -O3 -fltrans", UnitKind.LTRANS, "GCC 12.2.0", ("-O3", "-fltrans")),
        ("GNU AS 2.40", UnitKind.ASSEMBLER, "GNU as 2.40", None),
        ("Debian clang version 19.1.7 (3~deb12u1)", UnitKind.CLANG, "Clang 19.1.7", None),
        (
            "clang version 14.0.6 /usr/bin/clang -O3 -DA=b\\ c x.c",
            UnitKind.CLANG,
            "Clang 14.0.6",
            ("-O3", "-DA=b c", "x.c"),
        ),
        ("clang LLVM (rustc version 1.63.0)", UnitKind.OTHER, "rustc 1.63.0", None),
    ],
)
def test_units_by_producer(
    producer: str, kind: UnitKind, compiler: str, flags: tuple[str, ...] | None
) -> None:
    unit = unit_of(producer, "a.c", "/b")
    assert (unit.kind, unit.compiler, unit.flags) == (kind, compiler, flags)
