"""A study file that is damaged anywhere is a study, or one error that names the file and a line.

The same damage each time (`derandomize`), for a few seconds.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensign.experiment.study_file import parse_study
from ensign.model.errors import StudyError

STUDIES = sorted((Path(__file__).parents[2] / "studies" / "redis").glob("*.toml"))
TEXTS = [path.read_text("utf-8") for path in STUDIES]
WORDS = sorted({word for text in TEXTS for word in text.split()})
SCRAPS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        ["", '"', "'", "[", "]", "{", "}", "=", "\n", "[[", "-1", "1e400", "nan", "0x"]
    ),
    st.sampled_from(["true", "2020-01-01", '"1h"', '"{artifact}"', "[]", "{}", '""', "9" * 30]),
    st.sampled_from(WORDS),
)
# Where something is put in place of up to forty characters, as a part of the text's length.
DAMAGE = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), SCRAPS), min_size=1, max_size=3)


def accepted(text: str) -> bool:
    path = Path("/study/damaged.toml")
    try:
        parse_study(text, path, machine_cpus=frozenset({0, 1}))
    except StudyError as error:
        assert str(error).startswith(str(path))  # noqa: PT017  # either is right
        return False
    return True


@pytest.mark.parametrize("text", TEXTS, ids=[path.name for path in STUDIES])
def test_the_studies_are_accepted_whole(text: str) -> None:
    assert accepted(text)


@settings(derandomize=True, max_examples=60)
@given(text=st.sampled_from(TEXTS), damage=DAMAGE)
def test_what_is_damaged_is_a_study_or_an_error(
    text: str, damage: list[tuple[float, int, str]]
) -> None:
    for place, length, scrap in damage:
        at = int(place * len(text))
        text = text[:at] + scrap + text[at + length :]
    accepted(text)


# A value of any kind in place of one that is right.
VALUES = st.recursive(
    st.one_of(
        st.integers(-(2**70), 2**70).map(str),
        st.floats(allow_nan=True).map(repr),
        st.booleans().map(lambda value: str(value).lower()),
        st.text(
            st.characters(exclude_characters="\\'\"", categories=("L", "N", "P")), max_size=8
        ).map(lambda text: f"'{text}'"),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: f"[{', '.join(each)}]"),
        inner.map(lambda each: f"{{ a = {each} }}"),
    ),
    max_leaves=4,
)


@settings(derandomize=True, max_examples=80)
@given(text=st.sampled_from(TEXTS), place=st.floats(0, 1), value=VALUES)
def test_a_value_of_another_kind_is_told(text: str, place: float, value: str) -> None:
    lines = text.splitlines()
    of_keys = [number for number, line in enumerate(lines) if " = " in line]
    number = of_keys[int(place * (len(of_keys) - 1))]
    lines[number] = f"{lines[number].partition(' = ')[0]} = {value}"
    accepted("\n".join(lines))
