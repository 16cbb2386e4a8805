"""CMake. Pure.

The build type is one that CMake knows nothing of, so that it has no level of its own. Its flags are
the variant's, too: they come after what a project appends to CMAKE_C_FLAGS.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensign.builders.systems.build_system import (
    Listing,
    Recognized,
    build_folder,
    flags,
    only_by_variables,
    with_recipe,
)
from ensign.model.study_build import Build, SystemName
from ensign.model.study_problems import Problem

_LIST = "CMakeLists.txt"
_TYPE = "None"


class CMake:
    """CMake, with make or, where the options ask for it, Ninja."""

    name: SystemName = "cmake"
    texts: tuple[str, ...] = (_LIST,)

    def recognized(self, listing: Listing) -> Recognized | None:
        """See `BuildSystem`."""
        if _LIST not in listing.names:
            return None
        return Recognized(self.name, programs=("cmake", "make"))

    def problems(self, build: Build) -> Iterator[Problem]:
        """See `BuildSystem`."""
        return only_by_variables(build)

    def recipe(self, build: Build) -> Build:
        """See `BuildSystem`."""
        folder = build_folder(build)
        made = [] if build.in_source else [["rm", "-rf", folder]]
        leftovers = [f"{build.folder}/{leftover}" for leftover in ("CMakeCache.txt", "CMakeFiles")]
        building = ["cmake", "--build", folder, "--parallel", "{jobs}", "--verbose"]
        targets = ["--target", *build.targets] if build.targets else []
        return with_recipe(
            build,
            [*made, ["rm", "-rf", *leftovers]],
            [self._configure(build, folder), [*building, *targets]],
        )

    def _configure(self, build: Build, folder: str) -> list[str]:
        compiling, linking = flags(build, "cflags"), flags(build, "ldflags")
        # Programs by the environment: CXX may be empty, where there is no such compiler.
        command = ["env", "CC={cc}", "CXX={cxx_if_any}", "cmake", "-S", build.folder, "-B", folder]
        command.append(f"-DCMAKE_BUILD_TYPE={_TYPE}")
        command += [
            f"-DCMAKE_{prefix}{tool.upper()}:FILEPATH={{{tool}}}"
            for tool in ("ar", "ranlib")
            for prefix in ("", "C_COMPILER_", "CXX_COMPILER_")
        ]
        command.append("-DCMAKE_NM:FILEPATH={nm}")
        command += [
            f"-DCMAKE_{language}_FLAGS{ending}={compiling}"
            for language in ("C", "CXX")
            for ending in ("", f"_{_TYPE.upper()}")
        ]
        command += [
            f"-DCMAKE_{kind}_LINKER_FLAGS={linking}" for kind in ("EXE", "SHARED", "MODULE")
        ]
        return [*command, *build.options]
