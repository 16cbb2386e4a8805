from __future__ import annotations

from ensign_redis.expand import scaled
from suite_sources import made

_PRELOAD = """  preload_tool:
    tool: memtier_benchmark
    arguments: '--ratio 1:0 -n allkeys --key-pattern P:P --key-minimum 1 --key-maximum 100000'
"""
_READ = "--ratio 0:1 --key-pattern R:R --key-minimum 1 --key-maximum 100000 --data-size 64"


def test_a_preload_still_covers_what_is_read() -> None:
    test = scaled(made(_READ, more=_PRELOAD), 0.1, values=False)
    keys, (preload,) = test.drive.commands[0].keys, test.preload
    written = preload.commands[0].keys
    assert keys is not None
    assert written is not None
    assert (keys.first, keys.last) == (written.first, written.last) == (1, 10_000)
    assert preload.operations == 10_000
    assert test.drive.data.size == 64


def test_few_keys_stay_and_connections_of_a_parallel_pattern_keep_one_each() -> None:
    few = scaled(made("--ratio 0:1 --key-maximum 400"), 0.1, values=False)
    keys = few.drive.commands[0].keys
    assert keys is not None
    assert keys.number == 401
    parallel = made("--ratio 1:0 --key-pattern P:P -c 500 -t 4 --key-maximum 100000")
    keys = scaled(parallel, 0.001, values=False).drive.commands[0].keys
    assert keys is not None
    assert keys.number == 2000


def test_fixed_requests_shrink_and_values_where_asked() -> None:
    test = made("-n 1000 -c 10 -t 1 --data-size-range 10-200")
    assert scaled(test, 0.5, values=False).requests == 5000
    assert scaled(test, 0.5, values=True).drive.data.sizes == (5, 100)
    assert scaled(test, 1.0, values=True) is test


def test_a_gaussian_keeps_its_shape() -> None:
    arguments = "--ratio 0:1 --key-pattern G:G --key-maximum 99999 --key-median 25000"
    keys = scaled(made(f"{arguments} --key-stddev 1000"), 0.1, values=False)
    drawn = keys.drive.commands[0].keys
    assert drawn is not None
    assert (drawn.last, drawn.center, drawn.deviation) == (9999, 2500.0, 100.0)


def test_where_few_keys_stay_all_are_still_preloaded() -> None:
    each = _PRELOAD.replace("P:P", "S:S").replace("100000", "1000")
    test = scaled(made(_READ.replace("100000", "1000"), more=each), 0.1, values=False)
    (preload,) = test.preload
    keys = preload.commands[0].keys
    assert keys is not None
    assert keys.number == 1000
    assert preload.operations == 1000 * preload.connections


def test_elements_of_one_key_shrink_as_asked() -> None:
    one = """  preload_tool:
    tool: memtier_benchmark
    arguments: >
      --command "RPUSH __key__ __data__" -n 100000 -c 1 -t 1 --key-minimum 1 --key-maximum 1
"""
    (preload,) = scaled(made(_READ, more=one), 0.1, values=False).preload
    assert preload.operations == 10_000
