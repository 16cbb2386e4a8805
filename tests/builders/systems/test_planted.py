"""Builds by each system: faults of projects are named, right ones have none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.builders.build import WrongBaseline, build_variants
from ensign.builders.outcomes import BuildReport
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.systems.registry import with_recipe_of_system
from ensign.model.study import Study
from ensign.model.variants import Variant
from planted_projects import plant
from small_studies import CLANG_LTO, GCC_LTO, GCC_O3

CODES = {
    "lto-lost": "lto-not-linked",
    "level": "flag-overridden",
    "profile": "profile-missing",
    "archive": "archive-unused",
}


def built(
    folder: Path, ports: BuildPorts, system: str, *variants: Variant, **more: object
) -> BuildReport:
    """What came of a study that names the system, and nothing else of the build."""
    study = Study.model_validate(
        {
            "name": "planted",
            "source": {"kind": "path", "path": "source"},
            "build": {"system": system, "artifact": "ensign-build/program", **more},
            "axes": {"compiler": ["gcc-12"]},
            "baseline": {"compiler": "gcc-12"},
            "workloads": [{"name": "run", "command": ["{artifact}"]}],
            "check": {"same_output": []},
        }
    )
    study = with_recipe_of_system(study)
    return build_variants(
        BuildRequest(study, folder / "planted.toml", variants, variants[0].name), ports
    )


@pytest.mark.parametrize("system", ["cmake", "meson", "autotools"])
@pytest.mark.parametrize("fault", CODES)
def test_a_fault_is_named(
    fault: str, system: str, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    plant(tmp_path / "source", system, fault)
    variant = GCC_LTO if fault == "lto-lost" else GCC_O3
    try:
        found = built(tmp_path, recording_ports, system, variant).findings
    except WrongBaseline as wrong:
        found = wrong.findings
    # A library of its own has a finding of its own.
    assert {each.code for each in found} == {CODES[fault]}, [each.text for each in found]


def test_the_recorder_has_the_last_word_where_a_project_insists_on_its_level(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    plant(tmp_path / "source", "cmake", "level")
    report = built(tmp_path, recording_ports, "cmake", GCC_O3, flags_by="recorder")
    assert [each.text for each in report.findings] == []


@pytest.mark.parametrize(
    ("system", "variant"),
    [("cmake", CLANG_LTO), ("meson", CLANG_LTO), ("autotools", GCC_LTO)],
    ids=["cmake", "meson", "autotools"],
)
def test_a_right_project_has_its_library_and_no_finding(
    system: str, variant: Variant, tmp_path: Path, recording_ports: BuildPorts
) -> None:
    plant(tmp_path / "source", system)
    report = built(tmp_path, recording_ports, system, variant)
    assert [each.text for each in report.findings] == []
    files = report.results[0].facts.files
    assert [each.path for each in files if each.loaded] == [
        "ensign-build/program",
        "ensign-build/libshared.so",
    ]


def test_libtools_program_is_the_real_one_with_its_library(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    plant(tmp_path / "source", "libtool")
    program = "ensign-build/.libs/program"
    report = built(tmp_path, recording_ports, "autotools", GCC_LTO, artifact=program)
    assert [each.text for each in report.findings] == []
    files = report.results[0].facts.files
    loaded = [each.path for each in files if each.loaded]
    assert loaded == [program, "ensign-build/.libs/libshared.so.0.0.0"]
