"""Deals a study's work to a cluster, watches its jobs, and takes in what they leave.

Builds first, then the races of all hosts at once. Whoever is killed here is replaced by the same
command: jobs are found by their names, and what they achieved by their files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ensign.experiment.cluster.decide import (
    Seen,
    TaskState,
    may_submit,
    refused,
    stepped,
    submitted,
)
from ensign.experiment.cluster.jobs import Executor, Job, JobState, Submission, Task
from ensign.experiment.cluster.task_files import End, JobLine, JobProgress, TaskFiles
from ensign.model.errors import ClusterUnreachable, StorageFailed

# Between two looks: longer where a look is much work, and where many tasks are left.
_POLL_S, _POLL_S_PER_TASK, _LONGEST_POLL_S = 2.0, 0.005, 30.0
_PROGRESS_EVERY_S = 10.0
# At one look: others are to be seen meanwhile, and submitting takes a while.
_MOST_SUBMISSIONS = 100
# Why a job waits for what may never come; others wait for their turn.
_NO_NODE = (
    "ReqNodeNotAvail", "Nodes required for job are DOWN", "NodeDown", "PartitionDown",
    "PartitionInactive", "BadConstraints",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task as it is shown: its state, and what its job says it is doing."""

    task: Task
    state: TaskState
    progress: JobProgress | None = None


class TaskListener:
    """Whom to tell what happens. Nothing is told by default."""

    def changed(self, view: TaskView) -> None:
        """A task's job was submitted, began, or ended."""

    def looked(self, views: Callable[[], Sequence[TaskView]]) -> None:
        """After each look; `views` gives all tasks, for whoever wants to show them."""

    def unreachable(self, why: str) -> None:
        """The cluster does not answer, or refuses; it is asked again."""


@dataclass(frozen=True, slots=True)
class Times:
    """Clock of a coordinator: seconds, and waiting so many; how long it waits for a last host."""

    now_s: Callable[[], float]
    wait_s: Callable[[float], None]
    patience_s: float = 3600.0


