from __future__ import annotations

import pytest

from ensign_redis.translate import BadCommand, drive_words, split_command


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SET __key__ __data__", ["SET", "{key}", "{data}"]),
        (" GET   stream:__key__ ", ["GET", "stream:{key}"]),
        ("HSET \"a b\" 'c d' e", ["HSET", "a b", "c d", "e"]),
        ("HSET h 'it\\'s' x", ["HSET", "h", "it's", "x"]),
        ('SET a "say \\"so\\"\\n"', ["SET", "a", 'say "so"\n']),
        ("SET {T:__key__}_a 0", ["SET", "{T:{key}}_a", "0"]),
        ('EVAL "" 0', ["EVAL", "", "0"]),
        # memtier replaces the first of an argument alone.
        ("ZADD a 1 u-__key__:s-__key__", ["ZADD", "a", "1", "u-{key}:s-__key__"]),
    ],
)
def test_commands_become_a_drives_words(text: str, words: list[str]) -> None:
    assert drive_words(text) == words


def test_bytes_that_are_no_text_are_written_in_hexadecimal() -> None:
    assert drive_words('RESTORE k 0 "\\x00\\x0a\\xffA"') == ["RESTORE", "k", "0", "{hex:000aff41}"]
    assert split_command('"\\x41\\xzz\\q"') == [b"Axzzq"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ('SET "a', "left open"),
        ('SET "a"b', "ends inside a word"),
        ("SET a x__data__", "inside a longer word"),
    ],
)
def test_commands_that_are_none(text: str, said: str) -> None:
    with pytest.raises(BadCommand, match=said):
        drive_words(text)
