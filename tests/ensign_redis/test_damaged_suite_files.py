"""A test of a suite that is damaged anywhere is a test, inexpressible, or an error with its file.

The same damage each time (`derandomize`), for a few seconds.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensign.model.errors import InputError
from ensign.workloads.plugin import SourceFile
from ensign_redis.suite_file import init_lines, parse_suite
from ensign_redis.translate import translate
from suite_sources import source

ARGUMENTS = (
    "--ratio 1:4 --key-pattern P:R -c 5 -t 2 --key-maximum 99 -d 10 --test-time 9",
    '--command "SET __key__ __data__" --command-ratio 3 --command-key-pattern=R --pipeline 10',
)
PRELOAD = """  check:
    keyspacelen: 99
  init_commands:
    - '"SET" "a" "b c"'
    - ["GET", 1]
  preload_tool:
    tool: memtier_benchmark
    arguments: '--key-maximum 99 -n allkeys --ratio 1:0'
"""
SCRAPS = st.one_of(
    st.text(max_size=5),
    st.sampled_from(
        ["", " ", "\n", "'", '"', "[", "{", "- ", ": ", "&a", "*a", "!!int ", "|", "%"]
    ),
    st.sampled_from(["1", "-1", "1e400", ".nan", "null", "2020-01-01", "__key__", "--", "9" * 30]),
)
DAMAGE = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 20), SCRAPS), min_size=1, max_size=3)


def read(text: str) -> None:
    given_source = SourceFile("damaged.yml", text)
    try:
        init_lines(parse_suite(given_source).database, given_source.file)
        translate(given_source)
    except InputError as error:
        assert str(error).startswith("damaged.yml")  # noqa: PT017  # either is right


@settings(derandomize=True, max_examples=200)
@given(arguments=st.sampled_from(ARGUMENTS), damage=DAMAGE)
def test_what_is_damaged_is_told(arguments: str, damage: list[tuple[float, int, str]]) -> None:
    text = source(arguments, more=PRELOAD).text
    for place, length, scrap in damage:
        at = int(place * len(text))
        text = text[:at] + scrap + text[at + length :]
    read(text)


@pytest.mark.parametrize("value", ["!!int x", "2020-13-45", "!!timestamp no"])
def test_a_value_that_cannot_be_made_is_told_with_its_file(value: str) -> None:
    with pytest.raises(InputError, match=r"^damaged\.yml: not YAML: "):
        parse_suite(SourceFile("damaged.yml", f"dbconfig: {value}"))


def test_the_whole_one_is_read() -> None:
    for arguments in ARGUMENTS:
        read(source(arguments, more=PRELOAD).text)
