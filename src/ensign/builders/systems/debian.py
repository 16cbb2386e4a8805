"""Debian source packages, built by their own rules. Pure.

`debian/rules build-arch` is what a builder of Debian runs, too. It needs neither root nor what the
documentation is made with, and it ends with the programs in the tree, before they are stripped.
"""

from __future__ import annotations

from collections.abc import Iterator

from ensign.builders.systems.build_system import (
    Listing,
    Recognized,
    flags,
    not_for,
    only_by_variables,
    with_recipe,
)
from ensign.model.study_build import Build, SystemName
from ensign.model.study_problems import Problem

RULES = "debian/rules"
TARGET = "build-arch"
PACKAGED = "dpkg-buildpackage --build=any --unsigned-changes"
# Tests are a check's, not a part of each build; what proves flags is not stripped.
_PLAIN = (
    "DEB_BUILD_OPTIONS=nocheck nodoc noautodbgsym nostrip parallel={jobs}",
    "DEB_BUILD_PROFILES=nocheck nodoc",
    "DEB_RULES_REQUIRES_ROOT=no",
)
_TESTED = (
    "DEB_BUILD_OPTIONS=nodoc noautodbgsym nostrip parallel={jobs}",
    "DEB_BUILD_PROFILES=nodoc",
    "DEB_RULES_REQUIRES_ROOT=no",
)
# What dpkg-buildpackage mends, and tells the rules of the machine.
_WITH_ARCHITECTURE = 'chmod +x debian/rules && eval "$(dpkg-architecture --print-set)" && exec "$@"'
# The steps in which debhelper would run the tests, by its own word: packages override them. What it
# keeps of the build would make it skip all.
_TESTS = """\
rm -f debian/debhelper-build-stamp debian/*.debhelper.log
steps=$(DH_NO_ACT=1 "$@") || exit
tests=$(printf '%s\\n' "$steps" | grep -E '^ +(debian/rules )?[a-z_]*dh_auto_test')
[ -n "$tests" ] || { echo "debian/rules runs no tests: leave out check.package" >&2; exit 1; }
exec sh -e -c "$tests"
"""
# Of the distribution's own flags these are the axes', which say them anew; hardening stays.
_ITS_LTO = "-flto=auto -ffat-lto-objects"


class Debian:
    """Debian's `debian/rules`."""

    name: SystemName = "debian"
    texts: tuple[str, ...] = (RULES,)

    def recognized(self, listing: Listing) -> Recognized | None:
        """See `BuildSystem`."""
        if "debian" not in listing.names or RULES not in listing.texts:
            return None
        return Recognized(self.name, programs=("dpkg-architecture", "dpkg-checkbuilddeps", "make"))

    def problems(self, build: Build) -> Iterator[Problem]:
        """See `BuildSystem`."""
        yield from only_by_variables(build)
        yield from not_for(build, "in_source")
        if build.folder != ".":
            text = f"'folder' means nothing to system '{self.name}': its rules are {RULES}"
            yield Problem(("build", "folder"), text)

    def recipe(self, build: Build) -> Build:
        """See `BuildSystem`."""
        return with_recipe(build, [], [_rules(build, [*_PLAIN, *_of_variant(build)])])


def _of_variant(build: Build) -> list[str]:
    """The variables by which the package is told of the variant."""
    compiling, linking = flags(build, "cflags"), flags(build, "ldflags")
    return [
        "CC={cc}",
        "CXX={cxx_if_any}",
        "AR={ar}",
        "RANLIB={ranlib}",
        "NM={nm}",
        *(
            f"DEB_{language}FLAGS_{change}={words}"
            for language in ("C", "CXX")
            for change, words in (("STRIP", f"-O2 {_ITS_LTO}"), ("APPEND", compiling))
        ),
        f"DEB_CPPFLAGS_APPEND={flags(build, 'cppflags')}",
        f"DEB_LDFLAGS_STRIP={_ITS_LTO}",
        f"DEB_LDFLAGS_APPEND={linking}",
        *build.options,
    ]


def package_tests(build: Build) -> list[str]:
    """The command that runs the tests of the package, in the tree in which it was built."""
    environment = [*_TESTED, *_of_variant(build)]
    rules = [RULES, *(build.targets or [TARGET])]
    script = _WITH_ARCHITECTURE.replace('exec "$@"', _TESTS)
    return ["env", *environment, "sh", "-c", script, "sh", *rules]


def plain_rules(build: Build) -> tuple[str, ...]:
    """The same targets as a builder of Debian has them made: without flags."""
    return tuple(_rules(build, [*_PLAIN, *build.options]))


def _rules(build: Build, environment: list[str]) -> list[str]:
    targets = build.targets or [TARGET]
    return ["env", *environment, "sh", "-c", _WITH_ARCHITECTURE, "sh", RULES, *targets]
