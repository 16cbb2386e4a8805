"""A real build by Cargo, of a crate without dependencies, whose manifest overrides a level."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensign.builders.build import build_variants
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.lab.study_file import parse_study
from ensign.model.errors import CommandFailed, InputError

_FILES = {
    "Cargo.toml": '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n',
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "small"\nversion = "0.1.0"\n',
    "build.rs": "fn main() {}\n",
    "src/main.rs": 'fn main() { println!("small"); }\n',
}
_STUDY = """\
name = "small"
source = {{ kind = "path", path = "source" }}

[build]
system = "cargo"
artifact = "ensign-build/small"
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


def request_of(folder: Path, options: str = "", compilers: str = '["rustc"]') -> BuildRequest:
    for name, text in _FILES.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    path = folder / "small.toml"
    text = _STUDY.format(options=options, compilers=compilers)
    read = parse_study(text, path)
    return BuildRequest(read.study, path, read.variants, read.variants[0].name)


def test_what_was_asked_for_is_what_cargo_builds(tmp_path: Path, ports: BuildPorts) -> None:
    (result,) = build_variants(request_of(tmp_path), ports).results
    assert result.facts.status == "built"
    assert result.findings == ()
    assert result.facts.flags == ("-Copt-level=1", "-Cdebuginfo=1", "-Clto=fat", "-Cpanic=abort")


def test_lto_that_an_option_takes_away_is_named(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    options = 'options = ["--config", "profile.release.lto=false"]'
    with pytest.raises(CommandFailed, match="linked small with lto=off"):
        build_variants(request_of(tmp_path, options), recording_ports)


def test_rustc_and_a_compiler_of_c_are_not_on_one_axis(tmp_path: Path, ports: BuildPorts) -> None:
    request = request_of(tmp_path, compilers='["rustc", "gcc-12"]')
    with pytest.raises(InputError, match="no program is built by either"):
        build_variants(request, ports)
