"""Jobs as they are asked for and seen, and the port through which a cluster runs them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ensign.experiment.study_file import NO_OPTIONS, RunOptions
from ensign.model.cluster import HostSlot


@dataclass(frozen=True, slots=True)
class Work:
    """What a job does: `part` of the builds (number, of how many), or the race on a host.

    `study` is the path of its file, `asked` names what was asked for, `files` is the folder
    of the study's results.
    """

    task: str
    study: str
    files: str
    asked: str
    host: HostSlot | None = None
    part: tuple[int, int] = (0, 1)
    options: RunOptions = NO_OPTIONS


@dataclass(frozen=True, slots=True)
class Task:
    """Work that ends some day, by as many jobs as it takes.

    `placement` are Slurm's words for it, without the node; an `exclusive` job has a whole one.
    """

    work: Work
    placement: Mapping[str, str] = field(default_factory=dict)
    time_limit_s: float = 3600.0
    cpus: int | None = None
    memory_bytes: int | None = None

    @property
    def name(self) -> str:
        """Name, the same in every session."""
        return self.work.task

    @property
    def is_race(self) -> bool:
        """True if it races on a host, which it has for itself."""
        return self.work.host is not None

    @property
    def exclusive(self) -> bool:
        """True if its job has a whole node."""
        return self.is_race or self.cpus is None


@dataclass(frozen=True, slots=True)
class Submission:
    """A job to submit: on that node (empty: any), but not on the others."""

    task: Task
    node: str = ""
    without: tuple[str, ...] = ()


class JobState(StrEnum):
    """Where a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the cluster shows it: `word` is its name of the state, `reason` why it waits."""

    id: str
    task: str
    state: JobState
    word: str = ""
    node: str = ""
    reason: str = ""


class Executor(Protocol):
    """A cluster. ClusterUnreachable where it does not answer, or refuses."""

    def submit(self, submission: Submission) -> str:
        """Submits a job; its id. StorageFailed where its files cannot be written."""

    def jobs(self) -> Mapping[str, Job]:
        """The newest job of each task that the cluster still knows, by task."""

    def cancel(self, ids: Iterable[str]) -> None:
        """Cancels jobs; those that have ended already do not matter."""
