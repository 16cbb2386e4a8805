"""Changes of projects that are built by CMake or Meson, verified against what was measured."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from build_fixtures import PROJECTS
from ensign.builders.build import build_variants
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.model.builds import ignore
from ensign.model.shipment import Shipment
from ensign.model.study import Study
from ensign.model.variants import Variant
from ensign.ship.rebuild import ship_variant
from ensign.ship.source_change import EditError

BASELINE = Variant("plain", "gcc-12", "-O2")
LTO = Variant("gcc-lto", "gcc-12", "-O3", "full")
CMAKE_LISTS = """\
cmake_minimum_required(VERSION 3.21)
project(parts C)
set(CMAKE_C_FLAGS "${CMAKE_C_FLAGS} -Wall")
add_executable(program main.c part.c other.c)
"""
MESON_BUILD = """\
project('parts', 'c', default_options : ['buildtype=plain'])
executable('program', 'main.c', 'part.c', 'other.c')
"""
PRESETS = """\
{
  "version": 3,
  "configurePresets": [
    {
      "name": "fast",
      "binaryDir": "${sourceDir}/build",
      "environment": { "OLD": "$env{HOME}" },
      "cacheVariables": {
        "CMAKE_C_FLAGS": "{cflags}",
        "CMAKE_EXE_LINKER_FLAGS": "{ldflags}"
      }
    }
  ]
}
"""
NATIVE = """\
[built-in options]
c_args = [{cflags_list}]
c_link_args = [{ldflags_list}]
"""
CMAKE = ["cmake", "-S", ".", "-B", "build", "-DCMAKE_C_COMPILER={cc}"]
MAKE = ["cmake", "--build", "build"]
OF_CMAKE = [[*CMAKE, "-DCMAKE_C_FLAGS={cflags}", "-DCMAKE_EXE_LINKER_FLAGS={ldflags}"], MAKE]
MESON = ["env", "CC={cc}", "meson", "setup", "build"]
NINJA = ["ninja", "-C", "build"]
OF_MESON = [[*MESON, "-Dc_args={cflags}", "-Dc_link_args={ldflags}"], NINJA]

needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
needs_meson = pytest.mark.skipif(
    shutil.which("meson") is None or shutil.which("ninja") is None, reason="needs Meson and Ninja"
)


def ship(
    folder: Path,
    ports: BuildPorts,
    built: list[list[str]],
    edits: list[dict[str, object]],
    commands: list[list[str]],
    variant: Variant = LTO,
) -> Shipment:
    source = folder / "source"
    source.mkdir()
    for each in ("main.c", "part.c", "other.c"):
        shutil.copy(PROJECTS / "proof/parts" / each, source)
    (source / "CMakeLists.txt").write_text(CMAKE_LISTS)
    (source / "meson.build").write_text(MESON_BUILD)
    study = Study.model_validate(
        {
            "name": "shipped",
            "layouts": "natural",
            "source": {"kind": "path", "path": "source"},
            "build": {"commands": built, "artifact": "build/program"},
            "axes": {"compiler": ["gcc-12"]},
            "baseline": {"compiler": "gcc-12"},
            "ship": {"edits": edits, "commands": commands},
            "workloads": [{"name": "run", "command": ["{artifact}"]}],
            "check": {"same_output": []},
        }
    )
    request = BuildRequest(study, folder / "shipped.toml", (BASELINE, variant), BASELINE.name)
    measured = build_variants(request, ports).result(variant.name)
    return ship_variant(request, measured, ports, ignore)


LISTS_EDIT: dict[str, object] = {
    "file": "CMakeLists.txt",
    "line": 'set(CMAKE_C_FLAGS "${CMAKE_C_FLAGS} -Wall")',
    "replace": 'set(CMAKE_C_FLAGS "${CMAKE_C_FLAGS} -Wall {cflags}")\n'
    'set(CMAKE_EXE_LINKER_FLAGS "${CMAKE_EXE_LINKER_FLAGS} {ldflags}")',
}


def patched(folder: Path, shipment: Shipment) -> Path:
    """The source after `patch -p1`."""
    (file,) = shipment.files
    source = folder / "source"
    subprocess.run(["patch", "-p1"], input=file.content, cwd=source, check=True)
    return source


@needs_cmake
def test_a_change_of_cmakelists_has_the_measured_effects(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    shipment = ship(tmp_path, recording_ports, OF_CMAKE, [LISTS_EDIT], [CMAKE, MAKE])
    assert shipment.verified.problems == ()
    assert "-flto" in (patched(tmp_path, shipment) / "CMakeLists.txt").read_text()


@needs_cmake
@pytest.mark.parametrize("lto", ["off", "full"])
def test_an_alignment_is_shipped_by_cmakelists(
    tmp_path: Path, recording_ports: BuildPorts, lto: str
) -> None:
    aligned = Variant("aligned", "gcc-12", "-O3", lto, alignment="loops")
    shipment = ship(tmp_path, recording_ports, OF_CMAKE, [LISTS_EDIT], [CMAKE, MAKE], aligned)
    assert shipment.verified.problems == ()
    assert shipment.verified.same_bytes
    text = (patched(tmp_path, shipment) / "CMakeLists.txt").read_text()
    assert "-falign-functions=64 -falign-loops=32 -falign-jumps=32" in text


@needs_cmake
def test_a_change_of_cmakelists_that_misses_the_link_is_found(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    edits: list[dict[str, object]] = [
        {
            "file": "CMakeLists.txt",
            "pattern": "^add_executable",
            "replace": "add_compile_options({cflags})\nadd_executable",
        }
    ]
    said = ship(tmp_path, recording_ports, OF_CMAKE, edits, [CMAKE, MAKE]).verified.problems
    assert any("at the link, -flto (full) is missing" in each for each in said), said


@needs_cmake
def test_new_presets_have_the_measured_effects(tmp_path: Path, recording_ports: BuildPorts) -> None:
    edits: list[dict[str, object]] = [
        {"file": "CMakePresets.json", "create": True, "replace": PRESETS}
    ]
    commands = [["cmake", "--preset", "fast", "-DCMAKE_C_COMPILER={cc}"], MAKE]
    shipment = ship(tmp_path, recording_ports, OF_CMAKE, edits, commands)
    assert shipment.verified.problems == ()
    made = json.loads((patched(tmp_path, shipment) / "CMakePresets.json").read_text())
    (preset,) = made["configurePresets"]
    assert preset["binaryDir"] == "${sourceDir}/build"
    assert "-flto" in preset["cacheVariables"]["CMAKE_C_FLAGS"]


@needs_meson
def test_a_change_of_meson_build_has_the_measured_effects(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    edits: list[dict[str, object]] = [
        {
            "file": "meson.build",
            "pattern": r"^executable\('program', (.*)\)$",
            "replace": r"executable('program', \1, c_args : [{cflags_list}], "
            "link_args : [{ldflags_list}])",
        }
    ]
    shipment = ship(tmp_path, recording_ports, OF_MESON, edits, [MESON, NINJA])
    assert shipment.verified.problems == ()
    assert "'-O3', " in (patched(tmp_path, shipment) / "meson.build").read_text()


@needs_meson
def test_a_new_native_file_has_the_measured_effects(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    edits: list[dict[str, object]] = [
        {"file": "native/fast.ini", "create": True, "replace": NATIVE}
    ]
    setup = [*MESON, "--native-file", "native/fast.ini"]
    shipment = ship(tmp_path, recording_ports, OF_MESON, edits, [setup, NINJA])
    assert shipment.verified.problems == ()
    assert "c_args = ['-O3'" in (patched(tmp_path, shipment) / "native/fast.ini").read_text()


@needs_cmake
def test_a_file_that_is_there_is_not_created(tmp_path: Path, recording_ports: BuildPorts) -> None:
    edits: list[dict[str, object]] = [
        {"file": "CMakeLists.txt", "create": True, "replace": "project(other)\n"}
    ]
    with pytest.raises(EditError, match=r"there is a CMakeLists\.txt already") as error:
        ship(tmp_path, recording_ports, OF_CMAKE, edits, [CMAKE, MAKE])
    assert error.value.index == 0
