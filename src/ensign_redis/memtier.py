"""The arguments of memtier_benchmark, read as it reads them. Pure.

Source: usage() and config_parse_args() of memtier_benchmark.cpp, versions 2.0 to 2.3.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ensign.model.errors import InputError

# Options that change what is measured or printed, but not one byte of what is sent.
WITHOUT_EFFECT = {
    "--hide-histogram": "printing only",
    "--print-percentiles": "printing only",
    "--run-count": "executions are ensign's own",
    "--test-time": "time becomes executions and slices",
    "--randomize": "ensign has seeds of its own",
    "--thread-conn-start-max-jitter-micros": "connections are made before anything is measured",
    "--show-config": "printing only",
    "--distinct-client-seed": "each connection always draws its own keys",
}
# What a drive cannot say, in words for people.
NOT_EXPRESSIBLE = {
    "--reconnect-interval": "connects anew again and again",
    "--monitor-input": "replays MONITOR input files",
    "--tls": "needs TLS",
    "--cluster-mode": "needs a cluster",
    "--wait-ratio": "waits for replicas",
    "--data-import": "imports data from a file",
    "--data-offset": "writes with an offset",
    "--multi-key-get": "collects keys into MGET",
    "--clients-start": "adds connections in steps",
    "--select-db": "uses another database than 0",
    "--transaction": "draws one key for a whole transaction",
}
_FLAGS = {
    "--hide-histogram",
    "--randomize",
    "--distinct-client-seed",
    "--random-data",
    "--scan-incremental-iteration",
    "--tls",
    "--cluster-mode",
    "--show-config",
    "--transaction",
}
_SHORT = {
    "-c": "--clients",
    "-t": "--threads",
    "-n": "--requests",
    "-d": "--data-size",
    "-R": "--random-data",
    "-x": "--run-count",
}
_RANGE = re.compile(r"(\d+)-(\d+)")
_RATIO = re.compile(r"(\d+):(\d+)")
PATTERNS = "RGZSP"
_LONGEST_NUMBER = 15


@dataclass(frozen=True, slots=True)
class SentCommand:
    """One `--command`: its text, how often in a row, and the letter of its key pattern."""

    text: str
    ratio: int = 1
    pattern: str = "R"


@dataclass(frozen=True, slots=True)
class Memtier:
    """What memtier_benchmark would do. `requests` are of one connection; None goes by time.

    Sizes are bytes; `scan` follows the cursor of SCAN. `dropped` has the options without effect on
    the load, `hindrances` those that a drive cannot say.
    """

    clients: int = 50
    threads: int = 4
    requests: int | None = None
    all_keys: bool = False
    pipeline: int = 1
    commands: tuple[SentCommand, ...] = ()
    ratio: tuple[int, int] = (1, 10)
    patterns: str = "RR"
    key_prefix: str = "memtier-"
    key_minimum: int = 0
    key_maximum: int = 10_000_000
    key_center: float | None = None
    key_deviation: float | None = None
    key_exponent: float = 1.0
    data_size: int = 32
    data_sizes: tuple[int, int] | None = None
    data_weights: tuple[tuple[int, int], ...] = ()
    random_data: bool = False
    expiry_s: tuple[int, int] | None = None
    rate_per_connection_s: int | None = None
    protocol: int = 2
    scan: bool = False
    timed: bool = False
    distinct_seeds: bool = False
    dropped: tuple[str, ...] = ()
    hindrances: tuple[str, ...] = field(default=())

    @property
    def connections(self) -> int:
        """All together."""
        return self.clients * self.threads


def parse_memtier(arguments: str, where: str) -> Memtier:
    """What the arguments mean. InputError, starting with `where`, for one that is none."""
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    found = Memtier()
    for name, value in _pairs(words, where):
        found = _with(found, name, value, where)
    if not found.timed and found.requests is None and not found.all_keys:
        found = replace(found, requests=10_000)
    return found


def _pairs(words: list[str], where: str) -> Iterator[tuple[str, str]]:
    """Each option by its long name, with its value; words that are neither are passed over."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            # As getopt does. They come from quotes inside quotes.
            yield "", word
            continue
        name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], "", "")
        if not word.startswith("--"):
            value = word[2:]
        name = _SHORT.get(name, name)
        if not (name in _OPTIONS or name in WITHOUT_EFFECT or name in NOT_EXPRESSIBLE):
            raise InputError(f"{where}: unknown argument {name}")
        if name not in _FLAGS and not equals and not value:
            following = next(rest, None)
            if following is None:
                raise InputError(f"{where}: {name} needs a value")
            value = following
        yield name, value


