"""Cargo as a build system: its commands, the crates of its lock file, and one real build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ensign.builders.systems.build_system import Listing
from ensign.builders.systems.registry import recognize
from ensign.experiment.study_file import parse_study
from ensign.host.cache import Cache
from ensign.host.processes import Outcome, ProcessRequest
from ensign.model.errors import InputError, StudyError
from ensign.model.study import Study
from ensign.sources.crates import with_crates
from ensign.sources.downloads import Fetched, Fetcher
from fakes import FakeProcesses
from real_processes import PlainProcesses

STUDY = """\
name = "any"
layouts = "natural"
source = {{ kind = "path", path = "." }}

[build]
system = "cargo"
{build}
artifact = "ensign-build/x"

[axes]
compiler = ["rustc"]
optimization = ["-O3"]
codegen_units = {units}

[baseline]
codegen_units = 16

[[workloads]]
name = "run"
command = ["{{artifact}}"]
"""


def study_of(build: str = "", units: str = "[16, 1]") -> Study:
    return parse_study(STUDY.format(build=build, units=units), Path("study.toml")).study


def test_a_tree_of_cargo_is_recognized_and_told_that_it_lacks_a_lock_file() -> None:
    (found,) = recognize(Listing(frozenset({"Cargo.toml", "src"})))
    assert found.system == "cargo"
    assert "cargo generate-lockfile" in found.notes[0]
    assert not recognize(Listing(frozenset({"Cargo.toml", "Cargo.lock"})))[0].notes


def test_it_builds_locked_offline_and_apart_from_what_runs_here() -> None:
    study = study_of('targets = ["x"]\noptions = ["--no-default-features"]')
    command = study.build.commands[0]
    for word in ("--locked", "--offline", "--target", "RUSTC_WRAPPER=", "{cargo_settings}"):
        assert word in command
    assert command[-3:] == ["--no-default-features", "--bin", "x"]
    assert study.source.crates == "."
    assert study_of('folder = "tool"').source.crates == "tool"


@pytest.mark.parametrize(
    ("build", "said"),
    [("in_source = true", "in_source"), ('flags_by = "environment"', "flags_by")],
)
def test_what_means_nothing_to_cargo_is_refused(build: str, said: str) -> None:
    with pytest.raises(StudyError, match=said):
        study_of(build)


def test_codegen_units_are_numbers() -> None:
    assert study_of().axes.codegen_units == ["16", "1"]
    for wrong in ("[0, 16]", "[16, 257]", '[16, "many"]', "[16, true]", "[16, 1.5]"):
        with pytest.raises(StudyError, match="codegen"):
            study_of(units=wrong)


@pytest.fixture
def fetcher(tmp_path: Path) -> Fetcher:
    work = tmp_path / "work"
    work.mkdir()
    cache = Cache(tmp_path / "cache")
    return Fetcher(PlainProcesses(), cache, {}, tmp_path / "study.toml", work, {})


def tree_of(folder: Path, **files: str) -> Fetched:
    for name, text in files.items():
        path = folder / "tree" / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Fetched(folder / "tree")


def test_without_crates_of_others_nothing_is_fetched(tmp_path: Path, fetcher: Fetcher) -> None:
    source = study_of().source
    fetched = tree_of(tmp_path, Cargo_toml="[package]", Cargo_lock="version = 4\n")
    made = with_crates(source, fetched, fetcher)
    assert (made.tree / "ensign-crates/config.toml").read_text() == ""
    assert not (fetched.tree / "ensign-crates").exists()
    assert made.resolved[0][0] == "cargo_lock_sha256"


def test_a_project_that_brings_its_crates_is_left_as_it_is(
    tmp_path: Path, fetcher: Fetcher
) -> None:
    source = study_of().source
    fetched = tree_of(tmp_path, Cargo_toml="", Cargo_lock='version = 4\nsource = "registry+x"\n')
    (fetched.tree / ".cargo").mkdir()
    (fetched.tree / ".cargo/config.toml").write_text('[source.x]\nreplace-with = "vendored"\n')
    made = with_crates(source, fetched, fetcher)
    assert (made.tree / "ensign-crates/config.toml").read_text() == ""


def test_crates_are_fetched_once(tmp_path: Path, fetcher: Fetcher) -> None:
    def vendor(request: ProcessRequest) -> Outcome:
        crates = Path(request.argv[-1])
        (crates / "a-1.0.0").mkdir(parents=True)
        (crates / "a-1.0.0/lib.rs").write_text("")
        config = crates.parent / "config.toml"
        config.write_text(f'[source.vendored-sources]\ndirectory = "{crates}"\n')
        return Outcome(0, None, "exited")

    processes = FakeProcesses(vendor)
    fetched = tree_of(tmp_path, Cargo_toml="", Cargo_lock='version = 4\nsource = "registry+x"\n')
    for name in ("first", "second"):
        work = tmp_path / name
        work.mkdir()
        again = replace(fetcher, processes=processes, work=work)
        made = with_crates(study_of().source, fetched, again)
        assert (made.tree / "ensign-crates/a-1.0.0/lib.rs").exists()
    assert len(processes.requests) == 1


def test_a_missing_lock_file_is_an_error_with_the_way_out(tmp_path: Path, fetcher: Fetcher) -> None:
    with pytest.raises(InputError, match=r"no Cargo\.lock.*cargo generate-lockfile"):
        with_crates(study_of().source, tree_of(tmp_path, Cargo_toml=""), fetcher)


def test_a_missing_manifest_is_an_error(tmp_path: Path, fetcher: Fetcher) -> None:
    with pytest.raises(InputError, match=r"no Cargo\.toml"):
        with_crates(study_of().source, tree_of(tmp_path, Cargo_lock="version = 4\n"), fetcher)


def test_a_lock_file_that_is_a_link_is_none(tmp_path: Path, fetcher: Fetcher) -> None:
    fetched = tree_of(tmp_path, Cargo_toml="")
    (fetched.tree / "Cargo.lock").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match=r"no Cargo\.lock"):
        with_crates(study_of().source, fetched, fetcher)
