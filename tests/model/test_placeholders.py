from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ensign.model.placeholders import fill, fill_all, fill_some, names_in


def test_names_in_order_and_other_braces_left_alone() -> None:
    text = "{port} {redis-cli} {} { x } {1} {'a': 1} {{tmp}} {port}"
    assert names_in(text) == ("port", "redis-cli", "port")


def test_what_is_filled_again_later_keeps_its_doubled_braces() -> None:
    once = fill_some('{"n":{n}} {{n}} {{m}} {m} {n}', {"n": "7"})
    assert once == '{"n":7} {{n}} {{m}} {m} 7'
    assert fill(once, {"m": "8"}) == '{"n":7} {n} {m} 8 7'


def test_fill_replaces_known_names_only() -> None:
    values = {"port": "7", "tmp": "/t"}
    assert fill("{port}:{variant}:{tmp}/x", values) == "7:{variant}:/t/x"
    assert fill_all(["{port}", "{}"], values) == ("7", "{}")


def test_double_braces_stand_for_the_text_itself() -> None:
    assert fill("{{port}} {port}", {"port": "7"}) == "{port} 7"
    assert fill("{{1,2},{3,4}}", {}) == "{{1,2},{3,4}}"


def test_values_are_not_filled_again() -> None:
    assert fill("{a}{b}", {"a": "{b}", "b": "x"}) == "{b}x"


@given(st.text(alphabet="{}ab-1 "))
def test_a_text_without_names_stays(text: str) -> None:
    if not names_in(text) and "{{" not in text:
        assert fill(text, {"a": "z"}) == text
