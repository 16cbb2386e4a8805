"""Parts of a difference: each of them alone at one end, and all but it at the other."""

from __future__ import annotations

import shlex

import pytest

from ensign.explain.causes import (
    OTHERS,
    can_mix_sources,
    choice_causes,
    command_causes,
    same_program,
    source_causes,
    with_libraries,
)
from ensign.model.variants import Variant

A = Variant("a", "gcc-12", "-O2", flags="-g1 -fno-plt -march=x86-64 --param x=1")
B = Variant("b", "gcc-12", "-O3", lto="full", flags="-g1 -march=native -funroll-loops")


def test_each_axis_and_each_flag_is_a_part() -> None:
    assert [cause.name for cause in choice_causes(A, B)] == [
        "optimization: -O2 → -O3",
        "lto: off → full",
        "without -fno-plt",
        "-march=x86-64 → -march=native",
        "without --param x=1",
        "-funroll-loops",
    ]
    assert choice_causes(A, A) == ()


def test_all_parts_but_one_and_that_one_are_complements() -> None:
    for cause in choice_causes(A, B):
        for axis in ("compiler", "optimization", "lto"):
            ends = [getattr(each, axis) for each in (A, B)]
            assert sorted(ends) == sorted(
                [getattr(cause.added, axis), getattr(cause.removed, axis)]
            )
        words = [sorted(shlex.split(each.flags)) for each in (A, B, cause.added, cause.removed)]
        assert sorted(words[0] + words[1]) == sorted(words[2] + words[3])


def test_flags_in_another_order_are_one_part() -> None:
    one, other = (Variant("v", "gcc-12", "-O2", flags=text) for text in ("-fa -fb", "-fb -fa"))
    (cause,) = choice_causes(one, other)
    assert (cause.added.flags, cause.removed.flags) == ("-fb -fa", "-fa -fb")


def test_a_flag_and_its_negation_are_one_part() -> None:
    one, other = (Variant("v", "gcc-12", "-O2", flags=f) for f in ("-fno-plt -DX", "-fplt -UX"))
    names = [cause.name for cause in choice_causes(one, other)]
    assert names == ["-fno-plt → -fplt", "-DX → -UX"]


def test_sources_are_mixed_from_both_ends() -> None:
    one, two = Variant("a", "gcc-12", "-O2"), Variant("b", "clang-19", "-O3")
    causes = source_causes(one, two, [["src/a.c"]])
    assert [cause.name for cause in causes] == ["src/a.c", OTHERS]
    assert causes[0].added.units == "src/a.c: compiler=clang-19 optimization=-O3"
    assert causes[0].removed.units == "src/a.c: compiler=gcc-12 optimization=-O2"
    assert causes[1].added.units == "all but src/a.c: compiler=clang-19 optimization=-O3"
    assert (causes[1].added.compiler, causes[1].removed.compiler) == ("gcc-12", "clang-19")


def test_a_profile_is_only_taken_away_from_sources() -> None:
    plain, trained = Variant("a", "gcc-12", "-O2"), Variant("b", "gcc-12", "-O2", pgo="on")
    for ends in ((plain, trained), (trained, plain)):
        for part in source_causes(*ends, [["a.c"]]):
            for cell in (part.added, part.removed):
                assert cell.pgo == "on"
                assert cell.units.endswith(": pgo=off")
    first = source_causes(plain, trained, [["a.c"]])[0]
    assert (first.added.units, first.removed.units) == ("all but a.c: pgo=off", "a.c: pgo=off")


def test_what_differs_at_the_link_alone_is_in_no_source() -> None:
    one = Variant("a", "gcc-12", "-O2")
    assert not can_mix_sources(one, Variant("b", "gcc-12", "-O2", linker="lld"))
    assert not can_mix_sources(one, Variant("b", "default", "-O2"))
    assert can_mix_sources(one, Variant("b", "gcc-12", "-O2", revision="v2"))


