"""Sheets of environments: what differs, the most consequential first."""

import pytest

from ensign.model.environment_sheet import (
    EnvironmentSheet,
    differing_words,
    read_sheet,
    sheet_differences,
)


def test_the_libc_comes_before_packages_and_equal_facts_are_left_out() -> None:
    one = EnvironmentSheet("a", {"packages.x": "1", "libc": "glibc 2.31", "kernel": "6"})
    other = EnvironmentSheet("b", {"packages.x": "2", "libc": "glibc 2.36", "kernel": "6"})
    found = sheet_differences(one, other)
    assert [each.fact for each in found] == ["libc", "packages.x"]
    assert (found[0].one, found[0].other) == ("glibc 2.31", "glibc 2.36")
    assert found[0].why


def test_a_sheet_is_read_as_it_was_written() -> None:
    sheet = EnvironmentSheet("a", {"libc": "glibc 2.31"})
    assert read_sheet(sheet.as_json()) == sheet


@pytest.mark.parametrize("damaged", [[], {}, {"schema": 1}, {"schema": 2}, 7, None])
def test_what_is_no_sheet_is_refused(damaged: object) -> None:
    with pytest.raises(ValueError, match="it "):
        read_sheet(damaged)


def test_what_decides_the_code_comes_before_what_is_not_installed() -> None:
    one = EnvironmentSheet(
        "a",
        {"compilers.gcc.version": "12", "flags.CFLAGS": "-O2", "functions.libm.so.6": "log",
         "kernel": "6", "packages.x": "1", "python.CFLAGS": "-O2 -fno-semantic-interposition",
         "compilers.gcc-9.configured": "only here"},
    )  # fmt: skip
    other = EnvironmentSheet(
        "b",
        {"compilers.gcc.version": "10", "flags.CFLAGS": "-O3", "functions.libm.so.6": "log sin",
         "kernel": "5", "packages.x": "2", "python.CFLAGS": "-O2"},
    )  # fmt: skip
    found = sheet_differences(one, other)
    assert [each.fact for each in found] == [
        "functions.libm.so.6", "python.CFLAGS", "compilers.gcc.version", "flags.CFLAGS", "kernel",
        "packages.x", "compilers.gcc-9.configured",
    ]  # fmt: skip
    assert "-fno-semantic-interposition, in a alone" in found[1].why


def test_of_long_texts_the_words_that_differ_are_shown() -> None:
    assert differing_words("-a -b -c -d", "-a -b -c -e -d") == ("no other words", "-e")
    assert differing_words("-O2 -g", "-O3 -g") == ("-O2 -g", "-O3 -g")
    assert differing_words("a b c d", "d c b a") == ("a b c d", "d c b a")
