"""A tree as its build system sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.builders.request import BuildPorts
from ensign.builders.systems.build_system import Inspected, SuiteCommand, Target
from ensign.builders.systems.registry import listing_of, recognize
from inspected_trees import Inspection, inspect_tree
from planted_projects import plant

CTEST = (
    'enable_testing()\nadd_test(NAME counts COMMAND program a "b c")\ninstall(TARGETS program)\n'
)
MESON = """
test('counts', program, args: ['a', meson.project_source_root() / 'part.c'], env: ['A=b'])
benchmark('speed', program)
"""
PROGRAM = "ensign-build/program"
LIBRARY = Target("shared", "shared library", "ensign-build/libshared.so")


def inspected(folder: Path, ports: BuildPorts) -> Inspected:
    before = sorted(each.name for each in folder.iterdir())
    recognized = recognize(listing_of(folder))[0]
    found = inspect_tree(Inspection(folder, "gcc-12"), recognized, ports)
    assert sorted(each.name for each in folder.iterdir()) == before
    return found


def test_cmake_is_asked_by_its_file_api_and_ctest(tmp_path: Path, ports: BuildPorts) -> None:
    plant(tmp_path / "source", "cmake")
    with (tmp_path / "source/CMakeLists.txt").open("a") as file:
        file.write(CTEST)
    found = inspected(tmp_path / "source", ports)
    assert found.notes == ()
    assert found.targets == (Target("program", "program", PROGRAM, installed=True), LIBRARY)
    assert found.tests == (SuiteCommand("counts", (PROGRAM, "a", "b c"), "ensign-build"),)


def test_meson_is_asked_by_its_introspection(tmp_path: Path, ports: BuildPorts) -> None:
    plant(tmp_path / "source", "meson")
    path = tmp_path / "source/meson.build"
    path.write_text(path.read_text().replace("executable(", "program = executable(") + MESON)
    found = inspected(tmp_path / "source", ports)
    assert found.notes == ()
    assert set(found.targets) == {Target("program", "program", PROGRAM), LIBRARY}
    env = (("A", "b"),)
    assert found.tests == (SuiteCommand("counts", (PROGRAM, "a", "part.c"), "ensign-build", env),)
    assert found.benchmarks == (SuiteCommand("speed", (PROGRAM,), "ensign-build"),)


def test_autotools_are_built_and_looked_at(tmp_path: Path, ports: BuildPorts) -> None:
    plant(tmp_path / "source", "autotools")
    found = inspected(tmp_path / "source", ports)
    assert found.notes == ()
    assert {each.path for each in found.programs} == {PROGRAM}
    assert {each.path for each in found.targets} == {PROGRAM, LIBRARY.path}


@pytest.mark.parametrize(
    ("system", "text"),
    [("cmake", "message(FATAL_ERROR no)\n"), ("meson", "error('no')\n")],
)
def test_a_project_that_cannot_be_configured_is_a_note(
    system: str, text: str, tmp_path: Path, ports: BuildPorts
) -> None:
    plant(tmp_path / "source", system)
    name = "CMakeLists.txt" if system == "cmake" else "meson.build"
    with (tmp_path / "source" / name).open("a") as file:
        file.write(text)
    found = inspected(tmp_path / "source", ports)
    assert found.targets == ()
    (note,) = found.notes
    assert note.startswith(f"{system} cannot build this tree here: ")
    assert note.endswith(" no")
