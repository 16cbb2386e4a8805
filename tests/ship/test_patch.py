from __future__ import annotations

import pytest

from ensign.model.errors import InputError
from ensign.model.study_build import Edit
from ensign.ship.source_change import EditError, change

VALUES = {"cflags": "-O3 -flto", "link_only": "", "opt": "-O3"}


def edit(replace: str, **where: str) -> Edit:
    return Edit.model_validate({"file": "a/Makefile", "replace": replace, **where})


def changed(text: str, *edits: Edit) -> str:
    return change(edits, {"a/Makefile": text}, VALUES).files["a/Makefile"]


def test_a_line_is_replaced_and_keeps_its_ending() -> None:
    assert changed("A=1\r\nB=2\r\n", edit("B={opt}", line="B=2")) == "A=1\r\nB=-O3\r\n"
    assert changed("A=1\nB=2", edit("B={opt}", line="B=2")) == "A=1\nB=-O3"


def test_an_empty_placeholder_takes_its_blank_along() -> None:
    assert changed("A=1\n", edit("A={opt} {link_only} $(X)", line="A=1")) == "A=-O3 $(X)\n"


def test_groups_and_variables_of_others_stay() -> None:
    edits = edit(r"\1 ${NAME} {cflags}", pattern=r"^(A =) 1$")
    assert changed("A = 1\n", edits) == "A = ${NAME} -O3 -flto\n"


def test_edits_see_what_earlier_ones_made() -> None:
    assert changed("A=1\n", edit("A=2", line="A=1"), edit("A=3", line="A=2")) == "A=3\n"


def test_a_missing_newline_at_the_end_is_said_as_patch_wants_it() -> None:
    diff = change([edit("B=3", line="B=2")], {"a/Makefile": "A=1\nB=2"}, VALUES).diff
    assert diff == (
        "--- a/a/Makefile\n+++ b/a/Makefile\n@@ -1,2 +1,2 @@\n A=1\n"
        "-B=2\n\\ No newline at end of file\n+B=3\n\\ No newline at end of file\n"
    )


def test_an_ambiguous_place_names_its_lines() -> None:
    with pytest.raises(EditError, match="the line 'A=1' 2 times, in lines 1, 3"):
        changed("A=1\nB\nA=1\n", edit("A=2", line="A=1"))
    with pytest.raises(EditError, match="a match of 'A' 2 times, in lines 1, 1"):
        changed("AA\n", edit("B", pattern="A"))


def test_a_group_that_is_not_there_is_an_error() -> None:
    with pytest.raises(EditError, match="invalid group reference"):
        changed("A\n", edit(r"\1", pattern="A"))


def test_nothing_changed_is_an_error() -> None:
    with pytest.raises(InputError, match="change nothing"):
        changed("A\n", edit("A", line="A"))
