"""Where the specification is published, and which of its files are tests. Pure."""

from __future__ import annotations

from pathlib import PurePath

from ensign.model.study_suite import Suite

# The version that ensign was written against.
PINNED = Suite(
    kind="redis-benchmarks-specification",
    version="0.3.47",
    sha256="7227cac7480a6a2922b5b713df01dc5b1030e90d4d59bee905b7c3fda49122db",
    tests=["*"],
)
PACKAGE = "redis_benchmarks_specification"
FOLDERS = ("test-suites", "vector-search-test-suites")
_NO_TEST = "defaults"


def is_test(path: PurePath) -> bool:
    """Whether a file is a test, by its name."""
    return path.suffix in (".yml", ".yaml") and path.stem != _NO_TEST
