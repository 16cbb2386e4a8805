"""Sources that say themselves how they are optimized."""

from __future__ import annotations

import pytest

from ensign.proof.read import line_of_own_level


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('int x;\n#pragma GCC optimize("O0")\n', 2),
        ("#  pragma clang optimize off\n", 1),
        ('\n\n_Pragma("GCC optimize (\\"O0\\")") int f(void);\n', 3),
        ('__attribute__((optimize("O0"))) int f(void);\n', 1),
        ("static __attribute__ ((noinline, __optimize__(0))) int f(void);\n", 1),
        ("int f(void) __attribute__((optnone));\n", 1),
        ("[[clang::optnone]] int f();\n", 1),
        ('[[gnu::optimize("O1")]] int f();\n', 1),
        ("int optimize = 1; /* #pragma GCC optimize */\n", 0),
        ("// pragma GCC optimize is not used\n#pragma GCC ivdep\n", 0),
        ("__attribute__((noinline)) int optimize(void);\n", 0),
        ('#pragma GCC target("avx2")\n', 0),
    ],
)
def test_the_first_line_that_says_so(text: str, line: int) -> None:
    assert line_of_own_level(text.encode()) == line
