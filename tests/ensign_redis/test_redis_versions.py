from __future__ import annotations

import pytest

from ensign.model.errors import InputError
from ensign_redis.redis_versions import not_runnable, parse_version


@pytest.mark.parametrize(
    ("words", "before", "since", "said"),
    [
        (("hexpire", "k"), "7.2.4", "7.4.0", "HEXPIRE came with Redis 7.4"),
        (("HSETEX", "k"), "7.4", "8.0.0", "HSETEX came with Redis 8.0"),
        (("JSON.GET", "k"), "7.4", "8.0", "JSON.GET needs the module ReJSON, or Redis 8.0"),
        (
            ("XREADGROUP", "GROUP", "g", "c", "claim", "1"),
            "8.2",
            "8.4",
            "XREADGROUP … CLAIM came with Redis 8.4",
        ),
        (("ARGET", "k"), "8.4", "8.6", "ARGET came with a Redis after 8.4"),
        (
            ("RESTORE", "k", "0", "{hex:000a410c000000000000000000}"),
            "7.2",
            "7.4",
            "its payload has version 12 of RDB",
        ),
    ],
)
def test_what_came_later(words: tuple[str, ...], before: str, since: str, said: str) -> None:
    found = not_runnable([("GET", "k"), words], (), parse_version(before))
    assert found is not None
    assert said in found
    assert not_runnable([words], (), parse_version(since)) is None


def test_unknown_commands_and_settings_count_as_known() -> None:
    assert not_runnable([("NONESUCH",)], ("save",), parse_version("7.0.15")) is None
    assert not_runnable([], ("repl-rdb-channel",), parse_version("7.0.15")) is not None


def test_a_version_is_numbers() -> None:
    with pytest.raises(InputError, match="not a version"):
        parse_version("seven")
