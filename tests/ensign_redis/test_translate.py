from __future__ import annotations

import pytest

from ensign.model.errors import InputError
from ensign.workloads.plugin import SourceFile
from ensign_redis.translate import Inexpressible, translate
from suite_sources import made, source

PRELOAD = """  preload_tool:
    tool: memtier_benchmark
    arguments: '{}'
"""


def test_sets_and_gets_by_ratio() -> None:
    test = made("--ratio 1:4 --key-pattern P:R -c 5 -t 2 --key-maximum 99 -d 10 --test-time 9")
    one, two = test.drive.commands
    assert (one.argv, one.share) == (["SET", "{key}", "{data}"], 1)
    assert (two.argv, two.share) == (["GET", "{key}"], 4)
    assert one.keys is not None
    assert two.keys is not None
    assert (one.keys.pattern, two.keys.pattern) == ("parallel", "random")
    assert (one.keys.prefix, one.keys.first, one.keys.last) == ("memtier-", 0, 99)
    assert (test.drive.connections, test.drive.threads, test.drive.data.size) == (10, 1, 10)
    assert test.requests is None


def test_a_side_of_the_ratio_without_share_is_not_sent() -> None:
    (only,) = made("--ratio 0:1").drive.commands
    assert only.name == "GET"


def test_an_expiry_makes_setex() -> None:
    test = made("--ratio 1:0 --expiry-range 5-9")
    assert test.drive.commands[0].argv == ["SETEX", "{key}", "{expiry}", "{data}"]
    assert test.drive.expiry_s == (5, 9)


def test_commands_without_a_key_have_no_range() -> None:
    (command,) = made('--command "PING" --command-key-pattern=R').drive.commands
    assert command.keys is None


@pytest.mark.parametrize(
    ("arguments", "patterns"),
    [
        ('--command "A __key__" --command-key-pattern S --command "B __key__"', "SR"),
        ('--command "A __key__" --command-key-pattern P --command "B __key__"', "PR"),
        # Only the first command's P cuts the range among connections.
        ('--command "A __key__" --command "B __key__" --command-key-pattern P', "RS"),
        ('--command "A __key__" --command-key-pattern Z --command-ratio 3', "Z"),
        ('--command "A __key__" --command-key-pattern G', "G"),
    ],
)
def test_patterns_of_keys(arguments: str, patterns: str) -> None:
    found = [each.keys and each.keys.pattern[0].upper() for each in made(arguments).drive.commands]
    assert "".join(each or "-" for each in found) == patterns


def test_each_connection_of_a_parallel_pattern_has_a_key() -> None:
    test = made('--command "A __key__" --command-key-pattern P --key-minimum 1 --key-maximum 3')
    keys = test.drive.commands[0].keys
    assert keys is not None
    assert keys.number == test.drive.connections == 200


@pytest.mark.parametrize(
    ("arguments", "operations"),
    [
        ("--ratio 1:0 -n allkeys --key-pattern P:P --key-minimum 1 --key-maximum 1000", 1000),
        ("--ratio 1:0 -n allkeys -c 1 -t 2 --key-minimum 1 --key-maximum 1000", 2000),
        ("--ratio 1:0 -n 7 -c 3 -t 2", 42),
    ],
)
def test_a_preload_runs_to_its_end(arguments: str, operations: int) -> None:
    (preload,) = made("--test-time 3", more=PRELOAD.format(arguments)).preload
    assert preload.operations == operations


def test_a_timed_preload_that_fills_its_range_is_one_pass_over_it() -> None:
    arguments = "--ratio 1:0 --key-pattern P:P --key-maximum 999 --test-time 60"
    more = PRELOAD.format(arguments)
    (preload,) = made("--test-time 3", more=f"{more}  check: {{keyspacelen: 1000}}").preload
    assert preload.operations == 1000
    assert isinstance(translate(source("--test-time 3", more=more)), Inexpressible)


