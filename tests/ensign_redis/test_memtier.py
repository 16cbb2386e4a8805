from __future__ import annotations

import pytest

from ensign.model.errors import InputError
from ensign_redis.memtier import Memtier, SentCommand, parse_memtier


def parsed(arguments: str) -> Memtier:
    return parse_memtier(arguments, "a.yml: 'clientconfig.arguments'")


def test_defaults_are_memtiers() -> None:
    found = parsed("")
    assert (found.connections, found.requests, found.ratio) == (200, 10_000, (1, 10))
    assert (found.key_minimum, found.key_maximum, found.data_size) == (0, 10_000_000, 32)


def test_options_in_each_of_their_forms() -> None:
    found = parsed('"--data-size" "100" -c 25 -t2 --pipeline=10 -n 30 --key-prefix "" -R')
    assert (found.data_size, found.connections, found.pipeline) == (100, 50, 10)
    assert (found.requests, found.key_prefix, found.random_data) == (30, "", True)


def test_options_after_a_command_are_that_commands() -> None:
    found = parsed(
        '--command "A __key__" --command-ratio 70 --command="B" --command-key-pattern=P '
        '--command "C" --test-time 120'
    )
    assert found.commands == (
        SentCommand("A __key__", 70, "R"),
        SentCommand("B", 1, "P"),
        SentCommand("C", 1, "R"),
    )
    assert found.requests is None


def test_a_time_is_no_number_of_requests() -> None:
    assert parsed("--test-time 120").requests is None
    assert parsed("-n allkeys").all_keys


def test_what_has_no_effect_on_the_load_is_said() -> None:
    found = parsed("--hide-histogram --test-time 5 --hide-histogram --randomize stray")
    assert [text.partition(":")[0] for text in found.dropped] == [
        "--hide-histogram",
        "--test-time",
        "--randomize",
        "'stray'",
    ]


def test_what_a_drive_cannot_say_is_said() -> None:
    found = parsed(
        "--monitor-input x --tls --cluster-mode --reconnect-interval 1 --data-size-pattern S"
    )
    assert found.hindrances == (
        "replays MONITOR input files",
        "needs TLS",
        "needs a cluster",
        "connects anew again and again",
        "has sizes that grow with the key",
    )


def test_weighted_sizes() -> None:
    assert parsed("--data-size-list 10:1,100:3").data_weights == ((10, 1), (100, 3))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--clents 3", "unknown argument --clents"),
        ("-q", "unknown argument -q"),
        ("-c", "--clients needs a value"),
        ("-c x", "--clients x: not a number"),
        ("-c 0", "--clients 0: must be at least 1"),
        ("--ratio 1-1", "--ratio 1-1: must be two numbers"),
        ("--key-pattern R", "must be two letters"),
        ("--key-pattern R:X", "must be one of R, G, Z, S, P"),
        ("--command-ratio 2", "there is no --command before it"),
        ('--command "a" --command-ratio 0', "must be at least 1"),
        ("--data-size-range 8", "must be two numbers"),
        ("--data-size-list 10:1,7", "must be sizes and weights"),
        ("--data-size-pattern x", "must be R or S"),
        ("--protocol memcache", "not a protocol of Redis"),
        ('--command "a', "No closing quotation"),
    ],
)
def test_mistakes_name_the_file_and_the_argument(arguments: str, said: str) -> None:
    with pytest.raises(InputError) as raised:
        parsed(arguments)
    assert str(raised.value).startswith("a.yml: 'clientconfig.arguments': ")
    assert said in str(raised.value)
