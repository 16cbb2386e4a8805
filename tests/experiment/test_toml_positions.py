from __future__ import annotations

import pytest

from ensign.experiment.study_file import find_positions

TEXT = """\
top = 1
a.b = [ # first
    { x = 1 }, # an item

    ["p",
     "q"],
]

[table."quoted key"]
text = \"\"\"
[not.a.table]
\"\"\"
after = true

[[many]]
n = 1
[many.sub]
k = 1
[[many]]
n = 2
[[many.inner]]
v = 1
[[many.inner]]
v = 2
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 1),
        (("a",), 2),
        (("a", "b"), 2),
        (("a", "b", 0, "x"), 3),
        (("a", "b", 1), 5),
        (("a", "b", 1, 1), 6),
        (("table",), 9),
        (("table", "quoted key", "text"), 10),
        (("table", "quoted key", "after"), 13),
        (("many", 0, "n"), 16),
        (("many", 0, "sub", "k"), 18),
        (("many", 1), 19),
        (("many", 1, "n"), 20),
        (("many", 1, "inner", 1, "v"), 24),
    ],
)
def test_every_key_and_item_has_its_line(path: tuple[str | int, ...], line: int) -> None:
    assert find_positions(TEXT).line(path) == line


def test_an_unknown_path_gets_the_line_of_what_is_around_it() -> None:
    positions = find_positions(TEXT)
    assert positions.line(("many", 1, "missing")) == 19
    assert positions.line(("a", "b", 1, 7)) == 5
    assert positions.line(("nowhere",)) == 1


def test_no_position_in_an_empty_text() -> None:
    assert find_positions("# nothing\n").line(("a",)) is None
