"""What was checked is what was raced."""

from __future__ import annotations

import re

import pytest

from end_to_end.conftest import Ensign
from everyday.projects import PLAIN, write_project
from everyday.truth import Said, Truth, studied

BROKEN = '["", "-DMORE", "-DBROKEN"]'


def broken(ensign: Ensign, check: str, makefile: str = PLAIN) -> Said:
    """A study of which one variant does less work, and says something else."""
    source = write_project(ensign.folder, makefile, flags=BROKEN, top=check)
    for path in ensign.folder.glob("CMakeLists.txt"):
        path.rename(source / path.name)
    main = source / "main.c"
    less = "#ifdef BROKEN\n    work(atol(argv[1]) / 3);\n    if (0)\n#endif\n    work("
    text = main.read_text().replace("    work(", less)
    other = '#ifdef BROKEN\n    puts("gone");\n#else\n    puts("done");\n#endif'
    main.write_text(text.replace('    puts("done");', other))
    return studied(ensign, **{"gcc-12-O1-DBROKEN": Truth(0.33, 0.33)})


def checks(said: Said) -> dict[str, str]:
    return {
        build["variant"].split("-D")[-1]: build["check"] for build in said.json.get("builds", [])
    }


@pytest.mark.parametrize(
    "again",
    [
        "make -B CC=gcc-12 CFLAGS=-O1 main && ./main 10 | grep -qx done",
        "mkdir -p b && gcc-12 -o b/main main.c work.c && b/main 10 | grep -qx done",
    ],
)
def test_14_a_check_that_builds_for_itself(ensign: Ensign, again: str) -> None:
    said = broken(ensign, f'check.commands = [["sh", "-c", "{again}"]]\n')
    assert checks(said).get("BROKEN") != "passed", said.text
    assert re.search("in_build_tree|the check did not run", said.text), said.text


MAKE = f"{PLAIN}check: main\n\t./main 10 | grep -qx done\n"
CMAKE = """\
main:
	cmake -S . -B build -DCMAKE_C_COMPILER=$(CC) -DCMAKE_C_FLAGS="$(CFLAGS)"
	cmake --build build
	cp -p build/main main
"""
LISTS = """\
cmake_minimum_required(VERSION 3.13)
project(everyday C)
add_executable(main main.c work.c)
enable_testing()
add_test(NAME says COMMAND main 10)
set_tests_properties(says PROPERTIES PASS_REGULAR_EXPRESSION "done")
"""


@pytest.mark.parametrize(
    ("makefile", "command"),
    [
        pytest.param(MAKE, '["make", "check", "CC={cc}", "CFLAGS={cflags}"]', id="make"),
        pytest.param(CMAKE, '["ctest", "--test-dir", "build"]', id="ctest"),
    ],
)
def test_15_a_check_in_the_build_tree(ensign: Ensign, makefile: str, command: str) -> None:
    (ensign.folder / "CMakeLists.txt").write_text(LISTS)
    said = broken(ensign, f"check = {{ in_build_tree = true, commands = [{command}] }}\n", makefile)
    assert said.done.status == 0, said.done.err
    assert checks(said) == {"gcc-12-O1": "passed", "MORE": "passed", "BROKEN": "failed"}


def test_16_output_that_differs(ensign: Ensign) -> None:
    said = broken(ensign, "")
    assert said.done.status == 0, said.done.err
    assert checks(said)["BROKEN"] == "failed", said.text
    assert checks(said)["MORE"] != "failed", said.text
    assert "gone" in said.text
