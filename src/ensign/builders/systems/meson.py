"""Meson, with Ninja. Pure.

Levels, LTO and profiles are the variant's flags, so Meson's own words for them are all turned off.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensign.builders.systems.build_system import (
    BUILD_FOLDER,
    Listing,
    Recognized,
    flags,
    not_for,
    only_by_variables,
    with_recipe,
)
from ensign.model.study_build import Build, SystemName
from ensign.model.study_problems import Problem

_FILE = "meson.build"
_OFF = (
    "-Dbuildtype=plain",
    "-Doptimization=plain",
    "-Ddebug=false",
    "-Db_lto=false",
    "-Db_pgo=off",
    "-Dwerror=false",
)


class Meson:
    """Meson."""

    name: SystemName = "meson"
    texts: tuple[str, ...] = (_FILE,)

    def recognized(self, listing: Listing) -> Recognized | None:
        """See `BuildSystem`."""
        if _FILE not in listing.names:
            return None
        return Recognized(self.name, programs=("meson", "ninja"))

    def problems(self, build: Build) -> Iterator[Problem]:
        """See `BuildSystem`."""
        yield from only_by_variables(build)
        yield from not_for(build, "in_source")

    def recipe(self, build: Build) -> Build:
        """See `BuildSystem`."""
        environment = [
            "CC={cc}",
            "CXX={cxx_if_any}",
            "AR={ar}",
            "NM={nm}",
            f"CFLAGS={flags(build, 'cflags')}",
            f"CXXFLAGS={flags(build, 'cflags')}",
            f"LDFLAGS={flags(build, 'ldflags')}",
        ]
        setup = ["meson", "setup", *_OFF, "--wrap-mode=nodownload", *build.options]
        return with_recipe(
            build,
            [["rm", "-rf", BUILD_FOLDER]],
            [
                ["env", *environment, *setup, BUILD_FOLDER, build.folder],
                ["ninja", "-C", BUILD_FOLDER, "-j{jobs}", "-v", *build.targets],
            ],
        )
