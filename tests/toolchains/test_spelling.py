from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ensign.model.errors import InputError
from ensign.model.variants import Variant
from ensign.toolchains.spelling import beside_cflags, flags_for, refusal
from ensign.toolchains.table import Family, Flags, Kind

GCC = Kind(Family.GCC, (12, 2, 0))
GCC_11 = Kind(Family.GCC, (11, 3, 0))
CLANG = Kind(Family.CLANG, (19, 1, 7))
CLANG_14 = Kind(Family.CLANG, (14, 0, 6))
PLAIN = Variant("", "cc", "-O2")


def both(kind: Kind, **choices: Any) -> tuple[set[str], set[str]]:
    """What the choices add to the plain variant, at compilation and at the link."""
    plain, made = flags_for(kind, PLAIN, ""), flags_for(kind, replace(PLAIN, **choices), "")
    return set(made.compile) - set(plain.compile), set(made.link) - set(plain.link)


def test_what_is_proved_from_is_always_recorded() -> None:
    assert flags_for(GCC, PLAIN, "").compile == ("-O2", "-g")
    assert flags_for(CLANG, PLAIN, "").compile == ("-O2", "-g", "-grecord-command-line")


def test_lto_and_level_are_passed_at_the_link_too() -> None:
    gcc = flags_for(GCC, replace(PLAIN, optimization="-O3", lto="full"), "")
    assert gcc.compile == gcc.link == ("-O3", "-g", "-flto=auto")
    assert both(CLANG, lto="full") == ({"-flto"}, {"-flto"})
    assert both(CLANG, lto="thin") == ({"-flto=thin"}, {"-flto=thin"})


def test_all_variants_of_a_compiler_have_one_linker_unless_one_is_asked_for() -> None:
    usual = flags_for(CLANG, PLAIN, "-fuse-ld=lld")
    assert "-fuse-ld=lld" in usual.link
    assert "-fuse-ld=lld" not in usual.compile
    mold = flags_for(CLANG, replace(PLAIN, linker="mold"), "-fuse-ld=lld")
    assert "-fuse-ld=mold" in mold.link
    assert "-fuse-ld=lld" not in mold.link


def test_further_flags_come_last_and_reach_the_compiler_unless_they_are_the_linkers() -> None:
    variant = replace(PLAIN, target="native", flags="-march=x86-64 -Wl,-O1 -DNAME='a b' -static")
    flags = flags_for(GCC, variant, "")
    assert flags.compile[-3:] == ("-march=native", "-march=x86-64", "-DNAME=a b")
    assert flags.link[-4:] == ("-march=x86-64", "-Wl,-O1", "-DNAME=a b", "-static")
    with pytest.raises(InputError, match="quot"):
        flags_for(GCC, replace(PLAIN, flags="-DNAME='a"), "")


@pytest.mark.parametrize(
    ("axis", "value", "flag"),
    [
        ("target", "x86-64-v3", "-march=x86-64-v3"),
        ("target", "generic", "-march=x86-64"),
        ("interposition", "off", "-fno-semantic-interposition"),
        ("plt", "off", "-fno-plt"),
        ("floating_point", "fast", "-ffast-math"),
        ("aliasing", "relaxed", "-fno-strict-aliasing"),
    ],
)
def test_what_decides_code_goes_to_compiler_and_link(axis: str, value: str, flag: str) -> None:
    for kind in (GCC, CLANG):
        compiling, linking = both(kind, **{axis: value})
        assert flag in compiling
        assert flag in linking


def test_bolt_needs_relocations_and_functions_in_one_piece() -> None:
    assert both(CLANG, bolt="on") == (set(), {"-Wl,--emit-relocs"})
    compiling, linking = both(GCC, bolt="on")
    assert compiling == {"-fno-reorder-blocks-and-partition"}
    assert compiling < linking


def test_hardening_leaves_out_what_the_compiler_does_not_know() -> None:
    compiling, linking = both(GCC, hardening="openssf")
    assert {"-D_FORTIFY_SOURCE=3", "-fPIE", "-fcf-protection=full"} < compiling
    assert {"-Wl,-z,now", "-pie"} < linking
    assert not any(flag.startswith("-D") for flag in linking)
    assert "-ftrivial-auto-var-init=zero" in compiling
    assert "-fstrict-flex-arrays=3" not in compiling
    assert "-fstrict-flex-arrays=3" in both(CLANG, hardening="openssf")[0]
    assert both(GCC, hardening="relro") == (set(), {"-Wl,-z,relro"})


def test_no_hardening_is_something_else_than_nothing_asked() -> None:
    compiling, linking = both(GCC, hardening="none")
    assert {"-fno-stack-protector", "-fcf-protection=none", "-fno-pie"} < compiling
    assert {"-no-pie", "-Wl,-z,norelro"} < linking


def test_an_allocator_is_linked_whether_or_not_a_symbol_asks_for_it() -> None:
    linking = flags_for(GCC, replace(PLAIN, allocator="jemalloc"), "").link
    assert linking[-3:] == ("-Wl,--push-state,--no-as-needed", "-ljemalloc", "-Wl,--pop-state")
    assert both(GCC, allocator="libc") == (set(), set())


def test_what_cannot_exist_is_refused() -> None:
    assert "no thin LTO" in refusal(GCC, replace(PLAIN, lto="thin"))
    assert not refusal(CLANG, replace(PLAIN, lto="thin"))
    assert "fused multiply-add" in refusal(GCC, replace(PLAIN, floating_point="fma"))
    assert not refusal(GCC, replace(PLAIN, floating_point="fma", target="x86-64-v3"))
    auto_init = replace(PLAIN, hardening="auto-init")
    assert "needs gcc 12" in refusal(GCC_11, auto_init)
    assert "needs clang 16" in refusal(CLANG_14, auto_init)
    assert not refusal(GCC, auto_init)


def test_a_configure_gets_no_level_with_the_link_flags_but_where_clang_links_compile() -> None:
    plain = Flags(("-O3", "-g"), ("-O3", "-g", "-grecord-command-line", "-fuse-ld=lld", "-lm"))
    assert beside_cflags(CLANG, plain) == ("-fuse-ld=lld", "-lm")
    whole = Flags(("-O3", "-flto"), ("-O3", "-g", "-flto"))
    assert beside_cflags(CLANG, whole) == whole.link
    assert beside_cflags(GCC, whole) == ("-flto",)
