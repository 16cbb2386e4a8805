"""Real builds by Cargo: of a workspace that is right, and of its twin with planted faults."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ensign.builders.build import WrongBaseline, build_variants
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.experiment.study_file import parse_study
from ensign.model.errors import InputError

PROJECTS = Path(__file__).parents[1] / "projects" / "rust"

_STUDY = """\
name = "small"
layouts = "natural"
source = {{ kind = "path", path = "source" }}

[build]
system = "cargo"
folder = "app"
artifact = "ensign-build/app"
{options}

[axes]
compiler = {compilers}
optimization = ["-O1"]
lto = ["full"]
panic = ["abort"]

[baseline]
compiler = "rustc"

[check]
same_output = []

[[workloads]]
name = "run"
command = ["{{artifact}}"]
"""


def request_of(
    folder: Path, project: str = "right", options: str = "", compilers: str = '["rustc"]'
) -> BuildRequest:
    shutil.copytree(PROJECTS / "right", folder / "source")
    if project != "right":
        shutil.copytree(PROJECTS / project, folder / "source", dirs_exist_ok=True)
    path = folder / "small.toml"
    text = _STUDY.format(options=options, compilers=compilers)
    read = parse_study(text, path)
    return BuildRequest(read.study, path, read.variants, read.variants[0].name)


def test_what_was_asked_for_is_what_cargo_builds(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    (result,) = build_variants(request_of(tmp_path), recording_ports).results
    assert result.facts.status == "built"
    assert [each.code for each in result.findings] == ["code-of-c"]
    assert "fast.c" in result.findings[0].text
    assert result.facts.flags == ("-Copt-level=1", "-Cdebuginfo=1", "-Clto=fat", "-Cpanic=abort")


def test_lto_lost_at_the_link_and_a_level_overridden_make_the_name_false(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    options = 'options = ["--config", "profile.release.lto=false"]'
    with pytest.raises(WrongBaseline) as wrong:
        build_variants(request_of(tmp_path, "faults", options), recording_ports)
    found = {each.code: each.text for each in wrong.value.findings}
    assert set(found) == {"flags-differ", "lto-not-linked"}
    assert "1 of 4 crates have s: kern" in found["flags-differ"]
    assert "linked app with lto=off" in found["lto-not-linked"]


def test_what_is_compiled_for_nothing_and_a_profile_without_effect_are_named(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    options = 'own_flags = ["core/src/lib.rs"]'
    (result,) = build_variants(request_of(tmp_path, "faults", options), recording_ports).results
    found = {each.code: each.text for each in result.findings}
    assert set(found) == {"archive-unused", "crate-unused", "profile-of-member"}
    assert "not in the program: extra;" in found["crate-unused"]
    assert "takes nothing of it: fast.c" in found["archive-unused"]
    assert "app/Cargo.toml" in found["profile-of-member"]


def test_rustc_and_a_compiler_of_c_are_not_on_one_axis(tmp_path: Path, ports: BuildPorts) -> None:
    request = request_of(tmp_path, compilers='["rustc", "gcc-12"]')
    with pytest.raises(InputError, match="no program is built by either"):
        build_variants(request, ports)


def test_examples_are_programs_of_a_library(tmp_path: Path, recording_ports: BuildPorts) -> None:
    request = request_of(tmp_path, options='options = ["--example", "small"]')
    examples = tmp_path / "source/app/examples"
    examples.mkdir()
    (examples / "small.rs").write_text('fn main() { println!("{}", 6 * 7); }\n')
    build = request.study.build.model_copy(update={"artifact": "ensign-build/small"})
    study = request.study.model_copy(update={"build": build})
    (result,) = build_variants(replace(request, study=study), recording_ports).results
    assert result.facts.status == "built", result.facts.log_tail
    assert result.artifact is not None
    said = subprocess.run([result.artifact], capture_output=True, text=True, check=True)
    assert said.stdout == "42\n"
    assert [each.name for each in result.artifact.parent.iterdir()] == ["small"]
