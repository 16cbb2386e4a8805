"""Carrying out one stage: a copy of the parent's tree, the commands, what is kept of it."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ensign.builders import recorder, relinking
from ensign.builders.cache import Entry
from ensign.builders.commands import Commands, with_folders, with_jobs
from ensign.builders.isolation import Room
from ensign.builders.profile_files import bolt_facts, count_facts, lay, left_something, warnings_in
from ensign.builders.profiles import COUNTS, PROFILE, WORKLOAD, Learning
from ensign.builders.proof.leftovers import FILE as BEFORE
from ensign.builders.proof.leftovers import Leftover, as_text, leftovers, read_leftovers
from ensign.builders.proof.link import Place
from ensign.builders.proof.read import as_json, from_json, link_of, proof_after, read_proof
from ensign.builders.proof.relink import command_for_map, read_map
from ensign.builders.provenance import Earlier, Files, with_origins
from ensign.builders.recorder import CALLS
from ensign.builders.relink import bolt_call
from ensign.builders.stages import Stage
from ensign.builders.training import TrainingRun
from ensign.builders.verify import read_artefact
from ensign.builders.workshop import Bounds, Runner, Workshop
from ensign.host.files import copy_tree, remove_tree
from ensign.host.processes import Outcome, read_tail
from ensign.model.calls import Call
from ensign.model.units import format_size

# Any fixed moment does; this is 2000-01-01.
SOURCE_DATE_EPOCH = "946684800"
_LOG = "log.txt"
_TREE = "tree"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a stage is made from: the source's tree, or its parent's; a profile; tools by name."""

    source: Path
    parent: Entry | None = None
    profile: Entry | None = None
    tools: Mapping[str, Path] = field(default_factory=dict)

    @property
    def tree(self) -> Path:
        """The tree that the stage gets a copy of: of a program, the files that were kept."""
        if self.parent is None:
            return self.source
        return self.parent.folder / (_TREE if self.parent.kind == "dependencies" else "files")

    @property
    def linked(self) -> Entry | None:
        """The parent, where it is a program already."""
        return self.parent if self.parent is not None and self.parent.kind == "program" else None

    @property
    def began_unix_ns(self) -> int:
        """When the first stage of the chain began; 0 if this is the first one."""
        return 0 if self.parent is None else int(str(self.parent.facts["began_unix_ns"]))

    @property
    def dependency_calls(self) -> tuple[Call, ...]:
        """The calls of the stage that this one's tree comes from."""
        return () if self.parent is None else recorder.read_calls(self.parent.folder / CALLS)

    @property
    def chain_s(self) -> float:
        """What it took to come here, without dependencies."""
        before = [each for each in (self.parent, self.profile) if each is not None]
        chains = [each.facts["chain_s"] for each in before if each.kind != "dependencies"]
        return max((float(str(each)) for each in chains), default=0.0)


@dataclass(frozen=True, slots=True)
class Made:
    """How a stage ended: its entry, or the last lines of its log and why it failed."""

    entry: Entry | None
    log: Path
    reason: str = ""
    tail: str = ""


class _StageFailedError(Exception):  # ends `fill`, is never seen outside
    pass