def test_initial_commands_and_scripts_are_sent_first() -> None:
    more = """  init_commands:
    - '"SETBIT" "a b" "1"'
    - XGROUP CREATE s g 0
    - [SADD, s, 3]
  init_lua: return 1
"""
    assert made("", more=more).drive.init == [
        ["SETBIT", "a b", "1"],
        ["XGROUP", "CREATE", "s", "g", "0"],
        ["SADD", "s", "3"],
        ["EVAL", "return 1", "0"],
    ]


def test_a_load_of_a_dump_saves_it_before() -> None:
    checks = "{operation: load, keyspacelen: 5, value_size: 1, sample_keys: [a]}"
    test = made('--command "DEBUG RELOAD NOSAVE NOFLUSH" -n 1', more=f"  rdb_checks: {checks}")
    assert test.drive.init == [["SAVE"], ["FLUSHALL", "SYNC"]]
    assert test.requests == 200


def test_settings_become_arguments_of_the_server() -> None:
    assert made("").server_args == ("--save", "", "--zset-max-listpack-entries", "8")


def test_a_scan_follows_its_cursor() -> None:
    scan = "--scan-incremental-iteration --test-time 9"
    (command,) = made(f'--command "SCAN 0 COUNT 10" {scan}').drive.commands
    assert command.argv == ["SCAN", "{cursor}", "COUNT", "10"]
    (command,) = made(f'--command "ZSCAN z 0" {scan}').drive.commands
    assert command.argv == ["ZSCAN", "z", "{cursor}"]
    assert isinstance(translate(source(f'--command "KEYS 0" {scan}')), Inexpressible)


def test_what_differs_without_changing_the_load_is_noted() -> None:
    notes = made("--test-time 9 --pipeline 4 --key-pattern R:R").notes
    assert any("time becomes executions" in note for note in notes)
    assert any("draw the same keys" in note for note in notes)
    assert any("one server thread" in note for note in notes)
    assert any("sent and read as a whole" in note for note in notes)
    assert any("4 threads of the generator become one" in note for note in notes)
    assert not any("same keys" in note for note in made("--distinct-client-seed").notes)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[oss-standalone, oss-", "[oss-", "another set-up of servers: oss-standalone-08-io"),
        ("tool: memtier_benchmark", "tool: redis-benchmark", "load generator redis-benchmark"),
        ("--pipeline 1", "--reconnect-interval 1", "connects anew"),
        ("dbconfig:", "dbconfig:\n  dataset: x.rdb", "needs the data set x.rdb"),
        ("dbconfig:", "dbconfig:\n  wait_for_bgsave: true", "in the background"),
        (
            "clientconfig:\n  tool: memtier_benchmark",
            "clientconfigs: [{tool: a}, {tool: b}]\nclientconfig:\n  tool: memtier_benchmark",
            "several load generators at the same time: a and b",
        ),
    ],
)
def test_what_no_drive_can_say_has_a_reason(old: str, new: str, reason: str) -> None:
    text = source("--pipeline 1").text
    assert old in text
    found = translate(SourceFile("a.yml", text.replace(old, new)))
    assert isinstance(found, Inexpressible)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("--pipeline 1", "--pipelin 1", "a.yml: 'clientconfig.arguments': unknown argument"),
        ("--pipeline 1", "--pipeline x", "a.yml: 'clientconfig.arguments': --pipeline x: not"),
        ("--pipeline 1", "--key-maximum 1 --key-minimum 2", "--key-maximum is below"),
        (
            "--pipeline 1",
            "--command 'A \"b'",
            "a.yml: 'clientconfig.arguments': --command: a quote",
        ),
        ("dbconfig:", "dbconfig:\n  datset: x", "a.yml: 'dbconfig.datset': unknown key"),
        ("tested-groups: [string]", "tested-groups: string", "a.yml: 'tested-groups': "),
        ("tested-groups: [string]", "tested-groups: [string", "not YAML"),
        ("dbconfig:", "dbconfg:", "a.yml: 'dbconfig': Field required"),
    ],
)
def test_mistakes_name_file_and_key(old: str, new: str, said: str) -> None:
    text = source("--pipeline 1").text
    assert old in text
    with pytest.raises(InputError) as raised:
        translate(SourceFile("a.yml", text.replace(old, new, 1)))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
