"""Carries out studies/redis/SELECTION.md: which tests full.toml races, and which it trains with.

    ensign suites redis --json | python3 bench/select_redis_tests.py --listing
    python3 bench/select_redis_tests.py

The first writes studies/redis/tests.csv again, from the pinned wheel; the second prints both lists
as TOML.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

LISTING = Path(__file__).parents[1] / "studies/redis/tests.csv"
GROUPS = (
    "string", "hash", "list", "set", "sorted-set", "stream", "bitmap", "hyperloglog", "geo",
    "scripting", "generic", "pubsub",
)  # fmt: skip
MOST_PRELOAD_OPERATIONS = 3_000_000
MOST_PRELOAD_BYTES = 2_000_000_000
MOST_CONNECTIONS = 400
MOST_VALUE_BYTES = 65_536
DEEP = 10
SIZE_CLASSES = (1, 100, 1000, 32_768)  # the least of each; none at all is a class, too
PREFIX = "memtier_benchmark-"
# Why: studies/redis/SELECTION.md.
TAKEN_OUT = {
    PREFIX + "3Mkeys-string-mixed-50-50-with-512B-values-with-expiration-pipeline-10-400_conns",
}
COLUMNS = (
    "name", "groups", "pipeline", "connections", "value_bytes", "preload_operations",
    "preload_bytes", "fixed_requests", "follows_replies", "sent",
)  # fmt: skip


class Test(NamedTuple):
    """A test that can be run; `sent` are its commands, each with its pattern of keys, hashed."""

    name: str
    groups: tuple[str, ...]
    pipeline: int
    connections: int
    value_bytes: int
    preload_operations: int
    preload_bytes: int
    fixed_requests: int
    follows_replies: int
    sent: frozenset[str]


def read_listing(text: str) -> list[Test]:
    """The tests of a listing."""
    rows = csv.DictReader(text.splitlines())
    return [
        Test(
            name=row["name"],
            groups=tuple(row["groups"].split()),
            pipeline=int(row["pipeline"]),
            connections=int(row["connections"]),
            value_bytes=int(row["value_bytes"]),
            preload_operations=int(row["preload_operations"]),
            preload_bytes=int(row["preload_bytes"]),
            fixed_requests=int(row["fixed_requests"]),
            follows_replies=int(row["follows_replies"]),
            sent=frozenset(row["sent"].split()),
        )
        for row in rows
    ]


def tests(listing: Iterable[Test]) -> list[Test]:
    """What is raced: of each stratum the first in the order of hashes."""
    first: dict[tuple[str, ...], Test] = {}
    for test in sorted((each for each in listing if is_candidate(each)), key=place):
        first.setdefault(stratum(test), test)
    return sorted(first.values(), key=lambda test: (GROUPS.index(test.groups[0]), test.name))


def kept(raced: Iterable[Test]) -> list[Test]:
    """What is raced, without what was taken out."""
    return [test for test in raced if test.name not in TAKEN_OUT]


def training(listing: Iterable[Test], raced: Sequence[Test]) -> list[Test]:
    """What is learned from: of each group the first that shares no command with what is raced."""
    measured = frozenset[str]().union(*(test.sent for test in raced))
    first: dict[str, Test] = {}
    for test in sorted((each for each in listing if is_candidate(each)), key=place):
        if not test.sent & measured:
            first.setdefault(test.groups[0], test)
    return [first[group] for group in GROUPS if group in first]


def is_candidate(test: Test) -> bool:
    """Whether a test is one of those groups, goes by time, and fits a race of 25 variants."""
    return (
        test.groups[0] in GROUPS
        and not test.fixed_requests
        and not test.follows_replies
        and test.preload_operations <= MOST_PRELOAD_OPERATIONS
        and test.preload_bytes <= MOST_PRELOAD_BYTES
        and test.connections <= MOST_CONNECTIONS
        and test.value_bytes <= MOST_VALUE_BYTES
    )


def stratum(test: Test) -> tuple[str, str, str, str]:
    """Group, depth of pipeline, size of values, and whether commands are mixed."""
    depth = "1" if test.pipeline == 1 else "to 10" if test.pipeline <= DEEP else "more"
    sizes = str(sum(test.value_bytes >= least for least in SIZE_CLASSES))
    return test.groups[0], depth, sizes, "mixed" if len(test.sent) > 1 else "one command"


def place(test: Test) -> str:
    """A test's place in an order that nobody chose."""
    return hashlib.sha256(test.name.encode()).hexdigest()


def as_toml(raced: Sequence[Test], learned: Sequence[Test]) -> str:
    """Both lists as they stand in full.toml."""
    parts = (("[training]", learned), ("[suite]", raced))
    return "\n".join(
        f"{table}\ntests = [\n" + "".join(f'    "{name}",\n' for name in names(chosen)) + "]\n"
        for table, chosen in parts
    )


def names(chosen: Iterable[Test]) -> list[str]:
    """Names without what all have in common."""
    return [test.name.removeprefix(PREFIX) for test in chosen]


def listing_rows(content: Mapping[str, object]) -> Iterator[list[str]]:
    """The rows of a listing, from what `ensign suites redis --json` says."""
    rows = content["tests"]
    assert isinstance(rows, list)
    for row in rows:
        if row["runnable"]:
            yield [
                row["name"],
                " ".join(row["groups"]),
                *(str(int(row[column] or 0)) for column in COLUMNS[2:-1]),
                " ".join(sorted({_short(sent) for sent in row["sent"]})),
            ]


def _short(sent: str) -> str:
    return f"{sent.split(maxsplit=1)[0]}:{hashlib.sha256(sent.encode()).hexdigest()[:8]}"


def main() -> None:
    """See above."""
    if sys.argv[1:2] == ["--listing"]:
        with LISTING.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(listing_rows(json.load(sys.stdin)))
        return
    listing = read_listing(LISTING.read_text())
    raced = tests(listing)
    sys.stdout.write(as_toml(kept(raced), training(listing, raced)))


if __name__ == "__main__":
    main()
