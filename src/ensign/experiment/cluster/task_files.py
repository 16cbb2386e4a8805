"""Files by which jobs and their coordinator know of each other, on the file system that all share.

Each task has, below the study's results: what its job is doing, how it ended, on which node it is,
and a line for each job. Whoever is killed leaves what was true until then.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from ensign.host.files import storage_errors
from ensign.model.errors import InputError, StorageFailed
from ensign.store.folder import StudyFolder

_FOLDER = "tasks"
_LARGEST_LINES_BYTES = 16 << 20


class Phase(StrEnum):
    """What a job is about."""

    BUILDING = "building"
    WAITING = "waiting"
    PREPARING = "preparing"
    RACING = "racing"


@dataclass(frozen=True, slots=True)
class JobProgress:
    """What a job is doing: `done` of `total` executions, about `left_s` seconds from its end."""

    job: str
    phase: Phase
    text: str = ""
    done: int = 0
    total: int = 0
    left_s: float | None = None


class End(StrEnum):
    """How a job ended: its task is done, goes on in another job, or cannot.

    TAKEN: the node was another host's, and nothing began.
    """

    DONE = "done"
    AGAIN = "again"
    TAKEN = "taken"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What a job said at its end; `asked` is what it was asked for."""

    job: str
    end: End
    asked: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class JobLine:
    """A job in a task's list: it began on a node, or something happened to it (`said`)."""

    job: str
    node: str = ""
    said: str = ""


_PROGRESS = TypeAdapter(JobProgress)
_OUTCOME = TypeAdapter(TaskOutcome)
_NODES = TypeAdapter(dict[str, str])
_LINE = TypeAdapter(JobLine)
Value = TypeVar("Value")


class TaskFiles:
    """Files of a study's tasks. InputError where one is damaged, StorageFailed where none fits."""

    def __init__(self, folder: StudyFolder) -> None:
        self.folder = folder

    def progress(self, task: str) -> JobProgress | None:
        """What the job of a task is doing, as far as it said."""
        return self._said(f"{task}.progress", _PROGRESS)

    def tell(self, task: str, progress: JobProgress) -> None:
        """Says what a job is doing; where no space is left, nothing."""
        with suppress(StorageFailed):
            self._write(f"{task}.progress", asdict(progress))

    def outcome(self, task: str) -> TaskOutcome | None:
        """How the last job of a task ended, if it said so."""
        return self._said(f"{task}.outcome", _OUTCOME)

    def end(self, task: str, outcome: TaskOutcome) -> None:
        """Says how a job ended."""
        self._write(f"{task}.outcome", asdict(outcome))

    def nodes(self) -> dict[str, str]:
        """Nodes that tasks have taken for themselves, by task."""
        name = f"{_FOLDER}/nodes"
        try:
            return _NODES.validate_python(self.folder.read_json(name) or {})
        except ValidationError:
            path = self.folder.json_file(name)
            raise InputError(f"{path} is damaged; delete it and run again") from None

    def forget_nodes(self, tasks: Collection[str]) -> None:
        """Leaves nodes to others that were those of tasks which are no more."""
        with self._locked():
            nodes = self.nodes()
            kept = {task: node for task, node in nodes.items() if task in tasks}
            if kept != nodes:
                self._write("nodes", kept)

    def take_node(self, task: str, node: str) -> bool:
        """True if the node is this task's from now on, or was before.

        False where it is another task's, or where this one has another node.
        """
        with self._locked():
            nodes = self.nodes()
            if task in nodes or node in nodes.values():
                return nodes.get(task) == node
            self._write("nodes", {**nodes, task: node})
            return True

    def add_line(self, task: str, line: JobLine) -> None:
        """Appends to the list of a task's jobs."""
        path = self._path(f"{task}.jobs")
        data = json.dumps(asdict(line)).encode() + b"\n"
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as file:
                file.write(data)

    def lines(self, task: str) -> Iterator[JobLine]:
        """The list of a task's jobs; half a line that somebody left is none."""
        try:
            with self._path(f"{task}.jobs").open("rb") as file:
                data = file.read(_LARGEST_LINES_BYTES)
        except OSError:
            return
        for line in data.splitlines():
            with suppress(ValidationError):
                yield _LINE.validate_json(line)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        path = self._path("lock")
        with storage_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("w")
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _path(self, name: str) -> Path:
        return self.folder.root / _FOLDER / name

    def _said(self, name: str, kind: TypeAdapter[Value]) -> Value | None:
        """What is there; what is damaged is as if nobody had said it."""
        with suppress(InputError, ValidationError):
            content = self.folder.read_json(f"{_FOLDER}/{name}")
            return None if content is None else kind.validate_python(content)
        return None

    def _write(self, name: str, value: Mapping[str, object]) -> None:
        self.folder.write_json(f"{_FOLDER}/{name}", value)
