from __future__ import annotations

from ensign.toolchains.table import absent, advice, newest, versions

KNOWN = ("gcc-9", "gcc-12", "gcc-12-base", "libclang-rt-14-dev", "libclang-rt-19-dev", "bolt")


def test_versions_are_by_number_and_of_the_same_package() -> None:
    assert versions("gcc-99", KNOWN) == ["gcc-9", "gcc-12"]
    assert versions("gcc-1-base", KNOWN) == ["gcc-12-base"]
    assert versions("libclang-rt-3-dev", KNOWN) == ["libclang-rt-14-dev", "libclang-rt-19-dev"]
    assert versions("bolt-19", KNOWN) == []


def test_the_newest_is_taken_where_one_is_known() -> None:
    assert newest("gcc-1", KNOWN) == "gcc-12"
    assert newest("bolt-19", KNOWN) == "bolt-19"
    assert newest("gcc-12", ()) == "gcc-12"


def test_only_packages_that_are_there_are_advised() -> None:
    assert advice("gcc-12", KNOWN) == "run 'apt-get install gcc-12'"
    assert advice("gcc-13", ()) == "run 'apt-get install gcc-13'"
    assert advice("mold", KNOWN) == "no package of this system is called mold"
    assert absent("gcc-12", KNOWN) == ""
