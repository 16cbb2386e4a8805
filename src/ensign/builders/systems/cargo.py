"""Cargo. Pure.

Flags go by the settings of the release profile and by RUSTFLAGS, never by a change of the project.
With a `--target` Cargo keeps build scripts and procedural macros, which run here, apart from the
program: the variant's RUSTFLAGS do not reach them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from ensign.builders.systems.build_system import (
    BUILD_FOLDER,
    Listing,
    Recognized,
    not_for,
    only_by_variables,
    with_recipe,
)
from ensign.model.placeholders import CARGO_SETTINGS
from ensign.model.study_build import Build, SystemName
from ensign.model.study_problems import Problem
from ensign.model.study_source import VENDORED

_MANIFEST = "Cargo.toml"
_OWN = f"{BUILD_FOLDER}/cargo"
_ALONE = ("RUSTC_WRAPPER=", "RUSTC_WORKSPACE_WRAPPER=", "CARGO_INCREMENTAL=0")
# Programs, examples and libraries, without the notes on what they depend on. Cargo has each example
# under a second name, too, which ends with a hash.
_TAKE = (
    'find "$1" -maxdepth 2 -type f ! -name ".*" ! -name "*.d" ! -name "*.rlib" ! -name "*.rmeta" '
    f'! -name "*-{"[0-9a-f]" * 16}" "(" -path "$1/examples/*" -o ! -path "$1/*/*" ")" '
    '-exec cp -p {} "$2" ";"'
)


class Cargo:
    """Cargo, offline, by the versions of its lock file."""

    name: SystemName = "cargo"
    texts: tuple[str, ...] = (_MANIFEST,)

    def recognized(self, listing: Listing) -> Recognized | None:
        """See `BuildSystem`."""
        if _MANIFEST not in listing.names:
            return None
        lacking = "Cargo.lock" not in listing.names
        note = "there is no Cargo.lock: run 'cargo generate-lockfile', so that versions are fixed"
        return Recognized(self.name, programs=("cargo", "rustc"), notes=(note,) * lacking)

    def problems(self, build: Build) -> Iterator[Problem]:
        """See `BuildSystem`."""
        yield from only_by_variables(build)
        yield from not_for(build, "in_source", "rewrite", "dependencies")

    def recipe(self, build: Build) -> Build:
        """See `BuildSystem`."""
        settings = ["RUSTC={cc}", *_ALONE, f"{{{CARGO_SETTINGS}}}"]
        command = [*_build(build, settings), "--target", "{rust_target}", *_asked(build)]
        made = f"{_OWN}/{{rust_target}}/release"
        return with_recipe(
            build,
            [["rm", "-rf", BUILD_FOLDER]],
            [
                command,
                ["sh", "-c", _TAKE, "sh", made, BUILD_FOLDER],
            ],
        )


def plain_build(build: Build, cargo: str, rustc: str) -> tuple[tuple[str, ...], ...]:
    """The same without a variant's settings, by the `rustc` of the search path."""
    command = [*_build(build, [f"RUSTC={rustc}", *_ALONE]), *_asked(build)]
    named = (cargo if word == "{cargo}" else word for word in command)
    taken = ("sh", "-c", _TAKE, "sh", f"{_OWN}/release", BUILD_FOLDER)
    return (("mkdir", "-p", BUILD_FOLDER), tuple(named), taken)


def _build(build: Build, settings: list[str]) -> list[str]:
    command = ["env", *settings, "{cargo}", "build", "--release"]
    command += ["--locked", "--offline", "--config", f"{VENDORED}/config.toml"]
    command += ["--manifest-path", str(PurePosixPath(build.folder) / _MANIFEST)]
    return [*command, "--target-dir", _OWN, "-j{jobs}"]


def _asked(build: Build) -> list[str]:
    return [*build.options, *(word for name in build.targets for word in ("--bin", name))]
