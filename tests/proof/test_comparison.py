"""Subjects that come to something else than was asked for, in which parts."""

from __future__ import annotations

from ensign.proof.comparison import Difference, differences, grouped

ASKED = {"O": "-O3", "lto": "full", "arch": "native"}
THERE = {"O": "-O2", "arch": "native", "D:NDEBUG": "1"}


def test_subjects_are_compared_by_their_values() -> None:
    assert [*differences(ASKED, THERE)] == [
        Difference("D:NDEBUG", None, "1"),
        Difference("O", "-O3", "-O2"),
        Difference("lto", "full", None),
    ]


def test_only_subjects_that_are_named_count_in_their_order() -> None:
    assert [each.subject for each in differences(ASKED, THERE, ("lto", "arch", "O"))] == [
        "lto",
        "O",
    ]


def test_what_holds_for_several_parts_is_said_once() -> None:
    parts = {"a.c": THERE, "b.c": ASKED, "c.c": THERE}
    found = grouped(
        (each.subject, name) for name in parts for each in differences(ASKED, parts[name])
    )
    assert found == {"D:NDEBUG": ["a.c", "c.c"], "O": ["a.c", "c.c"], "lto": ["a.c", "c.c"]}
