"""Where functions and loops begin: what is told to whom, and what would have no effect."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.model.variants import Variant
from ensign.toolchains.alignment import bolt_alignment
from ensign.toolchains.spelling import flags_for, refusal
from ensign.toolchains.table import Family, Flags, Kind, kind_of

GCC = Kind(Family.GCC, (12, 2, 0), x86_64=True)
CLANG = Kind(Family.CLANG, (19, 1, 7), x86_64=True)
RUST = Kind(Family.RUST, (1, 95, 0), 22)
PLAIN = Variant("", "cc", "-O2")
FUNCTIONS, LOOPS, JUMPS = "-falign-functions=64", "-falign-loops=32", "-falign-jumps=32"
BRANCHES = "-mbranches-within-32B-boundaries"
LTO_LOOPS = "-Wl,-plugin-opt=-align-loops=32"


def added(kind: Kind, alignment: str, **choices: str) -> Flags:
    """What alignment adds to a variant, at compilation and at the link."""
    plain = replace(PLAIN, **choices)  # type: ignore[arg-type]
    less, more = (flags_for(kind, replace(plain, alignment=a), "") for a in ("default", alignment))
    return Flags(
        tuple(word for word in more.compile if word not in less.compile),
        tuple(word for word in more.link if word not in less.link),
    )


def test_functions_are_aligned_alike_by_gcc_and_clang() -> None:
    for kind in (GCC, CLANG):
        assert added(kind, "functions") == Flags((FUNCTIONS,), (FUNCTIONS,))
        assert added(kind, "functions", lto="full") == Flags((FUNCTIONS,), (FUNCTIONS,))


def test_loops_are_aligned_with_functions_and_what_else_a_compiler_can_align() -> None:
    assert added(GCC, "loops", lto="full") == Flags(
        (FUNCTIONS, LOOPS, JUMPS), (FUNCTIONS, LOOPS, JUMPS)
    )
    assert added(CLANG, "loops") == Flags(
        (FUNCTIONS, LOOPS, BRANCHES), (FUNCTIONS, LOOPS, BRANCHES)
    )


def test_branches_keep_from_boundaries_on_x86_64_alone() -> None:
    macros = (
        "#define __clang_major__ 19\n#define __clang_minor__ 1\n#define __clang_patchlevel__ 7\n"
    )
    elsewhere, here = kind_of(macros), kind_of(f"{macros}#define __x86_64__ 1\n")
    assert here == CLANG
    assert elsewhere is not None
    assert added(elsewhere, "loops").compile == (FUNCTIONS, LOOPS)


@pytest.mark.parametrize("choices", [{"lto": "full"}, {"lto": "thin"}, {"flags": "-flto=thin"}])
def test_clangs_lto_link_is_told_of_loops_again(choices: dict[str, str]) -> None:
    flags = added(CLANG, "loops", **choices)
    assert LTO_LOOPS in flags.link
    assert LTO_LOOPS not in flags.compile


def test_the_studys_own_flags_overrule() -> None:
    flags = flags_for(GCC, replace(PLAIN, alignment="loops", flags="-falign-functions=32"), "")
    assert flags.compile[-1] == flags.link[-1] == "-falign-functions=32"


def test_rustc_is_told_by_way_of_llvm() -> None:
    functions, loops = "-Cllvm-args=-align-all-functions=6", "-Cllvm-args=-align-loops=32"
    assert added(RUST, "functions").compile == (functions,)
    assert added(RUST, "loops").compile == (functions, loops)


def test_bolt_aligns_all_that_it_moves_and_keeps_the_alignment_of_loops() -> None:
    assert bolt_alignment(GCC, "default") == ()
    functions = bolt_alignment(GCC, "functions")
    assert "-align-functions=64" in functions
    assert "-align-functions-max-bytes=64" in functions
    loops = (*functions, "-preserve-blocks-alignment")
    assert bolt_alignment(GCC, "loops") == loops
    assert bolt_alignment(CLANG, "loops") == (*loops, "-x86-branches-within-32B-boundaries")


@pytest.mark.parametrize(
    ("kind", "level", "alignment", "why"),
    [
        (GCC, "-Os", "functions", "GCC aligns neither"),
        (GCC, "-Oz", "loops", "GCC aligns neither"),
        (GCC, "-O0", "loops", "no loops"),
        (GCC, "-O0", "functions", ""),
        (GCC, "-O1", "loops", ""),
        (CLANG, "-Os", "functions", ""),
        (CLANG, "-Os", "loops", "no loops; use alignment 'functions'"),
        (CLANG, "-O1", "loops", ""),
        (replace(CLANG, version=(12, 0, 1)), "-O2", "loops", "needs clang 13"),
        (replace(CLANG, version=(12, 0, 1)), "-O2", "functions", ""),
        (RUST, "-Os", "functions", ""),
        (RUST, "-Oz", "loops", "no loops"),
        (RUST, "-O3", "loops", ""),
        (GCC, "-Os", "default", ""),
    ],
)
def test_what_would_have_no_effect_is_refused(
    kind: Kind, level: str, alignment: str, why: str
) -> None:
    said = refusal(kind, Variant("", "cc", level, alignment=alignment))
    assert why in said
    assert bool(said) == bool(why)
