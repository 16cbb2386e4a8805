"""The interface of a kind of workload for those that check, plan and race it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ensign.model.drive import Drive
from ensign.model.study import Study
from ensign.model.study_problems import Problem, Where
from ensign.model.study_workload import Workload
from ensign.model.trials import NamedScore, Score


@dataclass(frozen=True, slots=True)
class Operations:
    """Source of the number of operations: a count, a pattern of the output, or a file.

    `json` is the path of a file that it writes, and the JSON pointer of the number in that. Without
    any of these a run is one operation.
    """

    count: int | None = None
    pattern: str | None = None
    json: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ReportText:
    """A file of JSON that a run writes, and how the scores in it are read.

    `scores` gets the document, and raises CommandFailed where that is none of its framework.
    """

    file: str
    scores: Callable[[object], tuple[NamedScore, ...]]


@dataclass(frozen=True, slots=True)
class PrintedReport:
    """Output of a run, and how the scores in it are read; see `ReportText`."""

    scores: Callable[[str], tuple[NamedScore, ...]]


@dataclass(frozen=True, slots=True)
class OwnRun:
    """The program's own command; placeholders are still to be filled.

    `scores` are patterns in what it prints, with their names: those that its kind knows. `env` is
    what that kind adds to its environment.
    """

    argv: tuple[str, ...]
    operations: Operations
    scores: tuple[tuple[str, Score], ...] = ()
    report: ReportText | PrintedReport | None = None
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedServer:
    """The program as a server, and the command of a load generator."""

    argv: tuple[str, ...]
    operations: Operations


@dataclass(frozen=True, slots=True)
class DrivenServer:
    """The program as a server, to which ensign's own load generator sends a drive."""

    drive: Drive


Processes = OwnRun | LoadedServer | DrivenServer


class WorkloadKind(Protocol):
    """A kind of workload. Each is a module of this package and a row of `registry.KINDS`."""

    def has(self, workload: Workload) -> bool:
        """True if the workload is of this kind, by the keys that it has."""
        ...

    def counts_itself(self, workload: Workload) -> bool:
        """True if it says what it completed, though the study does not."""
        ...

    def problems(self, study: Study, workload: Workload, where: Where) -> Iterator[Problem]:
        """Problems of the study with it; `where` leads to the workload's table."""
        ...

    def processes(self, workload: Workload, requests: int | None) -> Processes:
        """Command of one execution; `requests` are to be sent, where a number was chosen."""
        ...


def said_operations(workload: Workload) -> Operations | None:
    """Operations of a run as the study gives them; None where it says nothing."""
    operations = workload.operations
    if operations is None:
        return None
    return (
        Operations(pattern=operations)
        if isinstance(operations, str)
        else Operations(count=operations)
    )
