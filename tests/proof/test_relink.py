from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.model.calls import Call
from ensign.proof.link import command_for_map
from recorded import recorded

LINE = ("cc", "-O2", "main.o", "liba.a")


def link(*words: str) -> Call:
    return recorded(words, "/b/it's here", program="/usr/bin/gcc", wall_ns=1)


@pytest.mark.parametrize("output", [("-o", "program"), ("-oprogram",)])
def test_a_map_comes_from_the_same_link_in_its_folder_with_another_output(
    output: tuple[str, ...],
) -> None:
    assert command_for_map(link(*LINE, *output), "/s") == (
        *("env", "-C", "/b/it's here", "/usr/bin/gcc", "-O2", "main.o", "liba.a"),
        *("-o", "/s/relinked", "-Wl,-Map=/s/link.map"),
    )


def test_a_link_that_a_map_says_nothing_of_is_left_alone() -> None:
    assert command_for_map(None, "/s") == ()
    assert command_for_map(link("cc", "main.o"), "/s") == ()
    assert command_for_map(link(*LINE, "-flto"), "/s") == ()
    assert command_for_map(replace(link(*LINE), wall_ns=60 * 10**9), "/s") == ()
