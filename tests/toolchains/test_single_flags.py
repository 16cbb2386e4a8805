"""Flags behind a level, read from what GCC prints."""

from __future__ import annotations

from ensign.toolchains.single_flags import SingleFlag, single_flags, single_flags_of_clang

BEFORE = """\
The following options control optimizations:
  -O<number>                  \t\t
  -falign-functions=          \t\t16
  -fbranch-probabilities      \t\t[disabled]
  -fexcess-precision=[fast|standard|16] \t[default]
  -fmath-errno                \t\t[enabled]
  -fpeel-loops                \t\t[disabled]
  -fvect-cost-model=[unlimited|dynamic|cheap|very-cheap] \tvery-cheap
The --param option recognizes the following as parameters:
  --param=early-inlining-insns= \t6
  --param=inline-min-speedup=<0,100> \t\t30
The following options are target specific:
  -march=                     \t\tx86-64
  -mavx2                      \t\t[disabled]
  -mno-sse4                   \t\t[enabled]
  -msse4.1                    \t\t[disabled]
  -mtune=                     \t\tgeneric
"""
AFTER = """\
  -falign-functions=          \t\t
  -fbranch-probabilities      \t\t[enabled]
  -fexcess-precision=[fast|standard|16] \tfast
  -fmath-errno                \t\t[disabled]
  -fpeel-loops                \t\t[enabled]
  -fvect-cost-model=[unlimited|dynamic|cheap|very-cheap] \tdynamic
  --param=early-inlining-insns= \t14
  --param=inline-min-speedup=<0,100> \t\t15
  -march=                     \t\tznver1
  -mavx2                      \t\t[enabled]
  -mno-sse4                   \t\t[disabled]
  -msse4.1                    \t\t[enabled]
  -mtune=                     \t\tznver1
"""


def test_each_flag_has_the_word_for_either_setting() -> None:
    assert single_flags(BEFORE, AFTER) == (
        SingleFlag("-fbranch-probabilities", "-fno-branch-probabilities"),
        SingleFlag("-fno-math-errno", "-fmath-errno"),
        SingleFlag("-fpeel-loops", "-fno-peel-loops"),
        SingleFlag("-fvect-cost-model=dynamic", "-fvect-cost-model=very-cheap"),
        SingleFlag("--param=early-inlining-insns=14", "--param=early-inlining-insns=6"),
        SingleFlag("--param=inline-min-speedup=15", "--param=inline-min-speedup=30"),
        SingleFlag("-mavx2", "-mno-avx2"),
        SingleFlag("-msse4.1", "-mno-sse4.1"),
        SingleFlag("-mtune=znver1", "-mtune=generic"),
    )


def test_what_needs_a_profile_is_taken_from_nothing_without_one() -> None:
    words = {flag.word for flag in single_flags(AFTER, BEFORE)}
    assert "-fno-peel-loops" in words
    assert "-fno-branch-probabilities" not in words


def test_what_says_nothing_has_no_flags() -> None:
    assert single_flags("", AFTER) == single_flags(BEFORE, "") == ()
    assert single_flags(BEFORE, BEFORE) == ()


def test_levels_of_clang_differ_in_few_flags() -> None:
    assert single_flags_of_clang("-O2", "-O3") == (
        SingleFlag("-mllvm -inline-threshold=250", "-mllvm -inline-threshold=225"),
        SingleFlag(
            "-mllvm -unroll-threshold-default=300", "-mllvm -unroll-threshold-aggressive=150"
        ),
    )
    assert single_flags_of_clang("-O2", "-O1") == (
        SingleFlag("-fno-vectorize", "-fvectorize"),
        SingleFlag("-fno-slp-vectorize", "-fslp-vectorize"),
    )
    assert single_flags_of_clang("-O2", "-O2") == single_flags_of_clang("-Os", "-O2") == ()
