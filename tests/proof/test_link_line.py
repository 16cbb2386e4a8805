from __future__ import annotations

from ensign.model.calls import LinkWord
from ensign.proof.archives import Member
from ensign.proof.facts import Order
from ensign.proof.link_line import (
    LineInput,
    order_facts,
    used_by_map,
    used_by_symbols,
)


def an_object(name: str, defines: str, needs: str = "") -> LineInput:
    return LineInput(
        LinkWord(name), name, "object", frozenset(defines.split()), frozenset(needs.split())
    )


def archive(name: str, **members: str) -> LineInput:
    found = tuple(
        Member(f"{each}.o", language="", defines=frozenset(names.split()), needs=frozenset())
        for each, names in members.items()
    )
    return LineInput(LinkWord(name), name, "archive", members=found)


MAIN = an_object("main.o", "main", "fast slow")


def test_members_seen_in_maps_of_all_linkers() -> None:
    gnu = "Archive member included\n\n./liba.a(x.o)    main.o (fast)\n"
    lld = "  11c0  11c0  4  16   /b/liba.a(y.o):(.text)\n"
    assert used_by_map(gnu + lld) == {("liba.a", "x.o"), ("liba.a", "y.o")}


def test_a_member_whose_symbols_an_object_defines_itself_left_no_trace() -> None:
    inputs = (MAIN, archive("liba.a", x="main", y="fast"))
    assert used_by_symbols(inputs, frozenset({"main", "fast"})) == {"liba.a": frozenset({"y.o"})}


def test_one_symbol_from_the_archive_and_one_silently_from_the_shared_library() -> None:
    shared = LineInput(LinkWord("-lslow"), "libslow.so", "shared", frozenset({"slow"}))
    inputs = (MAIN, shared, archive("liba.a", x="fast", y="slow"))
    (fact,) = order_facts(inputs, {"liba.a": frozenset({"x.o"})})
    assert (fact.order, fact.other, fact.symbols) == (Order.AFTER_SHARED, "-lslow", ("slow",))


def test_a_shared_library_wins_over_an_archive_that_stands_before_the_object() -> None:
    shared = LineInput(LinkWord("-lslow"), "libslow.so", "shared", frozenset({"slow"}))
    inputs = (archive("liba.a", x="slow"), MAIN, shared)
    (fact,) = order_facts(inputs, {})
    assert (fact.order, fact.other, fact.winner) == (Order.BEFORE_OBJECTS, "main.o", "-lslow")


def test_an_archive_twice_around_another_is_one_duplicate() -> None:
    a, b = archive("liba.a", x="fast"), archive("libb.a", y="slow")
    used = {"liba.a": frozenset({"x.o"}), "libb.a": frozenset({"y.o"})}
    (fact,) = order_facts((MAIN, a, b, a), used)
    assert (fact.order, fact.library) == (Order.DUPLICATE, "liba.a")


def test_whole_archives_and_groups_are_meant() -> None:
    whole = LineInput(LinkWord("liba.a", whole=True), "liba.a", "archive")
    libm = LineInput(LinkWord("-lm", grouped=True), "libm.so", "shared")
    assert order_facts((MAIN, whole, libm, libm), {}) == ()


def test_an_archive_of_the_project_may_be_useless_one_of_the_system_is_nobodys_fault() -> None:
    stub = LineInput(LinkWord("-ldl"), "/usr/lib/x86_64-linux-gnu/libdl.a", "archive")
    (fact,) = order_facts((MAIN, stub, archive("libspare.a", x="spare")), {})
    assert (fact.order, fact.library) == (Order.UNUSED, "libspare.a")
