"""A server to which ensign's own load generator sends requests. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ensign.model.study import Study
from ensign.model.study_problems import Problem, Where
from ensign.model.study_workload import Workload
from ensign.model.units import parse_duration_ns
from ensign.workloads.kind import DrivenServer

_NOT_OF_DRIVES = (
    *("input", "deadline", "output", "score", "scores", "operations"),
    *("expected", "expected_sha256", "benchmarks", "folder", "ignore_failure"),
)
_LATENCY_SLICE_NS = 250_000_000


class DriveKind:
    """A workload with a `drive`."""

    def has(self, workload: Workload) -> bool:
        """True if it has the key of this kind."""
        return workload.drive is not None

    def counts_itself(self, workload: Workload) -> bool:  # noqa: ARG002
        """Always: what is sent is counted."""
        return True

    def problems(self, study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
        """There is a server, and nothing is said of a process that there is not."""
        called, drive = f"workload '{workload.name}'", workload.drive
        if study.server is None:
            yield Problem((*where, "drive"), f"{called} has a 'drive', but there is no [server]")
        for key in _NOT_OF_DRIVES:
            if key in workload.model_fields_set:
                yield Problem((*where, key), f"'{key}' of {called} means nothing to a drive")
        if workload.requests is not None and drive is not None and drive.operations is not None:
            text = f"{called} has both 'requests' and 'operations' of its drive; one is enough"
            yield Problem((*where, "requests"), text)

    def processes(self, workload: Workload, requests: int | None) -> DrivenServer:  # noqa: ARG002
        """Requests of a workload. ValueError for a workload of another kind."""
        if workload.drive is None:
            raise ValueError(f"workload {workload.name} has no drive")
        return DrivenServer(workload.drive)


def slice_problems(study: Study) -> Iterator[Problem]:
    """Slices of drives and slices of processes are raced by different modes.

    Short slices measure how caches fill, and nothing can queue in them.
    """
    race, mode = study.race, study.race.turns.value
    short = race.mode == "driven" and parse_duration_ns(race.slice) < _LATENCY_SLICE_NS
    for index, workload in enumerate(study.workloads):
        called, where = f"workload '{workload.name}'", ("workloads", index)
        drive = workload.drive
        if mode == "driven" and drive is None:
            text = f"{called} has no 'drive', which 'mode' = \"driven\" needs of every workload"
            yield Problem(where, text)
        if mode == "interleaved" and drive is not None:
            text = f"{called} has a 'drive': set 'mode' in [race] to \"driven\" or \"alternating\""
            yield Problem((*where, "drive"), text)
        if short and drive is not None and drive.latency:
            text = (
                f"'latency' of {called} needs slices of 250ms or more, or whole executions: "
                "set 'slice' or 'mode' in [race]"
            )
            yield Problem((*where, "drive", "latency"), text)
