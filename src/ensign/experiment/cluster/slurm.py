"""Slurm as an executor: submitit writes and submits the batch script, squeue says where jobs are.

Slurm's accounting is not asked for: many clusters keep none, and what a job achieved is in its
files. A job is found again by its name, which has the study's folder and the task in it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from ensign.experiment.cluster.job import carry_out
from ensign.experiment.cluster.jobs import Job, JobState, Submission
from ensign.host.files import storage_errors
from ensign.host.programs import Bounded, BoundedAnswer, run_bounded
from ensign.model.errors import ClusterUnreachable, InputError

_FORMAT = "%i|%j|%T|%N|%r"
_QUEUED = frozenset(("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "SUSPENDED"))
_RUNNING = frozenset(
    ("RUNNING", "COMPLETING", "CONFIGURING", "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING")
)
_BOUNDS = Bounded(deadline_s=120.0, most_bytes=64 << 20)
_BYTES_PER_MB = 1 << 20
# Of a job's time, for what is to be written when it is told to stop (s).
_WARNED_S = 60
_LONGEST = 300
# In the place of the batch script's shell, which would outlive Slurm's own process.
_PYTHON = f"exec {shlex.quote(sys.executable)}"


class Slurm:
    """The cluster whose commands are on the search path.

    `folder` is on a file system that all nodes share; jobs write what they print there. InputError
    where submitit or Slurm's commands are missing.
    """

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self._env = dict(os.environ if env is None else env)
        self._folder = folder
        self._prefix = f"ensign-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]}-"
        for program in ("sbatch", "squeue", "scancel", "srun"):
            if shutil.which(program, path=self._env.get("PATH")) is None:
                raise InputError(f"there is no program '{program}': --on needs Slurm's commands")
        try:
            import submitit  # noqa: PLC0415  # an extra of its own
        except ImportError:
            text = "--on needs submitit: install it by pip install 'ensign[slurm]'"
            raise InputError(text) from None
        self._submitit = submitit

    def submit(self, submission: Submission) -> str:
        """See `Executor.submit`."""
        output = io.StringIO()
        try:
            with storage_errors(self._folder), contextlib.redirect_stderr(output):
                # What is in it runs as us when a job reads it.
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                executor = self._submitit.SlurmExecutor(folder=self._folder, python=_PYTHON)
                executor.update_parameters(**self.parameters(submission))
                job = executor.submit(carry_out, submission.task.work)
        except (self._submitit.core.utils.FailedJobError, RuntimeError) as error:
            why = " ".join((output.getvalue() or str(error)).split())[:_LONGEST]
            raise ClusterUnreachable(f"not submitted: {why}") from None
        return str(job.job_id)

    def parameters(self, submission: Submission) -> dict[str, object]:
        """Parameters of the batch script, in submitit's words."""
        task = submission.task
        parameters: dict[str, object] = {
            **task.placement,
            "job_name": self._prefix + task.name,
            "time": max(1, math.ceil(task.time_limit_s / 60)),
            # Instead of submitit's own signal, by which it would requeue the job itself.
            "additional_parameters": {"signal": f"B:TERM@{_WARNED_S}"},
            # A step of srun may have fewer CPUs than its job.
            "use_srun": False,
            "stderr_to_stdout": True,
        }
        if task.exclusive:
            parameters["exclusive"] = True
        if task.cpus is not None:
            parameters["cpus_per_task"] = task.cpus
        if task.memory_bytes is not None:
            parameters["mem"] = f"{math.ceil(task.memory_bytes / _BYTES_PER_MB)}MB"
        elif task.exclusive:
            parameters["mem"] = "0"  # all that the node has
        if submission.node:
            parameters["nodelist"] = submission.node
        if submission.without:
            parameters["exclude"] = ",".join(submission.without)
        return parameters

    def jobs(self) -> dict[str, Job]:
        """See `Executor.jobs`."""
        argv = ("squeue", "--noheader", "--states=all", "--me", f"--format={_FORMAT}")
        jobs: dict[str, Job] = {}
        for line in self._asked(argv).text.splitlines():
            job = self._job(line)
            if job is not None and _is_newer(job, jobs.get(job.task)):
                jobs[job.task] = job
        return jobs

    def cancel(self, ids: Iterable[str]) -> None:
        """See `Executor.cancel`."""
        chosen = tuple(ids)
        if chosen:
            self._asked(("scancel", "--quiet", *chosen))

    def _job(self, line: str) -> Job | None:
        """The job of a line of squeue; None of others'."""
        number, name, word, node, reason = (*line.split("|", 4), "", "", "", "")[:5]
        if not name.startswith(self._prefix):
            return None
        state = JobState.ENDED
        if word in _QUEUED:
            state = JobState.QUEUED
        elif word in _RUNNING:
            state = JobState.RUNNING
        task = name.removeprefix(self._prefix)
        return Job(number.strip(), task, state, word, node, reason.strip())

    def _asked(self, argv: tuple[str, ...]) -> BoundedAnswer:
        answer = run_bounded(argv, self._env, _BOUNDS)
        if not answer.ok:
            why = " ".join(answer.text.split())[:_LONGEST] or answer.problem
            raise ClusterUnreachable(f"{argv[0]}: {why}")
        return answer


def _is_newer(job: Job, than: Job | None) -> bool:
    """One that has not ended counts before one that has; else the greater number."""
    if than is None:
        return True
    alive = job.state is not JobState.ENDED
    if alive != (than.state is not JobState.ENDED):
        return alive
    return int(job.id.partition("_")[0]) > int(than.id.partition("_")[0])
