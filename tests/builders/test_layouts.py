from __future__ import annotations

import re
from dataclasses import replace

import pytest

from ensign.builders.layouts import (
    PADDINGS,
    LinkCommand,
    Relinks,
    bolt_again,
    bolt_call,
    in_number_order,
    link_call,
    link_of,
    notes_on,
    obstacle,
    padding_source,
    relink,
    seed_of,
    shuffles,
    with_generated,
    with_members,
)
from ensign.model.calls import Call, Output
from recorded import recorded

ORDER = Relinks("order", (1, 2), gcc=True, profiled=False)
SHUFFLE = replace(ORDER, how="shuffle")
PADS = tuple(f"pad{number}.o" for number in range(PADDINGS))
MANY = tuple(f"{letter}.o" for letter in "abcdefgh")


def call(*words: str, made: str = "/b/program", tool: str = "cc", exit_status: int = 0) -> Call:
    outputs = (Output(made, f"sha of {made}", 1),)
    made_call = recorded(("cc", *words), "/b", tool=tool, program="/usr/bin/gcc", outputs=outputs)
    return replace(made_call, exit=exit_status)


def link(*words: str) -> LinkCommand:
    return link_of(call(*words))


def bare(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Without padding."""
    return tuple(word for word in argv if word not in PADS)


def test_the_link_is_the_last_that_succeeded_by_path_or_content() -> None:
    calls = [
        call("1"),
        call("2", made="/b/.libs/program"),
        call("3", exit_status=1),
        call("4", tool="ar"),
    ]
    assert link_call(calls, "/b/program", "") == calls[0]
    assert link_call(calls, "/b/bin/installed", "sha of /b/.libs/program") == calls[1]
    assert link_call(calls, "/b/other", "") is None


def test_the_output_is_taken_out_of_the_link() -> None:
    assert link_of(call("-O2", "-o", "program", "a.o", "-save-temps")).words == ("-O2", "a.o")
    assert link_of(call("a.o", "-oprogram")).words == ("a.o",)


def test_objects_change_places_and_nothing_else_does() -> None:
    line = link("-O2", *MANY, "-L", "dir.o", "libx.a", "-lm")
    seen = set()
    for seed in range(6):
        argv = relink(line, ORDER, seed, "/out", PADS)
        padded = sum(word in PADS for word in argv)
        assert argv[:2] == ("/usr/bin/gcc", "-O2")
        assert set(argv[2 : 2 + padded]) <= set(PADS)
        unpadded = bare(argv)
        assert sorted(unpadded[2:10]) == sorted(MANY)
        assert unpadded[10:] == ("-L", "dir.o", "libx.a", "-lm", "-Wl,--strip-debug", "-o", "/out")
        seen.add(unpadded[2:10])
    assert len(seen) == 6
    assert relink(line, ORDER, 3, "/out", PADS) == relink(line, ORDER, 3, "/out", PADS)


@pytest.mark.parametrize("barrier", ["libx.a", "-lx", "libx.so.1", "-Wl,--whole-archive"])
def test_no_object_passes_what_resolves_symbols(barrier: str) -> None:
    line = link("a.o", "b.o", barrier, "c.o", "d.o")
    orders = {bare(relink(line, ORDER, seed, "/out", PADS))[1:6] for seed in range(40)}
    assert len(orders) == 4
    assert all(set(order[:2]) == {"a.o", "b.o"} and order[2] == barrier for order in orders)


def test_members_of_archives_are_objects_before_what_is_left_of_these() -> None:
    line = link("a.o", "-L.", "-lx", "liby.a", "-lm")
    named = with_members(line, {"-lx": ("x1.o", "x2.o"), "liby.a": ("y1.o", "y2.o")}, ["liby.a"])
    assert named.words == ("a.o", "-L.", "x1.o", "x2.o", "-lx", "y1.o", "y2.o", "-lm")
    assert named.units == ("a.o", "x1.o", "x2.o", "y1.o", "y2.o")
    orders = {bare(relink(named, ORDER, seed, "/out", PADS))[1:] for seed in range(200)}
    assert len(orders) == 6 * 2
    for order in orders:
        at = order.index("-lx")
        assert {*order[:at]} == {"a.o", "-L.", "x1.o", "x2.o"}
        assert {*order[at + 1 : at + 3]} == {"y1.o", "y2.o"}


def test_objects_that_depend_on_their_order_keep_it_with_padding_between_them() -> None:
    line = replace(link(*MANY), in_order=(frozenset(("b.o", "d.o", "h.o")),))
    seen, spaces = set(), set()
    for seed in range(30):
        argv = relink(line, ORDER, seed, "/out", PADS)
        order = bare(argv)[1:9]
        assert sorted(order) == sorted(MANY)
        assert [name for name in order if name in ("b.o", "d.o", "h.o")] == ["b.o", "d.o", "h.o"]
        seen.add(order)
        at = argv.index("d.o")
        spaces.add(tuple(word for word in argv[at - 4 : at] if word in PADS))
    assert len(seen) > 20
    assert len(spaces) > 8
    assert line.movable == 8
    assert replace(line, in_order=(frozenset(MANY),)).movable == 0


def test_options_between_objects_are_passed() -> None:
    assert link("a.o", "-O2", "b.o").movable == 2
    assert link("a.o", "-lx", "b.o").movable == 0


def test_lld_shuffles_sections_within_the_classes_of_a_profile() -> None:
    line = link("-fuse-ld=lld", "a.o")
    assert "-Wl,--shuffle-sections=.text*=7" in relink(line, SHUFFLE, 7, "/out", [])
    profiled = relink(line, replace(SHUFFLE, profiled=True), 7, "/out", [])
    shuffled = [word for word in profiled if "shuffle" in word]
    assert shuffled[:2] == [
        "-Wl,--shuffle-sections=.text.hot.*=7",
        "-Wl,--shuffle-sections=.text.unlikely.*=7",
    ]
    assert "-Wl,--shuffle-sections=.text*=7" not in shuffled


def test_a_linker_that_does_not_shuffle_takes_another_order_and_it_is_said() -> None:
    line = link("a.o", "b.o")
    assert not shuffles(line, SHUFFLE)
    assert bare(relink(line, SHUFFLE, 1, "/out", PADS)) != relink(line, SHUFFLE, 1, "/out", PADS)
    assert "bfd shuffles no sections" in notes_on(line, SHUFFLE)[0]
    mold = link("-fuse-ld=/usr/bin/ld.mold", "a.o", "b.o")
    assert "-Wl,--shuffle-sections=1" in relink(mold, SHUFFLE, 1, "/out", [])
    assert not shuffles(mold, replace(SHUFFLE, profiled=True))
    assert notes_on(line, ORDER) == ()
    assert "one object alone" in notes_on(link("a.o", "libx.a"), ORDER)[0]
    in_order = replace(link(*MANY), in_order=(frozenset(MANY),))
    assert notes_on(in_order, ORDER) == (
        "no two of its objects can swap, so its relinks differ in padding only",
    )


def test_generated_objects_take_the_place_of_lto_objects() -> None:
    line = link("-flto", "plain.o", "a.o", "b.o", "-lm")
    after = with_generated(line, frozenset({"a.o", "b.o"}), ("g0.o", "g1.o"))
    assert after.words == ("-flto", "plain.o", "g0.o", "g1.o", "-lm", "-fno-lto")
    assert not after.lto
    assert with_generated(line, frozenset(), ("g0.o",)) == line


def test_what_cannot_be_relinked_is_said() -> None:
    clang = replace(ORDER, gcc=False)
    assert "bfd" in obstacle(link("-flto", "a.o"), clang)
    assert obstacle(link("-flto", "-fuse-ld=lld", "a.o"), clang) == ""
    assert obstacle(link("-flto", "-fno-lto", "a.o"), clang) == ""
    assert obstacle(link("-flto-partition=none", "a.o"), clang) == ""


def test_bolt_is_run_again_with_hot_functions_at_random() -> None:
    lay_out = ("/bin/llvm-bolt-19", "p", "-data=f", "--reorder-functions=cdsort", "-o", "p.bolt")
    move = ("mv", "p.bolt", "p")
    assert bolt_call([lay_out, move]) == lay_out
    assert bolt_call([("/bin/llvm-bolt-19", "p", "-instrument")]) == ()
    assert bolt_call([move, lay_out]) == bolt_call([]) == ()
    assert bolt_again(lay_out, 7, "/out") == (
        *("/bin/llvm-bolt-19", "p", "-data=f"),
        *("-reorder-functions=random", "-bolt-seed=7", "-o", "/out"),
    )


def test_numbers_sort_as_numbers() -> None:
    assert in_number_order(["lto.o10", "lto.o2", "lto.o"]) == ["lto.o", "lto.o2", "lto.o10"]


def test_paddings_and_seeds_differ() -> None:
    assert len({padding_source(number, retained=False) for number in range(PADDINGS)}) == PADDINGS
    for name in (".text.unlikely", ".text.hot", ".text"):
        sizes = [
            int(
                re.findall(
                    rf"{re.escape(name)}\.padding,.*?\.skip (\d+)",
                    padding_source(number, retained=True),
                )[0]
            )
            for number in range(PADDINGS)
        ]
        assert sorted(sizes) == [16 << number for number in range(PADDINGS)]
    line = link(*MANY)
    padded = {relink(line, ORDER, seed, "/out", PADS)[1:-10] for seed in range(40)}
    assert len({frozenset(each) & set(PADS) for each in padded}) > 20
    assert len({seed_of(name, 1, k) for name in ("a", "b") for k in range(9)}) == 18
    assert seed_of("a", 1, 0) == seed_of("a", 1, 0) != seed_of("a", 2, 0)


def test_lld_is_told_not_to_order_by_calls_what_is_shuffled() -> None:
    clang = replace(SHUFFLE, gcc=False, profiled=True)
    line = link("-fuse-ld=lld", *MANY)
    assert "-Wl,--no-call-graph-profile-sort" in relink(line, clang, 1, "/out", PADS)
    for other in (replace(clang, gcc=True), replace(clang, profiled=False)):
        assert "-Wl,--no-call-graph-profile-sort" not in relink(line, other, 1, "/out", PADS)
    (note,) = notes_on(line, replace(clang, how="order"))
    assert note == "lld orders hot functions by counted calls, so only the others change places"
