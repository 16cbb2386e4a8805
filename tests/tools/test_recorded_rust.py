"""`ensign record -- cargo`, and what `ensign doctor` makes of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ensign.model.checkup import ArtifactCheckup
from ensign.tools.doctor.artifact import examine_path
from ensign.tools.doctor.inspect_program import examine_program
from real_processes import PlainProcesses

ENSIGN = str(Path(sys.executable).parent / "ensign")
MANIFEST = '[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n'
USER = MANIFEST.format(name="user") + '[dependencies]\nadder = { path = "adder" }\n'

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs Cargo")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of two crates."""
    monkeypatch.setenv("ENSIGN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("RUSTFLAGS", raising=False)
    folder = tmp_path / "tree"
    for each in (folder / "src", folder / "adder/src"):
        each.mkdir(parents=True)
    (folder / "Cargo.toml").write_text(USER)
    (folder / "adder/Cargo.toml").write_text(MANIFEST.format(name="adder"))
    (folder / "adder/src/lib.rs").write_text("pub fn add(a: u64) -> u64 { a * 3 }\n")
    (folder / "src/main.rs").write_text('fn main() { println!("{}", adder::add(4)); }\n')
    return folder


def record(folder: Path, *command: str) -> str:
    argv = [ENSIGN, "record", "--", "cargo", "build", "--offline", *command]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def facts(path: Path) -> dict[str, str]:
    return {each.name: each.value for each in examine_program(path, PlainProcesses()).facts}


def advice(path: Path) -> dict[str, str]:
    return {each.practice: each.text for each in examine_program(path, PlainProcesses()).advice}


def open_questions(found: ArtifactCheckup) -> list[str]:
    return [each.text for each in found.findings if each.code == "not-judged"]


def test_crates_are_known_by_their_calls(tree: Path) -> None:
    assert "(2 compiled, 1 linked)" in record(tree, "--release")
    assert "there was nothing to build" in record(tree, "--release")
    program = tree / "target/release/user"
    said = facts(program)
    assert said["flags"].startswith("opt-level 3 (2 crates)")
    assert said["LTO"] == "none across crates"
    assert said["profile"] == "none was used"
    assert said["target"].startswith("the compiler's default (2 crates)")
    found = examine_path(program, PlainProcesses())
    assert open_questions(found) == [
        "not judged: the order of the link: rustc links by itself, in an order of its own"
    ]
    # Cargo links the program to a second place; it is one file.
    folder = examine_path(tree, PlainProcesses())
    assert [each.path for each in folder.examined] == ["target/release/user"]


def test_what_a_profile_of_cargo_asks_for_is_told(tree: Path) -> None:
    lto = '[profile.release]\nlto = "fat"\n[profile.release.package.adder]\nopt-level = 1\n'
    (tree / "Cargo.toml").write_text(USER + lto)
    (tree / ".cargo").mkdir()
    config = '[build]\nrustflags = ["-C", "target-cpu=x86-64-v2"]\n'
    (tree / ".cargo/config.toml").write_text(config)
    record(tree, "--release")
    said = facts(tree / "target/release/user")
    assert "opt-level 3 (1 crate)" in said["flags"]
    assert "opt-level 1 (1 crate)" in said["flags"]
    assert said["LTO"] == "done by rustc across 2 crates (fat)"
    assert said["target"].startswith("x86-64-v2 (2 crates)")


def test_a_debug_build_is_advised_to_optimize(tree: Path) -> None:
    record(tree)
    program = tree / "target/debug/user"
    said = advice(program)
    assert said["optimize"] == "2 of 2 crates were compiled without it"
    assert said["whole-program optimization"] == "rustc did none across crates"
    (tree / ".ensign-record.jsonl").unlink()
    said = advice(program)
    assert "optimize" not in said
    assert "'ensign record' would" in said["profile feedback"]