@dataclass(slots=True)
class Coordinator:
    """One session; `tasks` in their order, builds first."""

    tasks: Sequence[Task]
    executor: Executor
    files: TaskFiles
    times: Times
    listener: TaskListener = field(default_factory=TaskListener)
    states: dict[str, TaskState] = field(default_factory=dict)
    left: dict[str, Task] = field(default_factory=dict)
    progress: dict[str, JobProgress] = field(default_factory=dict)
    asked_s: dict[str, float] = field(default_factory=dict)
    silent_since_s: float | None = None

    def run(self) -> tuple[TaskView, ...]:
        """Deals until every task is done or given up. KeyboardInterrupt passes; jobs stay."""
        self.states = {task.name: TaskState() for task in self.tasks}
        self.left = {task.name: task for task in self.tasks}
        while True:
            before_s = self.times.now_s()
            self._look()
            self.listener.looked(lambda: self.views)
            if not self.left:
                return self.views
            took_s = self.times.now_s() - before_s
            pause_s = max(_POLL_S, 10 * took_s, _POLL_S_PER_TASK * len(self.left))
            self.times.wait_s(min(pause_s, _LONGEST_POLL_S))

    def cancel(self) -> int:
        """Cancels every job of the study; how many there were. ClusterUnreachable passes."""
        names = {task.name for task in self.tasks}
        jobs = self.executor.jobs().values()
        alive = [job.id for job in jobs if job.state is not JobState.ENDED and job.task in names]
        self.executor.cancel(alive)
        return len(alive)

    @property
    def views(self) -> tuple[TaskView, ...]:
        """Every task as it is now."""
        return tuple(
            TaskView(task, self.states[task.name], self.progress.get(task.name))
            for task in self.tasks
        )

    def _look(self) -> None:
        """One look at all tasks that are not at their end; jobs for those that need one."""
        try:
            jobs = self.executor.jobs()
        except ClusterUnreachable as error:
            self.listener.unreachable(str(error))
            return
        now_s = self.times.now_s()
        for name, task in list(self.left.items()):
            job = jobs.get(name)
            if not self._is_as_it_was(name, job, now_s):
                self._step(task, job, now_s)
        self._give_up_waiting(now_s)
        self._submit(now_s)

    def _step(self, task: Task, job: Job | None, now_s: float) -> None:
        before = self.states[task.name]
        seen = self._seen(task, job, now_s)
        state = stepped(before, seen, task.work.asked, now_s)
        if state.end is End.DONE and self._is_damaged(task):
            state = replace(before, job="", view=None, end=None)
        for lost_job, why in state.lost[len(before.lost) :]:
            with suppress(StorageFailed):
                self.files.add_line(task.name, JobLine(lost_job, said=f"ended by: {why}"))
        self._set(task, state)

    def _seen(self, task: Task, job: Job | None, now_s: float) -> Seen:
        """What there is; of a job that runs, its progress alone."""
        name = task.name
        self.asked_s[name] = now_s
        progress = self.files.progress(name)
        if progress is not None:
            self.progress[name] = progress
        if job is not None and job.state is not JobState.ENDED:
            return Seen(job, None, self.progress.get(name))
        return Seen(job, self.files.outcome(name), self.progress.get(name), self._trials(task))

    def _is_as_it_was(self, name: str, job: Job | None, now_s: float) -> bool:
        """True where nothing can have happened: thousands may wait, and hundreds run."""
        asked_s, state = self.asked_s.get(name), self.states[name]
        if job is None:
            return not state.job and asked_s is not None
        due = asked_s is None or now_s - asked_s >= _PROGRESS_EVERY_S
        return state.view == job and (job.state is JobState.QUEUED or not due)

    def _trials(self, task: Task) -> int:
        host = task.work.host
        return 0 if host is None else self.files.folder.of_host(host.name).trial_count()

    def _is_damaged(self, task: Task) -> bool:
        """True if a trial is not what was raced: another job races it again."""
        host = task.work.host
        return host is not None and bool(self.files.folder.of_host(host.name).damaged())

    def _submit(self, now_s: float) -> None:
        """Builds, and once they have ended races."""
        building = any(not task.is_race for task in self.left.values())
        waiting = [
            task
            for name, task in self.left.items()
            if not (building and task.is_race) and may_submit(self.states[name], now_s)
        ]
        nodes = self.files.nodes() if any(task.is_race for task in waiting) else {}
        for task in waiting[:_MOST_SUBMISSIONS]:
            try:
                job = self.executor.submit(_placed(task, nodes))
            except (ClusterUnreachable, StorageFailed) as error:
                self.listener.unreachable(f"{task.name}: {error}")
                if isinstance(error, StorageFailed) or not self._answers():
                    return
                self._set(task, refused(self.states[task.name], str(error), now_s))
                continue
            self._set(task, submitted(self.states[task.name], job, self._trials(task)))

    def _answers(self) -> bool:
        try:
            self.executor.jobs()
        except ClusterUnreachable:
            return False
        return True

    def _give_up_waiting(self, now_s: float) -> None:
        """Gives up hosts whose nodes are down, when nothing else has been left for long."""
        left = list(self.left.values())
        views = [self.states[name].view for name in self.left]
        lost = [view for view in views if view is not None and _has_no_node(view)]
        if not left or len(lost) < len(left):
            self.silent_since_s = None
            return
        if self.silent_since_s is None:
            self.silent_since_s = now_s
        if now_s - self.silent_since_s < self.times.patience_s:
            return
        self.executor.cancel([view.id for view in lost])
        for task, view in zip(left, lost, strict=True):
            why = f"Slurm has no node for it ({view.reason})"
            self._set(task, replace(self.states[task.name], view=None, end=End.FAILED, why=why))

    def _set(self, task: Task, state: TaskState) -> None:
        before = self.states[task.name]
        self.states[task.name] = state
        if state.end is not None:
            self.left.pop(task.name, None)
        if _shown(before) != _shown(state):
            self.listener.changed(TaskView(task, state, self.progress.get(task.name)))


def _has_no_node(job: Job) -> bool:
    return job.state is JobState.QUEUED and job.reason.startswith(_NO_NODE)


def _shown(state: TaskState) -> tuple[object, ...]:
    view = state.view
    return (state.job, state.end, None if view is None else view.state, len(state.lost))


def _placed(task: Task, nodes: Mapping[str, str]) -> Submission:
    """The node of a host that has one already; else none that another host has."""
    host = task.work.host
    if host is None:
        return Submission(task)
    node = host.node or nodes.get(task.name, "")
    others = () if node else tuple(sorted(set(nodes.values())))
    return Submission(task, node, others)
