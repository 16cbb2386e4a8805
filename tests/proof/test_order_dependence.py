from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ensign.proof.order_dependence import order_groups


def compiled(folder: Path, *flags: str, **sources: str) -> dict[str, Path]:
    """Objects of these sources of C, by name."""
    for name, text in sources.items():
        (folder / f"{name}.c").write_text(text)
        source, target = folder / f"{name}.c", folder / f"{name}.o"
        subprocess.run(["gcc", "-O2", *flags, "-c", source, "-o", target], check=True)
    return {f"{name}.o": folder / f"{name}.o" for name in sources}


def groups(objects: dict[str, Path]) -> list[list[str]]:
    return [sorted(each) for each in order_groups(objects)]


BEGIN = '__attribute__(({kind})) static void begin(void) {{ __asm__(""); }}'
TABLE = '__attribute__((used, section("{table}"))) static int {name} = 1;'
WEAK = '__attribute__((weak, section(".text.{section}"))) int chosen(void) {{ return {value}; }}'


NARROW = pytest.mark.skipif(os.uname().machine != "x86_64", reason="its compiler has no -m32")


@pytest.mark.parametrize("flags", [(), pytest.param(("-m32",), marks=NARROW)])
def test_objects_with_constructors_or_destructors_are_one_group(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    objects = compiled(
        tmp_path,
        *flags,
        a="int a(void) { return 1; }",
        b=BEGIN.format(kind="constructor"),
        c=BEGIN.format(kind="constructor(200)"),
        d=BEGIN.format(kind="destructor"),
    )
    assert groups(objects) == [["b.o", "c.o", "d.o"]]


def test_entries_of_a_table_are_a_group(tmp_path: Path) -> None:
    objects = compiled(
        tmp_path,
        a=TABLE.format(table="one", name="a"),
        b=TABLE.format(table="two", name="b"),
        c=TABLE.format(table="one", name="c"),
        d=TABLE.format(table=".data.one", name="d"),
    )
    assert groups(objects) == [["a.o", "c.o"]]


def test_weak_definitions_that_differ_are_a_group_and_groups_join(tmp_path: Path) -> None:
    objects = compiled(
        tmp_path,
        a=WEAK.format(section="x", value=1),
        b=WEAK.format(section="x", value=1),
        c="int c(void) { return 3; }",
    )
    assert groups(objects) == []
    objects |= compiled(tmp_path, d=WEAK.format(section="x", value=2))
    assert groups(objects) == [["a.o", "b.o", "d.o"]]
    objects |= compiled(
        tmp_path,
        a=WEAK.format(section="x", value=1) + TABLE.format(table="one", name="a"),
        c=TABLE.format(table="one", name="c"),
    )
    assert groups(objects) == [["a.o", "b.o", "c.o", "d.o"]]


def test_what_equal_code_refers_to_may_lie_elsewhere(tmp_path: Path) -> None:
    call = "extern int puts(const char *); " + WEAK.format(section="x", value='puts("text")')
    objects = compiled(tmp_path, a=call, b='const char *s(void) { return "other"; }' + call)
    assert groups(objects) == []


def test_what_cannot_be_read_keeps_its_order_with_constructors(tmp_path: Path) -> None:
    objects = compiled(tmp_path, a=BEGIN.format(kind="constructor"), b="int b;")
    (tmp_path / "main.cc").write_text("int main() {}")
    objects |= {"main.cc": tmp_path / "main.cc", "gone.o": tmp_path / "gone.o"}
    assert groups(objects) == [["a.o", "gone.o", "main.cc"]]
