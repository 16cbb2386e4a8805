"""Carrying out one stage: a copy of the parent's tree, the commands, what is kept of it."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ensign.builders import recorder
from ensign.builders.cache import Cache, Entry
from ensign.builders.isolation import Isolation, Room
from ensign.builders.plan import Commands, Stage, with_jobs
from ensign.builders.proof.link import Place
from ensign.builders.proof.read import as_json, link_of, read_proof
from ensign.builders.proof.relink import command_for_map, read_map
from ensign.builders.verify import read_artefact
from ensign.host.clock import Clock
from ensign.host.files import copy_tree, remove_tree, storage_errors
from ensign.host.processes import Limits, Outcome, Processes, ProcessRequest, read_tail
from ensign.model.calls import Call

# Any fixed moment does; this is 2000-01-01.
_SOURCE_DATE_EPOCH = "946684800"
_LOG = "log.txt"
_TREE = "tree"


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
            started_ns = workshop.clock.monotonic_ns()
            deadline_ns = started_ns + stage.deadline_ns
            run = _Run(stage, room, workshop, deadline_ns)
            run.commands(with_jobs(stage.commands, jobs))
            build_s = (workshop.clock.monotonic_ns() - started_ns) / 1e9
            run.commands(with_jobs(stage.tool_commands, jobs))
            shutil.copyfile(log, folder / _LOG)
            _keep_calls(room, folder, parent)
            facts: dict[str, object] = {"label": stage.label, "build_s": build_s}
            if stage.kind == "dependencies":
                room.tree.rename(folder / _TREE)
                return facts
            return facts | _take(run, folder)

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
            outcome = self._command(argv)
            if not outcome.ok:
                raise _StageFailedError(f"'{argv[0]}' {outcome.describe()}")

    def map_text(self, calls: Sequence[Call]) -> str | None:
        """The linker's map of the artefact, by linking it once more into the scratch folder."""
        link = link_of(calls, self.place, self.room.tree / self.stage.artefact)
        argv = command_for_map(link, self.workshop.isolation.temporary_path)
        left_ns = self.deadline_ns - self.workshop.clock.monotonic_ns()
        if not argv or left_ns <= 0:
            return None
        self.workshop.processes.run(self._request(argv, None, left_ns))
        return read_map(self.room.temporary)

    @property
    def place(self) -> Place:
        """Where the paths in recorded calls are here."""
        return Place(self.room.tree, self.workshop.isolation.build_path)

    def _command(self, argv: tuple[str, ...]) -> Outcome:
        log = log_path(self.workshop.cache, self.stage)
        with storage_errors(log), log.open("a") as file:
            file.write(f"$ {shlex.join(argv)}\n")
        left_ns = self.deadline_ns - self.workshop.clock.monotonic_ns()
        if left_ns <= 0:
            return Outcome(None, None, "deadline")
        return self.workshop.processes.run(self._request(argv, log, left_ns))

    def _request(self, argv: tuple[str, ...], log: Path | None, left_ns: int) -> ProcessRequest:
        return ProcessRequest(
            argv=(*self.room.argv, *argv),
            env=_environment(self.stage, self.workshop),
            cwd=self.room.cwd,
            log=log,
            deadline_ns=left_ns,
            limits=Limits(file_bytes=self.stage.disk_bytes),
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


def _keep_calls(room: Room, folder: Path, parent: Path) -> None:
    """Put the calls of this stage into its folder, and those of its dependencies beside them."""
    before = parent.parent / recorder.CALLS
    if parent.name == _TREE and before.is_file():
        shutil.copyfile(before, folder / recorder.DEPENDENCY_CALLS)
    log = room.temporary / recorder.FOLDER / recorder.CALLS
    calls = recorder.read_calls(log)
    if calls:
        shutil.copyfile(log, folder / recorder.CALLS)
        commands = json.dumps(recorder.compile_commands(calls), indent=1)
        (folder / recorder.COMPILE_COMMANDS).write_text(commands + "\n")


def _take(run: _Run, folder: Path) -> dict[str, object]:
    """Copy what is kept of a program's tree to `folder/files`; the facts about it."""
    stage, tree, files = run.stage, run.room.tree, folder / "files"
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
    calls = recorder.read_calls(folder / recorder.CALLS)
    proof = read_proof(files / stage.artefact, run.place, calls, run.map_text(calls))
    return {"artefact": dataclasses.asdict(artefact), "proof": as_json(proof)}


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
