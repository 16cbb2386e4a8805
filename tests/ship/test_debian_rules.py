from __future__ import annotations

import pytest

from ensign.model.errors import InputError
from ensign.ship.source_change import debian_variables, with_debian_variables
from ensign.toolchains.table import Flags

C, LD = "DEB_CFLAGS_MAINT_APPEND", "DEB_LDFLAGS_MAINT_APPEND"


def test_flags_become_what_dpkg_buildflags_is_told() -> None:
    flags = Flags(("-O3", "-D_FORTIFY_SOURCE=3"), ("-O3", "-flto=auto"))
    assert debian_variables(flags, {"CC": "clang-19"}) == {
        "CC": "clang-19",
        "DEB_CPPFLAGS_MAINT_APPEND": "-D_FORTIFY_SOURCE=3",
        C: "-O3 -D_FORTIFY_SOURCE=3",
        "DEB_CXXFLAGS_MAINT_APPEND": "-O3 -D_FORTIFY_SOURCE=3",
        LD: "-O3 -flto=auto",
    }


def test_new_variables_come_before_whatever_reads_them() -> None:
    rules = "#!/usr/bin/make -f\n# words\nCFLAGS := $(shell dpkg-buildflags)\n%:\n\tdh $@\n"
    assert with_debian_variables(rules, {C: "-O3 $x", LD: "-flto"}) == (
        f"#!/usr/bin/make -f\n# words\n\nexport {C} = -O3 $$x\nexport {LD} = -flto\n"
        "CFLAGS := $(shell dpkg-buildflags)\n%:\n\tdh $@\n"
    )


@pytest.mark.parametrize(
    "assigned",
    [
        f"export {C} = -Wall",
        f"{C}=-Wall",
        f"{C} := -Wall",
        f"{C} ?= -Wall",
        f"export {C} += -Wall \\\n\t-pedantic",
    ],
)
def test_what_the_package_says_itself_stays(assigned: str) -> None:
    rules = f"#!/usr/bin/make -f\n{assigned}\n%:\n\tdh $@\n"
    assert with_debian_variables(rules, {C: "-O3"}) == (
        f"#!/usr/bin/make -f\n{assigned}\nexport {C} += -O3\n%:\n\tdh $@\n"
    )


@pytest.mark.parametrize("value", ["-Da#b", "-Da\nall:"])
def test_what_cannot_stand_in_a_makefile_is_refused(value: str) -> None:
    with pytest.raises(InputError, match="cannot stand in debian/rules"):
        with_debian_variables("", {C: value})
