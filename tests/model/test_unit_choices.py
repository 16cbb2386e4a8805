from __future__ import annotations

import pytest
from pydantic import ValidationError

from ensign.model.study_axes import Choice
from ensign.model.unit_choices import read_unit_choices, unit_choices
from ensign.model.variants import Variant, of_units


def test_globs_say_which_sources_have_the_choices() -> None:
    some = read_unit_choices("src/a.c lib/*.c: optimization=-O3 flags=-fno-plt -g1")
    assert some.by_axis == {"optimization": "-O3", "flags": "-fno-plt -g1"}
    assert [some.has(each) for each in ("src/a.c", "lib/x.c", "src/b.c")] == [True, True, False]
    others = read_unit_choices("all but src/a.c: lto=off")
    assert [others.has(each) for each in ("src/a.c", "src/b.c")] == [False, True]
    assert others.others().has("src/a.c")


def test_a_text_is_read_as_it_is_written() -> None:
    text = unit_choices(["a.c"], [("flags", "-g1 -O"), ("target", "native")], inverted=True)
    assert text == "all but a.c: target=native flags=-g1 -O"
    assert str(read_unit_choices(text)) == text
    assert read_unit_choices("a.c: flags=").by_axis == {"flags": ""}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a.c optimization=-O3", "is not written as"),
        (": optimization=-O3", "is not written as"),
        ("a.c: ", "says no AXIS=VALUE"),
        ("a.c: bolt=on", "'bolt=on' is not a choice of sources"),
        ("a.c: optimization=fast", "is not an optimization level"),
        ("a.c: lto=maybe", "'lto'"),
        ("a.c: flags=-O3", "belongs to the axis 'optimization'"),
    ],
)
def test_a_mistake_is_told(text: str, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Choice(units=text)


def test_sources_have_the_rest_from_their_variant() -> None:
    variant = Variant("v", "gcc-12", "-O2", flags="-g1", units="a.c: compiler=clang-19")
    assert of_units(variant) == Variant("v", "clang-19", "-O2", flags="-g1")
    assert of_units(Variant("v", "gcc-12", "-O2")) is None
