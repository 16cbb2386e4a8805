"""Carrying out one stage: a copy of the parent's tree, the commands, what is kept of it."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ensign.builders import recorder, relinking
from ensign.builders.cache import Cache, Entry
from ensign.builders.isolation import Isolation, Room
from ensign.builders.plan import Commands, Stage, with_jobs
from ensign.builders.relink import bolt_call
from ensign.builders.verify import read_artefact, read_evidence
from ensign.host.clock import Clock
from ensign.host.files import copy_tree, remove_tree, storage_errors
from ensign.host.processes import Limits, Outcome, Processes, ProcessRequest, read_tail

# Any fixed moment does; this is 2000-01-01.
_SOURCE_DATE_EPOCH = "946684800"
_LOG = "log.txt"


@dataclass(frozen=True, slots=True)
class Workshop:
    """All that a stage needs besides its plan; `path` is the PATH of its commands.

    `meter` is the program that records calls; without it none are recorded.
    """

    processes: Processes
    cache: Cache
    isolation: Isolation
    clock: Clock
    path: str
    meter: Path | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """How a stage ended: its entry, or the last lines of its log and why it failed."""

    entry: Entry | None
    log: Path
    reason: str = ""
    tail: str = ""


class _StageFailedError(Exception):  # ends `fill`, is never seen outside
    pass


def perform_stage(stage: Stage, parent: Path, jobs: int, workshop: Workshop) -> Made:
    """Build a stage in a copy of the tree `parent`. A failing command is a result, not an error.

    StorageFailed if the disk is full, Interrupted if the processes were interrupted.
    """
    log = log_path(workshop.cache, stage)
    with storage_errors(log):
        log.write_bytes(b"")

    def fill(folder: Path) -> Mapping[str, object]:
        with workshop.isolation.room() as room:
            copy_tree(parent, room.tree)
            _record(stage, room, workshop)
            bolted = _bolt_relinks(stage, room, workshop, folder)
            started_ns = workshop.clock.monotonic_ns()
            deadline_ns = started_ns + stage.deadline_ns
            run = _Run(stage, room, workshop, deadline_ns)
            run.commands(with_jobs(stage.commands, jobs))
            build_s = (workshop.clock.monotonic_ns() - started_ns) / 1e9
            relinked = bolted or _relinks(stage, room, workshop, folder)
            run.commands(with_jobs(stage.tool_commands, jobs))
            shutil.copyfile(log, folder / _LOG)
            _keep_calls(room, folder)
            facts: dict[str, object] = {"label": stage.label, "build_s": build_s}
            if stage.kind == "dependencies":
                room.tree.rename(folder / "tree")
                return facts
            return facts | relinked | _take(stage, room.tree, folder)

    try:
        entry = workshop.cache.make(stage.kind, stage.key, fill)
    except _StageFailedError as failed:
        return Made(None, log, str(failed), read_tail(log))
    log.unlink(missing_ok=True)
    return Made(entry, entry.folder / _LOG)


def log_path(cache: Cache, stage: Stage) -> Path:
    """Where the log is while the stage is being built, and stays if it fails."""
    return cache.folder / "logs" / f"{stage.kind}-{stage.key[:20]}.log"


@dataclass(frozen=True, slots=True)
class _Run:
    stage: Stage
    room: Room
    workshop: Workshop
    deadline_ns: int

    def commands(self, commands: Commands) -> None:
        for argv in commands:
            outcome = self.command(argv)
            if not outcome.ok:
                raise _StageFailedError(f"'{argv[0]}' {outcome.describe()}")

    def command(self, argv: tuple[str, ...]) -> Outcome:
        log = log_path(self.workshop.cache, self.stage)
        with storage_errors(log), log.open("a") as file:
            file.write(f"$ {shlex.join(argv)}\n")
        left_ns = self.deadline_ns - self.workshop.clock.monotonic_ns()
        if left_ns <= 0:
            return Outcome(None, None, "deadline")
        return self.workshop.processes.run(
            ProcessRequest(
                argv=(*self.room.argv, *argv),
                env=_environment(self.stage, self.workshop),
                cwd=self.room.cwd,
                log=log,
                deadline_ns=left_ns,
                limits=Limits(file_bytes=self.stage.disk_bytes),
            )
        )


def _environment(stage: Stage, workshop: Workshop) -> dict[str, str]:
    isolation = workshop.isolation
    recording: dict[str, str] = {}
    if workshop.meter is not None:
        path = dict(stage.env).get("PATH", workshop.path)
        recording = recorder.environment(f"{isolation.temporary_path}/{recorder.FOLDER}", path)
    return {
        "PATH": workshop.path,
        "HOME": isolation.temporary_path,
        "TMPDIR": isolation.temporary_path,
        "LC_ALL": "C",
        "TZ": "UTC",
        "SOURCE_DATE_EPOCH": _SOURCE_DATE_EPOCH,
        "GIT_CEILING_DIRECTORIES": str(Path(isolation.build_path).parent),
        **dict(stage.env),
        **recording,
    }


def _record(stage: Stage, room: Room, workshop: Workshop) -> None:
    if workshop.meter is not None:
        seen_as = f"{workshop.isolation.temporary_path}/{recorder.FOLDER}"
        place = room.temporary / recorder.FOLDER
        recorder.set_up(place, seen_as, workshop.meter, stage.recorded, stage.changes)


def _keep_calls(room: Room, folder: Path) -> None:
    """Put the calls of this stage into its folder."""
    log = room.temporary / recorder.FOLDER / recorder.CALLS
    calls = recorder.read_calls(log)
    if calls:
        shutil.copyfile(log, folder / recorder.CALLS)
        commands = json.dumps(recorder.compile_commands(calls), indent=1)
        (folder / recorder.COMPILE_COMMANDS).write_text(commands + "\n")


def _relinks(stage: Stage, room: Room, workshop: Workshop, folder: Path) -> dict[str, object]:
    """Make the relinks that are asked for, while objects are there; the facts about them."""
    if stage.relinks is None:
        return {}
    bench = _bench(stage, room, workshop)
    relinked = relinking.make_relinks(stage.relinks, bench, folder / relinking.FOLDER)
    return {"relinks": dataclasses.asdict(relinked)}


def _bolt_relinks(stage: Stage, room: Room, workshop: Workshop, folder: Path) -> dict[str, object]:
    """Of a program that BOLT lays out: before it does, while its input is still there."""
    argv = bolt_call(stage.commands)
    if stage.relinks is None or not argv:
        return {}
    bench = _bench(stage, room, workshop)
    relinked = relinking.make_bolted(stage.relinks, argv, bench, folder / relinking.FOLDER)
    return {"relinks": dataclasses.asdict(relinked)}


def _bench(stage: Stage, room: Room, workshop: Workshop) -> relinking.Bench:
    deadline_ns = workshop.clock.monotonic_ns() + stage.deadline_ns
    seen = workshop.isolation.temporary_path
    return relinking.Bench(
        run=_Run(stage, room, workshop, deadline_ns).command,
        calls=recorder.read_calls(room.temporary / recorder.FOLDER / recorder.CALLS),
        tree=(room.tree, workshop.isolation.build_path),
        scratch=(room.temporary / relinking.FOLDER, f"{seen}/{relinking.FOLDER}"),
        artefact=stage.artefact,
    )


def _take(stage: Stage, tree: Path, folder: Path) -> dict[str, object]:
    """Copy what is kept of a program's tree to `folder/files`; the facts about it."""
    files = folder / "files"
    wanted = [stage.artefact, *(path for _, path in stage.tools)]
    for pattern in stage.keep:
        matches = sorted(str(path.relative_to(tree)) for path in tree.glob(pattern))
        if not matches:
            raise _StageFailedError(f"'{pattern}' of build.keep matches nothing after the build")
        wanted += matches
    for name in wanted:
        _copy_out(tree, name, files)
    artefact = read_artefact(files / stage.artefact)
    if artefact is None:
        raise _StageFailedError(f"'{stage.artefact}' is not a program in ELF format")
    evidence = read_evidence(files / stage.artefact, tree)
    return {"artefact": dataclasses.asdict(artefact), "evidence": dataclasses.asdict(evidence)}


def _copy_out(tree: Path, name: str, files: Path) -> None:
    source, target = tree / name, files / name
    inside = os.path.realpath(source).startswith(os.path.realpath(tree) + os.sep)
    if not source.exists() or not inside:
        raise _StageFailedError(f"the build made no '{name}'")
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        remove_tree(target)
        copy_tree(source, target)
    elif not target.exists():
        shutil.copy2(source, target)
