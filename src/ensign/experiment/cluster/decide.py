"""What is to be done about a task, from what is known of its jobs. Pure.

Nothing that a coordinator must remember is in its memory alone: a job carries the name of its task,
and its files say how far it is. So a coordinator that was killed is replaced by the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ensign.experiment.cluster.jobs import Job, JobState
from ensign.experiment.cluster.task_files import End, JobProgress, Phase, TaskOutcome

# Jobs in a row that get no execution further, until a task is given up.
MOST_ATTEMPTS = 4
_MOST_REFUSALS = 3
# Until what a job wrote at its end is seen on every node.
SETTLE_S = 15.0
_DELAYS_S = (0.0, 5.0, 30.0, 120.0)
# What the cluster does of its own accord, and no fault of the job.
_NO_FAULT = frozenset(("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REQUEUED", "REVOKED"))


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is to see of a task now; `trials` counts what is stored."""

    job: Job | None
    outcome: TaskOutcome | None
    progress: JobProgress | None
    trials: int = 0


@dataclass(frozen=True, slots=True)
class TaskState:
    """What one coordinator knows of a task.

    `job` is the newest that it saw or submitted, `trials` what was stored when that began.
    `attempts` counts jobs in a row that got no further. `end` is DONE or FAILED once there is no
    more to do, and `why` says why it failed. `lost` has jobs that ended before their task, with
    the reason.
    """

    job: str = ""
    view: Job | None = None
    trials: int = 0
    attempts: int = 0
    not_before_s: float = 0.0
    ended_s: float | None = None
    end: End | None = None
    why: str = ""
    lost: tuple[tuple[str, str], ...] = ()

    @property
    def is_active(self) -> bool:
        """True if a job of it is in the queue or runs."""
        return self.view is not None and self.view.state is not JobState.ENDED


def stepped(state: TaskState, seen: Seen, asked: str, now_s: float) -> TaskState:
    """The state after a look at the task at `now_s`."""
    if state.end is not None:
        return state
    outcome = seen.outcome if seen.outcome and seen.outcome.asked == asked else None
    if outcome is not None and outcome.end is End.DONE:
        return replace(state, view=None, end=End.DONE)
    job = seen.job
    if job is not None and (job.state is not JobState.ENDED or job.id == state.job):
        # One that was submitted before this coordinator began is taken over as it is.
        trials = state.trials if job.id == state.job else seen.trials
        state = replace(state, job=job.id, view=job, trials=trials)
    elif state.is_active:
        state = replace(state, view=None)
    if not state.job or state.is_active:
        return replace(state, ended_s=None)
    if outcome is not None and outcome.job == state.job:
        return _ended(state, seen, outcome, now_s)
    ended_s = now_s if state.ended_s is None else state.ended_s
    if now_s - ended_s < SETTLE_S:
        return replace(state, ended_s=ended_s)
    return _lost(state, seen, now_s)


def submitted(state: TaskState, job: str, trials: int) -> TaskState:
    """The state after a job was submitted."""
    view = Job(job, "", JobState.QUEUED)
    return replace(state, job=job, view=view, trials=trials, ended_s=None)


def may_submit(state: TaskState, now_s: float) -> bool:
    """True if the task needs a job now."""
    return state.end is None and not state.job and now_s >= state.not_before_s


def refused(state: TaskState, why: str, now_s: float) -> TaskState:
    """The state after a cluster that answers refused a job: it is tried again, but not for long."""
    attempts = state.attempts + 1
    if attempts < _MOST_REFUSALS:
        later_s = now_s + _DELAYS_S[attempts]
        return replace(state, attempts=attempts, not_before_s=later_s)
    return replace(state, end=End.FAILED, why=why)


def _ended(state: TaskState, seen: Seen, outcome: TaskOutcome, now_s: float) -> TaskState:
    """After a job that said how it ended."""
    if outcome.end is End.FAILED:
        return replace(state, view=None, end=End.FAILED, why=outcome.why)
    if outcome.end is End.TAKEN:
        return replace(state, job="", view=None, ended_s=None)
    return _again(state, seen, outcome.why, now_s)


def _lost(state: TaskState, seen: Seen, now_s: float) -> TaskState:
    """After a job that said nothing at its end."""
    word = state.view.word if state.view is not None else ""
    progress = seen.progress
    waited = progress is not None and progress.job == state.job and progress.phase is Phase.WAITING
    # The time for which another race had the machine is not the job's.
    excused = word in _NO_FAULT or (word == "TIMEOUT" and waited)
    return _again(state, seen, word or "it ended without a word", now_s, excused=excused)


def _again(
    state: TaskState, seen: Seen, why: str, now_s: float, *, excused: bool = False
) -> TaskState:
    """Another job, unless so many got no further."""
    further = seen.trials > state.trials
    attempts = 0 if further else state.attempts + (not excused)
    state = replace(
        state,
        job="",
        view=None,
        ended_s=None,
        attempts=attempts,
        lost=(*state.lost, (state.job, why)),
        not_before_s=now_s + _DELAYS_S[min(attempts, len(_DELAYS_S) - 1)],
    )
    if attempts < MOST_ATTEMPTS:
        return state
    text = f"{attempts} jobs in a row got no further; the last one ended by: {why}"
    return replace(state, end=End.FAILED, why=text)