def perform_stage(stage: Stage, inputs: Inputs, jobs: int, workshop: Workshop) -> Made:
    """Build a stage in a copy of its tree. A failing command is a result, not an error.

    StorageFailed if the disk is full, Interrupted if the processes were interrupted.
    """
    log = workshop.new_log(stage.kind, stage.key)

    def fill(folder: Path) -> Mapping[str, object]:
        with workshop.isolation.room() as room:
            began_unix_ns = inputs.began_unix_ns or int(workshop.clock.unix_s() * 1e9)
            copy_tree(inputs.tree, room.tree)
            _record(stage, room, workshop)
            start = partial(_start, stage, room, workshop, log)
            start().commands(stage.clean)
            before = _leftovers(room, folder, inputs)
            if inputs.profile is not None:
                lay(inputs.profile.folder / "profile", room.tree)
            bolted = _bolt_relinks(stage, start, folder)
            started_ns = workshop.clock.monotonic_ns()
            run = start()
            facts: dict[str, object] = {"label": stage.label, "began_unix_ns": began_unix_ns}
            if stage.learning is not None:
                facts["profile"] = run.collect(stage.learning, inputs.tools, folder / "profile")
            else:
                run.commands(with_jobs(stage.commands, jobs))
            build_s = (workshop.clock.monotonic_ns() - started_ns) / 1e9
            facts |= {"build_s": build_s, "chain_s": build_s + inputs.chain_s}
            calls = recorder.read_calls(_calls_log(room))
            relinked = bolted or _relinks(stage, start, calls, folder)
            if relinked:
                # What relinks took is not the build's: what is left of it begins anew.
                run = dataclasses.replace(run, runner=start().runner)
            run.commands(with_jobs(stage.tool_commands, jobs))
            shutil.copyfile(log, folder / _LOG)
            facts["left_running"] = sorted(set(run.left_running))
            calls += recorder.read_calls(_calls_log(room), skip=len(calls))
            _keep_calls(room, calls, folder, inputs)
            if stage.kind == "dependencies":
                room.tree.rename(folder / _TREE)
            elif stage.kind != "profile":
                earlier = Earlier(
                    before, inputs.dependency_calls, began_unix_ns, workshop.meter is not None
                )
                facts |= relinked | _take(run, calls, earlier, folder, inputs)
            if stage.strip:
                facts |= _strip(run, folder)
            return facts

    try:
        entry = workshop.cache.make(stage.kind, stage.key, fill)
    except _StageFailedError as failed:
        return Made(None, log, str(failed), read_tail(log))
    log.unlink(missing_ok=True)
    return Made(entry, entry.folder / _LOG)


def _leftovers(room: Room, folder: Path, inputs: Inputs) -> tuple[Leftover, ...]:
    """What earlier builds left in the tree that the first stage of the chain had; kept, too."""
    parent = inputs.parent
    found = leftovers(room.tree) if parent is None else read_leftovers(parent.folder / BEFORE)
    (folder / BEFORE).write_text(as_text(found))
    return found


def _start(stage: Stage, room: Room, workshop: Workshop, log: Path) -> _Run:
    """Commands of a stage that may take, from now on and together, what its limits allow."""
    deadline_ns = workshop.clock.monotonic_ns() + stage.deadline_ns
    bounds = Bounds.of(room, deadline_ns, stage.disk_bytes)
    return _Run(stage, Runner(workshop, room, bounds, log, _environment(stage, workshop)))