TUNED = "env GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1"


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        ("./old f", "./new f", ["./old → ./new"]),
        ("./a -5 f", "./b -6 f", ["./a → ./b", "-5 → -6"]),
        ("./a f", "./a -q f --z", ["-q", "--z"]),
        ("./a -q f", "./a f", ["without -q"]),
        ("env X=1 ./a", "env Y=2 ./a", ["X: 1 → none", "Y: none → 2"]),
        (f"{TUNED} ./a", "./a", ["glibc.malloc.tcache_count: 0 → none",
                                 "glibc.malloc.arena_max: 1 → none"]),
        ("./a 3 3", "./a 4 4", ["3 → 4 (place 2)", "3 → 4 (place 3)"]),
        ("env -i X=1 ./a", "env -i X=2 ./a", ["X=1 → X=2"]),
        ("./a f", "./a f", []),
    ],
)  # fmt: skip
def test_words_and_variables_of_commands_are_parts(a: str, b: str, names: list[str]) -> None:
    causes = command_causes(a, b)
    assert [cause.name for cause in causes] == names
    for cause in causes:
        both = [sorted(shlex.split(a) + shlex.split(b)),
                sorted(shlex.split(cause.added) + shlex.split(cause.removed))]  # fmt: skip
        if TUNED not in a and "env" not in both[0]:
            assert both[0] == both[1]


LOADED = "/a/ld-linux-x86-64.so.2 --library-path /a/lib"
FILES = (["/a/libl.so.1", "/a/libonly.so", "/a/p"], ["/b/libl.so.2", "/b/p"])


def test_libraries_of_which_each_has_another_file_are_parts() -> None:
    a, b = with_libraries("env LD_LIBRARY_PATH=/a ./p", "env LD_LIBRARY_PATH=/b ./p", FILES)
    assert a == "env LD_LIBRARY_PATH=/b LD_PRELOAD=/a/libl.so.1 ./p"
    (cause,) = command_causes(a, b)
    assert cause.name == "libl: /a/libl.so.1 → /b/libl.so.2"
    assert (cause.added, cause.removed) == (b, a)
    one, two = with_libraries(f"{TUNED} ./p", "./q 'x y'", FILES)
    assert one == f"{TUNED} LD_PRELOAD=/a/libl.so.1 ./p"
    assert two == "env LD_PRELOAD=/b/libl.so.2 ./q 'x y'"
    names = [cause.name for cause in command_causes(one, two)]
    assert names[2:] == ["libl: /a/libl.so.1 → /b/libl.so.2", "./p → ./q x y"]


@pytest.mark.parametrize(
    ("a", "b", "files"),
    [
        ("./a", "./b", (["/a/libc.so.6", "/a/libl.so"], ["/b/libc.so.6", "/b/libl.so"])),
        ("env LD_PRELOAD=/x.so ./a", "./b", FILES),
        ("env -i ./a", "./b", FILES),
        ("./a", "./b", (["/a/libx.so"], ["/b/liby.so"])),
    ],
)  # fmt: skip
def test_libraries_that_cannot_be_told_stay(
    a: str, b: str, files: tuple[list[str], list[str]]
) -> None:
    assert with_libraries(a, b, files) == (a, b)


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        (
            f"{LOADED} ./p 1",
            "/b/ld-musl-x86_64.so.1 --library-path /b --argv0 p ./p 2",
            ["C library: /a/ld-linux-x86-64.so.2 → /b/ld-musl-x86_64.so.1", "1 → 2"],
        ),
        (f"env A=1 {LOADED} ./p", "./p", [
            "A: 1 → none", "C library: /a/ld-linux-x86-64.so.2 → the system's",
        ]),
        (f"{LOADED} ./p", f"{LOADED.replace('/a/lib', '/c')} ./p", ["/a/lib → /c"]),
    ],
)  # fmt: skip
def test_a_loader_and_its_options_are_one_part(a: str, b: str, names: list[str]) -> None:
    assert [cause.name for cause in command_causes(a, b)] == names


def test_one_part_alone_is_the_other_command() -> None:
    (cause,) = command_causes("env A='x y' ./p '*.c'", "./p '*.c'")
    # Starting `env` takes time: it must be no part of any cause.
    assert (cause.added, cause.removed) == ("env ./p '*.c'", "env 'A=x y' ./p '*.c'")
    (tunable, _) = command_causes(f"{TUNED} ./a", "./a")
    assert tunable.added == "env GLIBC_TUNABLES=glibc.malloc.arena_max=1 ./a"


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("./p 1", "./p 2", True),
        ("./p 1", "env X=1 ./p 1", True),
        ("./p 1", "setarch -R ./p 1", True),
        ("/other/ld.so --library-path /other ./p 1", "./p 1", True),
        (f"{LOADED} ./p 1", "/other/ld.so --library-path /other ./p 1", True),
        (f"{LOADED} ./p 1", f"{LOADED} ./q 1", False),
        ("./old 1", "./new 1", False),
        ("./old 1", "setarch -R ./new 1", False),
        ("env X=1 ./old", "env X=1 ./new", False),
    ],
)
def test_the_same_program_may_be_started_by_another(a: str, b: str, *, same: bool) -> None:
    assert same_program(a, b) is same
