"""Builds by each system: faults of projects are named, right ones have none."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.builders.build import WrongBaseline, build_variants
from ensign.builders.build_results import BuildReport
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.systems.registry import with_recipe_of_system
from ensign.builders.training import TrainingRun
from ensign.model.study import Study
from ensign.model.variants import Variant
from fakes import FakeTrainer
from planted_projects import plant
from small_studies import CLANG_LTO, GCC_LTO, GCC_O3

GCC_PGO = Variant("gcc-O2-pgo", "gcc-12", "-O2", pgo="on")
CLANG_PGO = Variant("clang-O2-lto-pgo", "clang-19", "-O2", "full", pgo="on")

# How each project goes wrong is in its folder, and differs from system to system.
FAULTS = {
    ("cmake", "lto-lost"): (GCC_LTO, "lto-not-linked", "LTO did not happen"),
    ("cmake", "level"): (GCC_O3, "flag-overridden", "by -O0: part.c"),
    ("cmake", "profile"): (GCC_PGO, "flag-overridden", "by -fno-profile-use: other.c"),
    ("cmake", "archive"): (GCC_O3, "archive-unused", "libspare.a"),
    ("meson", "lto-lost"): (GCC_LTO, "lto-not-linked", "LTO did not happen"),
    ("meson", "level"): (GCC_O3, "flag-overridden", "by -O1: other.c"),
    ("meson", "profile"): (GCC_O3, "profile-missing", "there is no profile"),
    ("meson", "archive"): (GCC_O3, "archive-after-shared", "libfast.a stands after libshared.so"),
    ("autotools", "lto-lost"): (GCC_LTO, "lto-not-linked", "LTO did not happen"),
    ("autotools", "level"): (GCC_O3, "flag-overridden", "by -O0: part.c"),
    ("autotools", "profile"): (GCC_O3, "profile-missing", "there is no profile"),
    ("autotools", "archive"): (
        GCC_O3,
        "archive-after-shared",
        "libfast.a stands after libshared.so",
    ),
}


class LibraryTrainer(FakeTrainer):
    """Runs the program itself, without the meter, with the libraries of its build."""

    def train(self, run: TrainingRun) -> str:
        super().train(run)
        env = {**os.environ, **dict(run.env), "LD_LIBRARY_PATH": ":".join(run.libraries)}
        subprocess.run([run.program], env=env, check=True, capture_output=True, timeout=60)
        return ""


def built(
    folder: Path, ports: BuildPorts, system: str, *variants: Variant, **more: object
) -> BuildReport:
    """What came of a study that names the system, and nothing else of the build."""
    study = Study.model_validate(
        {
            "name": "planted",
            "layouts": "natural",
            "source": {"kind": "path", "path": "source"},
            "build": {"system": system, "artifact": "ensign-build/program", **more},
            "axes": {"compiler": ["gcc-12"]},
            "baseline": {"compiler": "gcc-12"},
            "workloads": [{"name": "run", "command": ["{artifact}"]}],
            "training": {"workloads": [{"name": "learn", "command": ["{artifact}"]}]},
            "check": {"same_output": ["run"]},
        }
    )
    study = with_recipe_of_system(study)
    return build_variants(
        BuildRequest(study, folder / "planted.toml", variants, variants[0].name), ports
    )


@pytest.fixture
def planted_ports(recording_ports: BuildPorts) -> BuildPorts:
    return replace(recording_ports, trainer=LibraryTrainer())


@pytest.mark.parametrize(("system", "fault"), FAULTS)
def test_a_fault_is_named(
    system: str, fault: str, tmp_path: Path, planted_ports: BuildPorts
) -> None:
    plant(tmp_path / "source", system, fault)
    variant, code, text = FAULTS[system, fault]
    try:
        found = built(tmp_path, planted_ports, system, variant).findings
    except WrongBaseline as wrong:
        found = wrong.findings
    # A library of its own has a finding of its own.
    assert {each.code for each in found} == {code}, [each.text for each in found]
    assert text in found[0].text


def test_the_recorder_has_the_last_word_where_a_project_insists_on_its_level(
    tmp_path: Path, planted_ports: BuildPorts
) -> None:
    plant(tmp_path / "source", "cmake", "level")
    report = built(tmp_path, planted_ports, "cmake", GCC_O3, flags_by="recorder")
    assert [each.text for each in report.findings] == []


@pytest.mark.parametrize(
    ("system", "variant", "folder", "library"),
    [
        ("cmake", CLANG_PGO, "ensign-build", "libshared.so"),
        ("meson", CLANG_LTO, "ensign-build", "libshared.so"),
        ("libtool", GCC_LTO, "ensign-build/.libs", "libshared.so.0.0.0"),
    ],
    ids=["cmake", "meson", "autotools"],
)
def test_a_right_project_has_its_library_and_no_finding(
    system: str,
    variant: Variant,
    folder: str,
    library: str,
    tmp_path: Path,
    planted_ports: BuildPorts,
) -> None:
    plant(tmp_path / "source", system)
    program = f"{folder}/program"
    named = "autotools" if system == "libtool" else system
    report = built(tmp_path, planted_ports, named, variant, artifact=program)
    assert [each.text for each in report.findings] == []
    files = report.results[0].facts.files
    assert [each.path for each in files if each.loaded] == [program, f"{folder}/{library}"]
