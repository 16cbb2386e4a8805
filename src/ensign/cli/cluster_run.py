"""Bodies of `run --on` and `plan --on`; imported late, numpy comes with it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ensign.cli.options import Outputs
from ensign.cli.output import complain, say, write
from ensign.cli.progress import BuildProgress, StatusLine
from ensign.cli.report_run import check_fleet, tell_fleet
from ensign.experiment.cluster.coordinate import Coordinator, TaskListener, TaskView, Times
from ensign.experiment.cluster.jobs import JobState
from ensign.experiment.cluster.slurm import Slurm
from ensign.experiment.cluster.task_files import End, TaskFiles
from ensign.experiment.cluster.tasks import (
    require_free_nodes,
    tasks_of,
    write_hosts,
)
from ensign.experiment.ports import Ports
from ensign.experiment.study.opened import open_cache, open_study
from ensign.experiment.study.prepare import obtain_inputs
from ensign.experiment.study.stored import folder_of
from ensign.experiment.study_file import RunOptions, StudyFile, read_cluster
from ensign.model.cluster import Cluster
from ensign.model.errors import ClusterUnreachable, CommandFailed, InputError, Interrupted
from ensign.model.units import format_duration, parse_duration_ns, pluralize
from ensign.report.words import clean
from ensign.tools.fleets import fleet_of_study

_JOBS = "jobs"
_TELL_EVERY_S = 60.0


def run(
    path: Path,
    on: Path,
    options: RunOptions,
    outputs: Outputs,
    *,
    details: bool,
    update_lock: bool,
) -> None:
    """See `ensign.cli.study.run`. Errors pass, after what was measured is told."""
    check_fleet(outputs)
    ports = Ports()
    cluster = read_cluster(on)
    file = open_study(path, ports).with_options(options)
    folder = folder_of(file)
    slurm = Slurm(folder.root / _JOBS)
    with folder.locked(), StatusLine(sys.stderr) as line:
        with open_cache(ports) as cache:
            progress = BuildProgress(line, sys.stderr)
            lock = obtain_inputs(file, cache, ports, progress.show, update_lock=update_lock)
        write_hosts(folder, cluster)
        tasks = tasks_of(file, cluster, lock, options)
        files = TaskFiles(folder)
        require_free_nodes(cluster.slots, files)
        patience_s = parse_duration_ns(cluster.patience) / 1e9
        times = Times(time.monotonic, time.sleep, patience_s)
        shown = _Shown(line)
        coordinator = Coordinator(tasks, slurm, files, times, shown)
        try:
            views = coordinator.run()
        except KeyboardInterrupt:
            line.clear()
            raise Interrupted(_interrupted(coordinator, cluster, path, on)) from None
    _tell(file, views, outputs, details=details)


def cancel(path: Path, on: Path) -> None:
    """Cancels the jobs of a study. Errors pass."""
    file = open_study(path)
    folder = folder_of(file)
    tasks = tasks_of(file, read_cluster(on), "")
    slurm = Slurm(folder.root / _JOBS)
    times = Times(time.monotonic, time.sleep)
    count = Coordinator(tasks, slurm, TaskFiles(folder), times).cancel()
    say(f"Cancelled {pluralize(count, 'job')}; what was measured stays.\n")


def _interrupted(coordinator: Coordinator, cluster: Cluster, path: Path, on: Path) -> str:
    """What became of the jobs."""
    again = f"'ensign run {path} --on {on}'"
    if cluster.on_interrupt == "cancel":
        try:
            count = coordinator.cancel()
        except ClusterUnreachable as error:
            return f"interrupted; jobs were not cancelled ({error}): {again} --cancel does"
        return f"interrupted; cancelled {pluralize(count, 'job')}. {again} goes on"
    active = sum(view.state.is_active for view in coordinator.views)
    return (
        f"interrupted; {pluralize(active, 'job')} of the cluster {'goes' if active == 1 else 'go'} "
        f"on. {again} takes them up again, with --cancel it cancels them"
    )


def _tell(file: StudyFile, views: Sequence[TaskView], outputs: Outputs, *, details: bool) -> None:
    """The result as far as there is one; then CommandFailed where a task was given up."""
    failed: dict[str, list[str]] = {}
    for view in views:
        if view.state.end is End.FAILED:
            failed.setdefault(view.state.why, []).append(view.task.name)
    text = "\n".join(f"{', '.join(names)}: {why}" for why, names in failed.items())
    try:
        tell_fleet(fleet_of_study(file), outputs, every_workload=details)
    except InputError as error:
        if failed:
            raise CommandFailed(text) from None
        # A single host is no fleet, and its report is a command away.
        complain(str(error))
        return
    if failed:
        raise CommandFailed(text)


class _Shown(TaskListener):
    """All jobs in one line of the terminal; elsewhere a line for each that begins or ends."""

    def __init__(self, line: StatusLine) -> None:
        self._line = line
        self._unreachable_s = -_TELL_EVERY_S

    def changed(self, view: TaskView) -> None:
        self._line.clear()
        write(sys.stderr, f"{view.task.name}: {_said(view)}\n")

    def looked(self, views: Callable[[], Sequence[TaskView]]) -> None:
        if self._line.due():
            self._line.show("; ".join(_summary(views())))

    def unreachable(self, why: str) -> None:
        now_s = time.monotonic()
        if now_s - self._unreachable_s >= _TELL_EVERY_S:
            self._unreachable_s = now_s
            self._line.clear()
            write(sys.stderr, f"{clean(why)}; it is asked again\n")


def _said(view: TaskView) -> str:
    state, job = view.state, view.state.view
    if state.end is End.DONE:
        return "done"
    if state.end is not None:
        return f"given up: {clean(state.why)}"
    if job is not None:
        where = f" on {clean(job.node)}" if job.node and job.state is JobState.RUNNING else ""
        return f"job {job.id} {job.state}{where}"
    if state.lost:
        return f"job {state.lost[-1][0]} ended ({clean(state.lost[-1][1])}); it is taken up again"
    return "waits for a node that no other host has"


def _summary(views: Sequence[TaskView]) -> Iterator[str]:
    """Builds, hosts, and the time that is left where one says so."""
    for name, chosen in (
        ("builds", [view for view in views if not view.task.is_race]),
        ("hosts", [view for view in views if view.task.is_race]),
    ):
        counts = Counter(map(_word, chosen))
        parts = [f"{counts[word]} {word}" for word in _WORDS if counts[word]]
        yield f"{name}: {', '.join(parts)}"
    left = [_left_s(view) for view in views if view.state.is_active]
    known = [seconds for seconds in left if seconds is not None]
    if known:
        yield f"about {format_duration(max(known) * 1e9)} left of those that race"


_WORDS = (
    "done",
    "racing",
    "waiting for a race",
    "building",
    "running",
    "queued",
    "to come",
    "given up",
)


def _word(view: TaskView) -> str:
    state, job, progress = view.state, view.state.view, view.progress
    if state.end is not None:
        return "done" if state.end is End.DONE else "given up"
    if job is None:
        return "to come"
    if job.state is JobState.RUNNING and progress is not None and progress.job == job.id:
        return {"waiting": "waiting for a race", "preparing": "running"}.get(
            progress.phase, progress.phase
        )
    return job.state


def _left_s(view: TaskView) -> float | None:
    job, progress = view.state.view, view.progress
    fits = job is not None and progress is not None and progress.job == job.id
    return progress.left_s if fits and progress is not None else None