@dataclass(frozen=True, slots=True)
class _Run:
    stage: Stage
    runner: Runner
    left_running: list[str] = field(default_factory=list)

    def commands(self, commands: Commands) -> None:
        for argv in commands:
            outcome = self.runner.run(argv)
            self.left_running.extend(outcome.left_running)
            if not outcome.ok:
                raise _StageFailedError(f"'{argv[0]}' {outcome.describe()}{self._limit(outcome)}")

    def _limit(self, outcome: Outcome) -> str:
        if outcome.reason == "disk":
            return f" ('build.disk' is {format_size(self.stage.disk_bytes)})"
        return ""

    def collect(
        self, learning: Learning, tools: Mapping[str, Path], profile: Path
    ) -> dict[str, object]:
        """Train the program of this room; its profile goes to a new folder. Facts about it."""
        counts = self.runner.room.temporary / "counts"
        for folder in (counts, profile):
            folder.mkdir()
        folders = {COUNTS: str(counts), PROFILE: str(profile)}
        self.commands(with_folders(learning.instrument, folders))
        env = [(name, text.replace(COUNTS, str(counts))) for name, text in learning.env]
        for workload in learning.workloads:
            placed = {**folders, WORKLOAD: workload.name}
            run = TrainingRun(
                program=self.runner.room.tree / self.stage.artefact,
                workload=workload,
                env=tuple(env),
                tools=tools,
                deadline_ns=self.runner.left_ns,
                wrapper=with_folders((learning.wrapper,), placed)[0],
            )
            self._train(run)
        if not left_something(counts):
            raise _StageFailedError("the profile is empty: the training left no counts")
        self.commands(with_folders(learning.merge, folders))
        facts = count_facts(profile, counts, self.runner.log)
        if facts is None:
            raise _StageFailedError("the profile is empty: no function ran in the training")
        return facts

    def _train(self, run: TrainingRun) -> None:
        trainer, name = self.runner.workshop.trainer, run.workload.name
        self.runner.note(f"training: {name}")
        if run.deadline_ns <= 0:
            raise _StageFailedError(f"the training met its deadline before '{name}'")
        reason = "there is no trainer" if trainer is None else trainer.train(run)
        if reason:
            raise _StageFailedError(f"training '{name}': {reason}")

    def map_text(self, calls: Sequence[Call]) -> str | None:
        """The linker's map of the artefact, by linking it once more into the scratch folder."""
        workshop, room = self.runner.workshop, self.runner.room
        link = link_of(calls, self.place, room.tree / self.stage.artefact)
        argv = command_for_map(link, workshop.isolation.temporary_path)
        if not argv:
            return None
        self.runner.run_unlogged(argv)
        return read_map(room.temporary)

    @property
    def place(self) -> Place:
        """Where the paths in recorded calls are here."""
        runner = self.runner
        return Place(runner.room.tree, runner.workshop.isolation.build_path)


def _environment(stage: Stage, workshop: Workshop) -> dict[str, str]:
    isolation = workshop.isolation
    recording: dict[str, str] = {}
    if workshop.meter is not None:
        path = dict(stage.env).get("PATH", workshop.path)
        recording = recorder.environment(f"{isolation.temporary_path}/{recorder.FOLDER}", path)
    return {
        **workshop.environment,
        "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH,
        "GIT_CEILING_DIRECTORIES": str(Path(isolation.build_path).parent),
        **dict(stage.env),
        **recording,
    }


def _record(stage: Stage, room: Room, workshop: Workshop) -> None:
    if workshop.meter is not None:
        seen_as = f"{workshop.isolation.temporary_path}/{recorder.FOLDER}"
        place = room.temporary / recorder.FOLDER
        recorder.set_up(place, seen_as, workshop.meter, stage.recorded, stage.changes)


def _calls_log(room: Room) -> Path:
    return room.temporary / recorder.FOLDER / recorder.CALLS


def _keep_calls(room: Room, calls: Sequence[Call], folder: Path, inputs: Inputs) -> None:
    """Put the calls of this stage into its folder, and those of its dependencies beside them.

    What BOLT makes has the calls of the link.
    """
    if inputs.linked is not None:
        for name in (recorder.CALLS, recorder.DEPENDENCY_CALLS, recorder.COMPILE_COMMANDS):
            if (inputs.linked.folder / name).exists():
                shutil.copyfile(inputs.linked.folder / name, folder / name)
        return
    parent = inputs.parent
    if parent is not None and parent.kind == "dependencies":
        before = parent.folder / recorder.CALLS
        if before.is_file():
            shutil.copyfile(before, folder / recorder.DEPENDENCY_CALLS)
    if calls:
        shutil.copyfile(_calls_log(room), folder / recorder.CALLS)
        commands = json.dumps(recorder.compile_commands(calls), indent=1)
        (folder / recorder.COMPILE_COMMANDS).write_text(commands + "\n")