def _with(found: Memtier, name: str, value: str, where: str) -> Memtier:
    if not name:
        return _noted(found, f"'{value[:40]}': a word of no option, which memtier passes over")
    if name in WITHOUT_EFFECT:
        if name == "--test-time":
            found = replace(found, timed=True)
        if name == "--distinct-client-seed":
            found = replace(found, distinct_seeds=True)
        return _noted(found, f"{name}: {WITHOUT_EFFECT[name]}")
    if name in NOT_EXPRESSIBLE:
        return replace(found, hindrances=(*found.hindrances, NOT_EXPRESSIBLE[name]))
    try:
        return replace(found, **_OPTIONS[name](found, value))
    except ValueError as error:
        said = str(error) if not str(error).startswith("invalid literal") else "not a number"
        raise InputError(f"{where}: {name} {value[:40]}: {said}") from None


def _noted(found: Memtier, text: str) -> Memtier:
    return found if text in found.dropped else replace(found, dropped=(*found.dropped, text))


Changes = dict[str, Any]
_Option = Callable[[Memtier, str], Changes]


def _integer(value: str) -> int:
    if len(value) > _LONGEST_NUMBER:
        raise ValueError("is too large")
    return int(value)


def _number(key: str, least: int = 1) -> _Option:
    def read(_: Memtier, value: str) -> Changes:
        number = _integer(value)
        if number < least:
            raise ValueError(f"must be at least {least}")
        return {key: number}

    return read


def _requests(_: Memtier, value: str) -> Changes:
    return {"all_keys": True} if value == "allkeys" else {"requests": _integer(value)}


def _command(found: Memtier, value: str) -> Changes:
    if not value.strip():
        raise ValueError("an empty command")
    return {"commands": (*found.commands, SentCommand(value))}


def _of_last_command(key: str, read: Callable[[str], object]) -> _Option:
    def change(found: Memtier, value: str) -> Changes:
        if not found.commands:
            raise ValueError("there is no --command before it")
        *others, last = found.commands
        changes: Changes = {key: read(value)}
        return {"commands": (*others, replace(last, **changes))}

    return change


def _share(value: str) -> int:
    number = _integer(value)
    if number < 1:
        raise ValueError("must be at least 1")
    return number


def _pattern(value: str) -> str:
    if value not in tuple(PATTERNS):
        raise ValueError(f"must be one of {', '.join(PATTERNS)}")
    return value


def _patterns(_: Memtier, value: str) -> Changes:
    first, colon, second = value.partition(":")
    if not colon:
        raise ValueError("must be two letters, such as R:R")
    return {"patterns": _pattern(first) + _pattern(second)}


def _two(key: str, form: re.Pattern[str], least: int = 0) -> _Option:
    def read(_: Memtier, value: str) -> Changes:
        match = form.fullmatch(value)
        if match is None:
            raise ValueError("must be two numbers")
        pair = (_integer(match[1]), _integer(match[2]))
        if min(pair) < least:
            raise ValueError(f"must be at least {least}")
        return {key: pair}

    return read


def _weights(_: Memtier, value: str) -> Changes:
    parts = [_RATIO.fullmatch(part) for part in value.split(",")]
    if None in parts:
        raise ValueError("must be sizes and weights, such as 10:1,100:3")
    return {"data_weights": tuple((_integer(part[1]), _integer(part[2])) for part in parts if part)}


def _data_size_pattern(found: Memtier, value: str) -> Changes:
    if value == "S":
        return {"hindrances": (*found.hindrances, "has sizes that grow with the key")}
    if value != "R":
        raise ValueError("must be R or S")
    return {}


def _protocol(_: Memtier, value: str) -> Changes:
    versions = {"redis": 2, "resp2": 2, "resp3": 3, "2": 2, "3": 3}
    if value not in versions:
        raise ValueError("not a protocol of Redis")
    return {"protocol": versions[value]}


def _real(key: str) -> _Option:
    def read(_: Memtier, value: str) -> Changes:
        number = float(value)
        if not math.isfinite(number):
            raise ValueError("must be a number")
        return {key: number}

    return read


_OPTIONS: dict[str, _Option] = {
    "--clients": _number("clients"),
    "--threads": _number("threads"),
    "--requests": _requests,
    "--pipeline": _number("pipeline"),
    "--command": _command,
    "--command-ratio": _of_last_command("ratio", _share),
    "--command-key-pattern": _of_last_command("pattern", _pattern),
    "--ratio": _two("ratio", _RATIO),
    "--key-pattern": _patterns,
    "--key-prefix": lambda _, value: {"key_prefix": value},
    "--key-minimum": _number("key_minimum", 0),
    "--key-maximum": _number("key_maximum", 0),
    "--key-median": _real("key_center"),
    "--key-stddev": _real("key_deviation"),
    "--key-zipf-exp": _real("key_exponent"),
    "--data-size": _number("data_size"),
    "--data-size-range": _two("data_sizes", _RANGE, 1),
    "--data-size-list": _weights,
    "--data-size-pattern": _data_size_pattern,
    "--random-data": lambda _, __: {"random_data": True},
    "--expiry-range": _two("expiry_s", _RANGE, 1),
    "--rate-limiting": _number("rate_per_connection_s"),
    "--protocol": _protocol,
    "--scan-incremental-iteration": lambda _, __: {"scan": True},
}
