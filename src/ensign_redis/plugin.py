"""Redis' benchmark suite and its load generator, as a plugin of ensign. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath, PurePosixPath

from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.study_problems import Problem, Where
from ensign.model.study_suite import Listed, Suite
from ensign.model.study_workload import Workload
from ensign.workloads.kind import LoadedServer, Operations, said_operations
from ensign.workloads.load_generator import load_problems
from ensign.workloads.plugin import Plugin, SourceFile, SuiteList
from ensign_redis.expand import expanded
from ensign_redis.listing import listed
from ensign_redis.redis_versions import parse_version
from ensign_redis.translate import translate

_PROGRAM = "memtier_benchmark"
# Where it writes what it did, and where that says how many requests there were.
_JSON, _COUNT = "{tmp}/memtier.json", "/ALL STATS/Totals/Count"
_NO_TEST = "defaults"
_PINNED = Suite(
    kind="redis-benchmarks-specification",
    version="0.3.47",
    sha256="7227cac7480a6a2922b5b713df01dc5b1030e90d4d59bee905b7c3fda49122db",
    tests=["*"],
)


@dataclass(frozen=True, slots=True)
class RedisSpecification:
    """The Redis benchmarks specification: tests for memtier_benchmark, as drives."""

    name: str = "redis"
    pinned: Suite = _PINNED
    package: str = "redis_benchmarks_specification"
    folders: tuple[str, ...] = ("test-suites", "vector-search-test-suites")

    def is_test(self, path: PurePath) -> bool:
        """Whether a file is a test, by its name."""
        return path.suffix in (".yml", ".yaml") and path.stem != _NO_TEST

    def expand(self, study: Study, tests: Mapping[str, SourceFile]) -> Study:
        """The study with the tests that it names as workloads. InputError, see `expanded`."""
        return expanded(study, tests)

    def list_tests(self, tests: Mapping[str, SourceFile], server_version: str) -> SuiteList:
        """Every test as it stands to a server of that version. InputError for no version."""
        version = parse_version(server_version)
        rows: list[Listed] = []
        mistakes: list[str] = []
        for name in sorted(tests):
            try:
                rows.append(listed(translate(tests[name]), version))
            except InputError as error:
                mistakes.append(str(error))
        return SuiteList(tuple(rows), tuple(mistakes))


class MemtierKind:
    """A workload whose `load` is memtier_benchmark."""

    def has(self, workload: Workload) -> bool:
        """By the program's name."""
        return bool(workload.load) and PurePosixPath((workload.load or [""])[0]).name == _PROGRAM

    def counts_itself(self, workload: Workload) -> bool:  # noqa: ARG002
        """Always."""
        return True

    def problems(self, study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
        """What every load generator needs, and no more."""
        yield from load_problems(study, workload, where)

    def processes(self, workload: Workload, requests: int | None) -> LoadedServer:  # noqa: ARG002
        """It counts, unless the study says what counts."""
        argv, said = tuple(workload.load or ()), said_operations(workload)
        if said is not None:
            return LoadedServer(argv, said)
        return LoadedServer((*argv, f"--json-out-file={_JSON}"), Operations(json=(_JSON, _COUNT)))


PLUGIN = Plugin(kinds=(MemtierKind(),), suites=(RedisSpecification(),))
