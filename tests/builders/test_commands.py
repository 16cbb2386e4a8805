"""Which program a command of a build is about."""

from __future__ import annotations

import pytest

from ensign.builders.commands import called


@pytest.mark.parametrize(
    ("argv", "name"),
    [
        (("make", "-j2"), "make"),
        (("env", "CC=gcc", "CFLAGS=-O2 -g", "make", "A=b"), "make"),
        (("env", "-C", "src", "sh", "-c", "true"), "sh"),
        (("env", "-u", "env", "X=1", "cmake"), "cmake"),
        (("env", "A=b"), "env"),
    ],
)
def test_a_failed_command_is_named_by_its_program(argv: tuple[str, ...], name: str) -> None:
    assert called(argv) == name
