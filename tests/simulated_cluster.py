"""A cluster in virtual time behind the port of executors: jobs wait for nodes, run, and end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ensign.experiment.cluster.jobs import Job, JobState, Submission, Task, Work
from ensign.experiment.cluster.task_files import End, TaskFiles, TaskOutcome
from ensign.model.cluster import HostSlot
from ensign.model.errors import ClusterUnreachable

ASKED = "a"
_FORGETS_AFTER_S = 300.0


def build(number: int) -> Task:
    return Task(Work(f"build-{number}", "s.toml", "r", ASKED, part=(number, 1)), cpus=1)


def race(number: int, kind: str = "milan", node: str = "") -> Task:
    slot = HostSlot(f"{kind}-{number}", kind, node)
    return Task(Work(slot.name, "s.toml", "r", ASKED, slot))


@dataclass
class Running:
    """A job of the cluster: `ends_s` is when it ends by itself, once it runs."""

    id: int
    submission: Submission
    node: str = ""
    ends_s: float | None = None
    ended: str = ""


@dataclass
class SimulatedCluster:
    """Each job takes `takes_s` on one of `nodes`; `ends` says how the n-th job of a task ends.

    Such an end is a state's name; "DONE" (the default) leaves the outcome of one that is done.
    """

    files: TaskFiles
    nodes: tuple[str, ...] = ("n1", "n2")
    takes_s: float = 10.0
    ends: dict[str, list[str]] = field(default_factory=dict)
    now_s: float = 0.0
    is_down: bool = False
    given: dict[int, Running] = field(default_factory=dict)
    submissions: list[Submission] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    queue: list[Running] = field(default_factory=list)
    busy: dict[str, Running] = field(default_factory=dict)
    shares_nodes: bool = False
    cpu_s: float = 0.0

    def submit(self, submission: Submission) -> str:
        self._answer()
        job = Running(len(self.submissions) + 1, submission)
        self.submissions.append(submission)
        self.given[job.id] = job
        self.queue.append(job)
        return str(job.id)

    def jobs(self) -> Mapping[str, Job]:
        self._answer()
        self._go_on()
        for number in [each.id for each in self.given.values() if self._is_forgotten(each)]:
            del self.given[number]
        return {job.submission.task.name: _shown(job) for job in self.given.values()}

    def cancel(self, ids: Iterable[str]) -> None:
        self._answer()
        self.cancelled += ids

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def time(self) -> float:
        return self.now_s

    def _is_forgotten(self, job: Running) -> bool:
        return bool(job.ended) and (job.ends_s or 0) < self.now_s - _FORGETS_AFTER_S

    def _answer(self) -> None:
        if self.is_down:
            raise ClusterUnreachable("squeue: Unable to contact slurm controller")

    def _go_on(self) -> None:
        """What happens by itself; the time that simulating it takes is nobody's."""
        begun_s = time.process_time()
        self._pass()
        self.cpu_s += time.process_time() - begun_s

    def _pass(self) -> None:
        for node, job in list(self.busy.items()):
            if job.ends_s is not None and job.ends_s <= self.now_s:
                del self.busy[node]
                self._end(job)
        for job in list(self.queue):
            wanted = job.submission.node
            taken = (*self.busy, *job.submission.without)
            free = next((n for n in self.nodes if n not in taken and wanted in ("", n)), "")
            if free:
                self.queue.remove(job)
                job.node, job.ends_s = free, self.now_s + self.takes_s
                self.busy[free] = job
            elif len(self.busy) == len(self.nodes):
                break

    def _end(self, job: Running) -> None:
        task = job.submission.task
        left = self.ends.get(task.name, [])
        word = left.pop(0) if left else "DONE"
        job.ended = "COMPLETED" if word in ("DONE", "AGAIN", "FAILED_ITSELF") else word
        said = {"DONE": End.DONE, "AGAIN": End.AGAIN, "FAILED_ITSELF": End.FAILED}.get(word)
        if said is not None:
            why = "" if said is End.DONE else "the disk is full"
            self.files.end(task.name, TaskOutcome(str(job.id), said, task.work.asked, why))
        if task.is_race and said is End.DONE and not self.shares_nodes:
            self.files.take_node(task.name, job.node)


def _shown(job: Running) -> Job:
    state = JobState.ENDED if job.ended else JobState.RUNNING if job.node else JobState.QUEUED
    word = job.ended or ("RUNNING" if job.node else "PENDING")
    return Job(str(job.id), job.submission.task.name, state, word, job.node, "")


def asked_anew(task: Task) -> Task:
    return replace(task, work=replace(task.work, asked="b"))
