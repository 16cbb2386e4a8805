"""Sheets of environments: what differs, the most consequential first."""

import pytest

from ensign.model.environment_sheet import EnvironmentSheet, read_sheet, sheet_differences


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