def _relinks(
    stage: Stage, start: Callable[[], _Run], calls: Sequence[Call], folder: Path
) -> dict[str, object]:
    """Make the relinks that are asked for, while objects are there; the facts about them."""
    if stage.relinks is None:
        return {}
    run = start()
    clock = run.runner.workshop.clock
    bench, started_ns = _bench(run, calls), clock.monotonic_ns()
    relinked = relinking.make_relinks(stage.relinks, bench, folder / relinking.FOLDER)
    return _relink_facts(relinked, clock.monotonic_ns() - started_ns)


def _bolt_relinks(stage: Stage, start: Callable[[], _Run], folder: Path) -> dict[str, object]:
    """Of a program that BOLT lays out: before it does, while its input is still there."""
    argv = bolt_call(stage.commands)
    if stage.relinks is None or not argv:
        return {}
    run = start()
    clock = run.runner.workshop.clock
    bench, started_ns = _bench(run, ()), clock.monotonic_ns()
    relinked = relinking.make_bolted(stage.relinks, argv, bench, folder / relinking.FOLDER)
    return _relink_facts(relinked, clock.monotonic_ns() - started_ns)


def _relink_facts(relinked: relinking.Relinked, wall_ns: int) -> dict[str, object]:
    return {"relinks": dataclasses.asdict(relinked), "relink_s": wall_ns / 1e9}


def _bench(run: _Run, calls: Sequence[Call]) -> relinking.Bench:
    room, isolation = run.runner.room, run.runner.workshop.isolation
    return relinking.Bench(
        run=run.runner.run,
        calls=calls,
        place=run.place,
        scratch=(
            room.temporary / relinking.FOLDER,
            f"{isolation.temporary_path}/{relinking.FOLDER}",
        ),
        artefact=run.stage.artefact,
    )


def _take(
    run: _Run, calls: Sequence[Call], earlier: Earlier, folder: Path, inputs: Inputs
) -> dict[str, object]:
    """Copy what is kept of a program's tree to `folder/files`; the facts about it."""
    stage, tree, files = run.stage, run.runner.room.tree, folder / "files"
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
    facts: dict[str, object] = {"artefact": dataclasses.asdict(artefact)}
    if stage.kind == "instrumented":
        return facts
    if inputs.linked is None:
        processes, map_text = run.runner.workshop.processes, run.map_text(calls)
        proof = read_proof(files / stage.artefact, run.place, calls, processes, map_text)
        named = Files(files, stage.artefact, frozenset(path for _, path in stage.tools))
        scratch = run.runner.workshop.isolation.temporary_path
        proof = with_origins(proof, named, run.place, calls, earlier, scratch)
    else:
        proof = proof_after(from_json(inputs.linked.facts["proof"]), files / stage.artefact)
    facts["proof"] = as_json(proof)
    return facts | {"profile": _profile_facts(folder / _LOG, inputs)}


def _profile_facts(log: Path, inputs: Inputs) -> dict[str, object]:
    """What is known of the profiles that a program was made with."""
    facts: dict[str, object] = {}
    for entry in (inputs.linked, inputs.profile):
        known = None if entry is None else entry.facts.get("profile")
        facts |= known if isinstance(known, dict) else {}
    if inputs.linked is not None:
        facts |= bolt_facts(log)
        if facts.get("bolt") == [0, 0]:
            raise _StageFailedError("BOLT found no function of the profile in the program")
    elif inputs.profile is not None:
        facts["warnings"] = warnings_in(log)
    return facts


def _strip(run: _Run, folder: Path) -> dict[str, object]:
    """Strip what is kept, after it was judged: the facts of the artefact that will run."""
    inside = run.runner.room.temporary / "stripped"
    program = folder / "files" / run.stage.artefact
    shutil.copy2(program, inside)
    run.commands((("strip", f"{run.runner.workshop.isolation.temporary_path}/{inside.name}"),))
    shutil.copy2(inside, program)
    artefact = read_artefact(program)
    return {} if artefact is None else {"artefact": dataclasses.asdict(artefact)}


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
