"""Odd exits: what one variant does ends that variant, and is shown."""

from __future__ import annotations

import re
import stat

import pytest

from end_to_end.conftest import SOON, Ensign
from everyday.conftest import ROUNDS, Shapes
from everyday.projects import write_project
from everyday.truth import PLANTED, Truth, compared, studied

NAMED = ("--name", "one", "--name", "three", "--name", "odd")
TIMED = """\
main: shapes.c
	$(CC) $(CFLAGS) -pthread -o $@ shapes.c $(LDFLAGS)
"""


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        pytest.param("crash", "SIGSEGV|signal 11|segmentation", id="37-crash"),
        pytest.param("fail", "no luck", id="37-failure"),
        pytest.param("hang", "deadline", id="38-hang"),
    ],
)
def test_one_of_three_is_odd(ensign: Ensign, shapes: Shapes, odd: str, reason: str) -> None:
    said = compared(
        ensign, *shapes.pair(f"spin {ROUNDS}"), f"{shapes.one} {odd} {ROUNDS}", *NAMED,
        "--deadline", "1500ms", *SOON,
    )  # fmt: skip
    rows = {row["variant"]: row for row in said.rows if row["metric"] == "cpu"}
    assert rows["three"]["direction"] == "slower", said.text
    assert "odd" not in rows or rows["odd"]["direction"] == "unclear"
    said.withheld_for("odd", reason)


def now_and_then(ensign: Ensign, shapes: Shapes) -> str:
    """Every second run fails."""
    script = ensign.folder / "moody.sh"
    script.write_text(
        f"#!/bin/sh\necho run >> {ensign.folder}/runs\n{shapes.three} spin {ROUNDS}\n"
        f"test $(($(wc -l < {ensign.folder}/runs) % 2)) -ne 0\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return "./moody.sh"


def test_39_one_fails_now_and_then(ensign: Ensign, shapes: Shapes) -> None:
    said = compared(
        ensign, f"{shapes.one} spin {ROUNDS}", now_and_then(ensign, shapes),
        "--name", "one", "--name", "moody",
    )  # fmt: skip
    assert "moody" in said.text
    assert "status 1" in said.text
    said.withheld()


def test_39_counted_where_failures_are_ignored(ensign: Ensign, shapes: Shapes) -> None:
    said = compared(
        ensign, f"{shapes.one} spin {ROUNDS}", now_and_then(ensign, shapes),
        "--name", "one", "--name", "moody", "-i", *SOON,
    )  # fmt: skip
    said.told(moody=Truth(PLANTED, PLANTED))
    assert re.search(r"moody: \d+ of \d+ executions exited with status 1", said.text), said.text


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        pytest.param("raise(11)", "SIGSEGV|signal 11|segmentation|crash", id="signal"),
        pytest.param("for (;;) pause()", "deadline", id="hang"),
        pytest.param("_exit(3)", "status 3", id="status"),
    ],
)
def test_40_a_variant_of_a_study_is_odd(ensign: Ensign, fault: str, reason: str) -> None:
    source = write_project(
        ensign.folder, TIMED, command='["{artifact}", "spin", "5000000"]',
        flags='["", "-DMORE", "-DODD"]', top="",
    )  # fmt: skip
    shapes = source / "shapes.c"
    text = shapes.read_text()
    shapes.write_text(
        text.replace(
            "    spend(number);\n", f"#ifdef ODD\n    {fault};\n#endif\n    spend(number);\n"
        )
    )
    study = ensign.folder / "study.toml"
    study.write_text(study.read_text() + 'deadline = "2s"\n')
    said = studied(ensign)
    assert said.done.status == 0, said.done.err
    first = {row["variant"]: row for row in said.json["suite"]}
    (more,) = (row for name, row in first.items() if name.endswith("MORE"))
    assert more["direction"] == "slower"
    (odd,) = (name for name in {b["variant"] for b in said.json["builds"]} if name.endswith("ODD"))
    said.withheld_for(odd, reason)
