"""What a job does on the node where it runs: build a part of the variants, or race on this host."""

from __future__ import annotations

import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ensign.experiment.cluster.jobs import Work
from ensign.experiment.cluster.task_files import (
    End,
    JobLine,
    JobProgress,
    Phase,
    TaskFiles,
    TaskOutcome,
)
from ensign.experiment.confinement import confined_ports
from ensign.experiment.ports import Ports
from ensign.experiment.steps import run_experiment
from ensign.experiment.study.networks import without_networks
from ensign.experiment.study.opened import open_cache, open_study
from ensign.experiment.study.phase import ProgressCallbacks, StudyContext
from ensign.experiment.study.prepare import build_programs
from ensign.experiment.study.round_plan import RoundPlan, RoundProgress
from ensign.experiment.study.run import StudySteps
from ensign.experiment.study.stored import folder_of
from ensign.experiment.study_file import StudyFile
from ensign.host.os_errors import refusal
from ensign.host.race_lock import VARIABLE, Holder, RaceLock, default_path
from ensign.host.signals import end_with_parent, stopped_by_signals
from ensign.model.builds import BuildEvent
from ensign.model.errors import (
    EnsignError,
    FolderBusy,
    InternalError,
    Interrupted,
    RaceFailed,
    StorageFailed,
)
from ensign.store.folder import StudyFolder

_TELL_EVERY_S = 5.0
# Of a workload in a round, where the study does not say.
_MOST_EXECUTIONS = 8
_STOPPED = "it was told to stop"


def carry_out(work: Work) -> str:
    """Does the work, and leaves word of how it ended; that word. Raises nothing on purpose."""
    end_with_parent()
    files = TaskFiles(StudyFolder(Path(work.files)))
    job = os.environ.get("SLURM_JOB_ID", str(os.getpid()))
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    with stopped_by_signals():
        end, why = _ended(lambda: _carried_out(work, files, job, node))
        files.end(work.task, TaskOutcome(job, end, work.asked, why))
    return f"{end}: {why}"


def study_of(work: Work, ports: Ports) -> StudyFile:
    """The study as it was asked for, with the results of this host. Errors pass."""
    file = open_study(Path(work.study), ports).with_options(work.options)
    file = file.with_executions(_MOST_EXECUTIONS)
    return file if work.host is None else replace(file, host=work.host.name)


def _ended(carried_out: Callable[[], End]) -> tuple[End, str]:
    """How it ended, and why. What the machine refused may go well another time, as may a race."""
    try:
        return carried_out(), ""
    except (KeyboardInterrupt, Interrupted):
        return End.AGAIN, _STOPPED
    except (FolderBusy, StorageFailed, InternalError, RaceFailed) as error:
        return End.AGAIN, str(error)
    except EnsignError as error:
        return End.FAILED, str(error)
    except Exception as error:  # noqa: BLE001  # whatever it is, the coordinator must learn of it
        refused = refusal(error)
        if refused is not None:
            return End.AGAIN, refused
        sys.stderr.write(traceback.format_exc())
        return End.FAILED, f"this should not have happened, please report it: {error!r}"


def _carried_out(work: Work, files: TaskFiles, job: str, node: str) -> End:
    if work.host is not None and not files.take_node(work.task, node):
        return End.TAKEN
    files.add_line(work.task, JobLine(job, node))
    progress = _Progress(files, work.task, job)
    ports = Ports(race_lock=_lock(os.environ, progress.waiting))
    file = study_of(work, ports)
    if work.host is None:
        _build(file, work.part, ports, progress)
    else:
        _race(file, ports, progress)
    return End.DONE


def _lock(env: Mapping[str, str], on_wait: Callable[[Holder], None]) -> RaceLock:
    return RaceLock(default_path(env.get(VARIABLE)), on_wait=on_wait)


def _build(file: StudyFile, part: tuple[int, int], ports: Ports, progress: _Progress) -> None:
    """Every k-th variant beside the baseline, without which nothing is proved."""
    number, of = part
    baseline, *others = file.variants
    dealt = replace(file, variants=(baseline, *others[number::of]))
    with open_cache(ports) as cache:
        build_programs(dealt, cache, ports, progress.build)


def _race(file: StudyFile, ports: Ports, progress: _Progress) -> None:
    file, refused = without_networks(file, ports)
    folder = folder_of(file)
    with folder.locked():
        for name in folder.set_damaged_aside():
            progress.note(f"the trial {name} was damaged: raced again")
    with open_cache(ports) as cache:
        callbacks = progress.callbacks()
        context = StudyContext(cache, confined_ports(file, ports), folder, callbacks)
        outcome = run_experiment(StudySteps(file, context, known=refused))
    if outcome.error is not None:
        raise outcome.error


@dataclass(slots=True)
class _Progress:
    """Tells the coordinator, at most every few seconds, so that it disturbs no race."""

    files: TaskFiles
    task: str
    job: str
    told_s: float = 0.0
    raced_ns: int = 0
    raced: int = 0

    def callbacks(self) -> ProgressCallbacks:
        return ProgressCallbacks(
            build=self.build,
            pilot=lambda workload: self._tell(Phase.PREPARING, f"pilot of {workload}"),
            plan=self.plan,
            trial=self.trial,
            finding=lambda _: None,
        )

    def build(self, event: BuildEvent) -> None:
        """Says what is built."""
        if event.kind == "started":
            self._tell(Phase.BUILDING, event.label)

    def plan(self, plan: RoundPlan) -> None:
        """Says that it races."""
        left_s = plan.expected_ns / 1e9
        self._say(JobProgress(self.job, Phase.RACING, total=plan.rounds, left_s=left_s))

    def waiting(self, holder: Holder) -> None:
        """Says for whom it waits."""
        self._say(JobProgress(self.job, Phase.WAITING, f"waits for {holder}"))

    def trial(self, progress: RoundProgress) -> None:
        """Says how far it is."""
        self.raced_ns += progress.trial.wall_ns
        self.raced += 1
        if time.monotonic() - self.told_s >= _TELL_EVERY_S or self.raced == 1:
            left_s = (progress.total - progress.done) * self.raced_ns / self.raced / 1e9
            text = f"round {progress.round_index + 1}"
            total = progress.total
            self._say(JobProgress(self.job, Phase.RACING, text, progress.done, total, left_s))

    def note(self, said: str) -> None:
        """Adds to the list of the task's jobs."""
        self.files.add_line(self.task, JobLine(self.job, said=said))

    def _tell(self, phase: Phase, text: str) -> None:
        if time.monotonic() - self.told_s >= _TELL_EVERY_S:
            self._say(JobProgress(self.job, phase, text))

    def _say(self, progress: JobProgress) -> None:
        self.told_s = time.monotonic()
        self.files.tell(self.task, progress)
