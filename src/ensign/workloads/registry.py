"""All kinds of workloads and published suites, those of plugins too. Pure."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from ensign.model.errors import InputError
from ensign.model.study_problems import suggestion
from ensign.model.study_workload import Workload
from ensign.workloads.benchmarks import BenchmarksKind
from ensign.workloads.command import CommandKind
from ensign.workloads.drive import DriveKind
from ensign.workloads.ends import EndsKind
from ensign.workloads.kind import WorkloadKind
from ensign.workloads.load_generator import LoadGeneratorKind
from ensign.workloads.plugin import Plugin, PublishedSuite

_GROUP = "ensign.workloads"
# The first that has a workload is its kind; those of plugins, which know a program, come first.
KINDS: tuple[WorkloadKind, ...] = (
    EndsKind(),
    LoadGeneratorKind(),
    DriveKind(),
    BenchmarksKind(),
    CommandKind(),
)


@cache
def plugins() -> tuple[Plugin, ...]:
    """The plugins that are installed. InputError, naming the one that cannot be used."""
    return tuple(_loaded(point) for point in entry_points(group=_GROUP))


def _loaded(point: EntryPoint) -> Plugin:
    try:
        plugin = point.load()
    except Exception as error:  # code of others: it may fail in any way
        raise InputError(
            f"plugin '{point.name}' ({point.value}) cannot be loaded: {error}; "
            "mend or uninstall its package"
        ) from error
    if not isinstance(plugin, Plugin):
        raise InputError(f"entry point '{point.name}' of {_GROUP} is not a Plugin of ensign")
    return plugin


def kind_of(workload: Workload) -> WorkloadKind:
    """The kind of a workload of a checked study. ValueError for one that has none."""
    for kind in (*(kind for plugin in plugins() for kind in plugin.kinds), *KINDS):
        if kind.has(workload):
            return kind
    raise ValueError(f"workload {workload.name} is of no kind")


def may_end_by_the_clock(workload: Workload) -> bool:
    """True if nothing says how much it does: neither the study nor the workload itself."""
    counts = workload.by_turns or workload.operations is not None
    return not counts and not kind_of(workload).counts_itself(workload)


def suite_named(name: str) -> PublishedSuite:
    """The suite that `ensign suites` calls so. InputError."""
    return _suite(name, {suite.name: suite for suite in _suites()}, "suite is called")


def suite_of_kind(kind: str) -> PublishedSuite:
    """The suite of that kind in a study. InputError."""
    return _suite(kind, {suite.pinned.kind: suite for suite in _suites()}, "suite is of the kind")


def _suites() -> list[PublishedSuite]:
    return [suite for plugin in plugins() for suite in plugin.suites]


def _suite(word: str, suites: dict[str, PublishedSuite], said: str) -> PublishedSuite:
    if word not in suites:
        raise InputError(f"no {said} '{word}'{suggestion(word, sorted(suites))}")
    return suites[word]
