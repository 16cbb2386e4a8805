"""All kinds of workloads, and which of them a workload is. Pure."""

from __future__ import annotations

from ensign.model.study_workload import Workload
from ensign.workloads.benchmarks import BenchmarksKind
from ensign.workloads.command import CommandKind
from ensign.workloads.drive import DriveKind
from ensign.workloads.kind import WorkloadKind
from ensign.workloads.load_generator import LoadGeneratorKind, MemtierKind

# The first that has a workload is its kind: programs that are known by name come first.
KINDS: tuple[WorkloadKind, ...] = (
    MemtierKind(),
    LoadGeneratorKind(),
    DriveKind(),
    BenchmarksKind(),
    CommandKind(),
)


def kind_of(workload: Workload) -> WorkloadKind:
    """The kind of a workload of a checked study. ValueError for one that has none."""
    for kind in KINDS:
        if kind.has(workload):
            return kind
    raise ValueError(f"workload {workload.name} is of no kind")


def may_end_by_the_clock(workload: Workload) -> bool:
    """Whether nothing says how much it does: neither the study nor the workload itself."""
    said = workload.by_turns or workload.operations is not None
    return not said and not kind_of(workload).counts_itself(workload)
