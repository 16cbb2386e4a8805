"""Relinks have no debug information; the program that was linked first has it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ensign.explain.relinked_places import with_lines
from ensign.meter.client import find_meter
from ensign.meter.questions import Place, located

ONE = """
static inline __attribute__((always_inline)) int twice(int n) { return n * n + n / 3; }
static __attribute__((noipa)) int local(int n) { return n + 1; }
__attribute__((noipa)) int one(int n) { int s = 0; while (n--) s += twice(n); return s + local(n); }
"""
TWO = """
static __attribute__((noipa)) int local(int n) { return n - 5; }
__attribute__((noipa)) int two(int n) { return local(n) / 7; }
"""
MAIN = "int one(int), two(int); int main(int n, char **w) { (void)w; return one(n) + two(n); }"


@pytest.fixture
def programs(tmp_path: Path) -> tuple[Path, Path]:
    """With debug information, and a relink in another order without."""
    for name, text in (("one.c", ONE), ("two.c", TWO), ("main.c", MAIN)):
        (tmp_path / name).write_text(text)
        subprocess.run(["gcc", "-O2", "-g", "-c", name], cwd=tmp_path, check=True)
    objects = ["main.o", "one.o", "two.o"]
    link = ["gcc", "-no-pie"]
    subprocess.run([*link, *objects, "-o", "first"], cwd=tmp_path, check=True)
    subprocess.run(
        [*link, "-g0", "-Wl,-S", *objects[::-1], "-o", "again"], cwd=tmp_path, check=True
    )
    return tmp_path / "first", tmp_path / "again"


def places(program: Path, symbol: str, times: int = 1) -> list[Place]:
    """All places of the functions of that name."""
    said = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in said.splitlines() if line.endswith(f" {symbol}")]
    assert len(rows) == times
    base = 0x400000
    offsets = [int(row[0], 16) - base + n for row in rows for n in range(int(row[1], 16))]
    return list(located(find_meter(), {program: offsets})[program])


def test_places_of_a_relink_have_the_lines_of_the_program(programs: tuple[Path, Path]) -> None:
    first, again = programs
    before = places(again, "one")
    assert not any(place.inlined or place.line for place in before)
    after = with_lines({again: before}, {again: first})[again]
    assert [place.start for place in after] == [place.start for place in before]
    told = [(place.inlined, place.line) for place in places(first, "one")]
    assert [(place.inlined, place.line) for place in after] == told
    assert ("twice", "one") in {place.inlined for place in after}


def test_what_cannot_be_told_stays_as_it_is(programs: tuple[Path, Path], tmp_path: Path) -> None:
    first, again = programs
    # Two functions have that name.
    unsure = places(again, "local", 2)
    assert with_lines({again: unsure}, {again: first})[again] == unsure
    known = places(again, "two")
    assert with_lines({again: known}, {})[again] == known
    (tmp_path / "none").write_text("no program")
    assert with_lines({again: known}, {again: tmp_path / "none"})[again] == known
    # Of another size it is another function.
    other = [place._replace(size=1) for place in known]
    assert with_lines({again: other}, {again: first})[again] == other
