"""Plain make, whose variables are the makefile's own. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ensign.builders.systems.build_system import Listing, Recognized
from ensign.builders.systems.recipe import not_for, with_recipe
from ensign.model.study_build import Build, FlagsBy, SystemName
from ensign.model.study_problems import Problem

_FILES = ("GNUmakefile", "makefile", "Makefile")
_ASSIGNED = re.compile(
    r"^[ \t]*(?:override\s+)?(C(?:XX)?FLAGS|LDFLAGS)\s*([?:+]?:?=)(.*)$", re.MULTILINE
)
# What a variable given on the command line would take away from the makefile.
_NEEDED = re.compile(r"(^|\s)-([DIilLW]\w|std=|f(PIC|pic|no-common)|pthread)|\$")
_CLEAN = "if make -n clean >/dev/null 2>&1; then make clean; fi"


class Make:
    """A makefile that somebody wrote."""

    name: SystemName = "make"
    texts: tuple[str, ...] = _FILES

    def recognized(self, listing: Listing) -> Recognized | None:
        """See `BuildSystem`."""
        found = next((name for name in _FILES if name in listing.names), None)
        if found is None:
            return None
        by = how_it_listens(listing.text(found))
        keys = {} if by == "variables" else {"flags_by": by}
        return Recognized(self.name, keys, programs=("make",))

    def problems(self, build: Build) -> Iterator[Problem]:
        """See `BuildSystem`."""
        return not_for(build, "in_source")

    def recipe(self, build: Build) -> Build:
        """See `BuildSystem`."""
        passed = ["CFLAGS={cflags}", "CXXFLAGS={cflags}", "LDFLAGS={ldflags}"]
        before = ["env", *passed] if build.flags_by == "environment" else []
        after = passed if build.flags_by == "variables" else []
        tools = ["CC={cc}", "CXX={cxx_if_any}", "AR={ar}", "RANLIB={ranlib}", "NM={nm}"]
        command = [*before, "make", "-C", build.folder, "-j{jobs}", "V=1", *tools, *after]
        return with_recipe(
            build,
            [["env", "-C", build.folder, "sh", "-c", _CLEAN]],
            [[*command, *build.options, *build.targets]],
        )


def how_it_listens(text: str) -> FlagsBy:
    """How flags reach the compiler past what a makefile says of its variables.

    A variable of the command line replaces what the makefile assigns to it, which may be needed.
    One of the environment is replaced by the makefile, unless that only adds, or gives a default.
    """
    plain = [match for match in _ASSIGNED.finditer(text) if match[2] in ("=", ":=", "::=")]
    added = [match for match in _ASSIGNED.finditer(text) if match[2] not in ("=", ":=", "::=")]
    if not plain and not added:
        return "variables" if re.search(r"\$[({](C|CXX|LD)FLAGS", text) else "recorder"
    if not plain:
        return "environment"
    if added or any(_NEEDED.search(match[3]) for match in plain):
        return "recorder"
    return "variables"
