"""Carrying out one stage: a copy of the parent's tree, the commands, what is kept of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ensign.builders import recorder, relink
from ensign.builders.build_context import Bounds, BuildContext, Runner
from ensign.builders.collect_artifacts import TakingError, made_libraries, take
from ensign.builders.collector import CallLog, recorded
from ensign.builders.commands import with_jobs
from ensign.builders.first_error import first_error
from ensign.builders.layouts import bolt_call
from ensign.builders.link_members import RelinkContext
from ensign.builders.profiles import bolt_coverage, lay, of_file, warnings_in
from ensign.builders.revisions import lay_over
from ensign.builders.sandboxes import Sandbox
from ensign.builders.stage_facts import (
    ProfileFacts,
    ProgramFacts,
    StageEntry,
    StageFacts,
    as_json,
    program_of,
    proof_of,
    reader,
)
from ensign.builders.stage_runs import TREE, Inputs, Run, StageFailedError
from ensign.builders.stages import Stage
from ensign.host.files import copy_tree, remove_tree
from ensign.host.foreign_files import copy_foreign, take_over
from ensign.host.processes import read_tail
from ensign.meter.questions import calls_of
from ensign.model.builds import BuildError
from ensign.model.calls import AskedCall, Call
from ensign.model.unit_choices import read_unit_choices
from ensign.proof.leftovers import FILE as BEFORE
from ensign.proof.leftovers import Leftover, as_text, leftovers, read_leftovers
from ensign.proof.loaded_bytes import Artifact, read_artifact, read_built
from ensign.proof.origins import OriginEvidence, programs_below, trace
from ensign.proof.read import proof_after, read_proof
from ensign.toolchains.profiling import FDATA

# Any fixed moment does; this is 2000-01-01.
SOURCE_DATE_EPOCH = "946684800"
_LOG = "log.txt"
_RELINKS_LOG = "relinks.txt"
BUILD_TREE = "build-tree"


@dataclass(frozen=True, slots=True)
class StageResult:
    """Outcome of a stage: its entry, or the last lines of its log and why it failed.

    `reason` is how its command ended, `error` what failed it, where a tool said so.
    """

    entry: StageEntry | None
    log: Path
    reason: str = ""
    tail: str = ""
    error: BuildError | None = None

    @property
    def why(self) -> str:
        """The cause of the failure in a line."""
        return self.reason if self.error is None else self.error.said

    @property
    def told(self) -> str:
        """That line, where its log is, what helps, and the last lines of the log."""
        way_out = "" if self.error is None else self.error.way_out
        return "\n".join(filter(None, (f"{self.why}; log: {self.log}", way_out, self.tail)))


def perform_stage(
    stage: Stage, inputs: Inputs, jobs: int, build_context: BuildContext
) -> StageResult:
    """Build a stage in a copy of its tree. A failing command is a result, not an error.

    StorageFailed if the disk is full, Interrupted if the processes were interrupted.
    """
    build_context = build_context.within(stage.environment)
    log = build_context.new_log(stage.kind, stage.key)

    def fill(folder: Path) -> Mapping[str, object]:
        with (
            build_context.sandboxes.sandbox() as sandbox,
            recorded(stage, sandbox, build_context) as call_log,
        ):
            began_unix_ns = inputs.began_unix_ns or int(build_context.clock.unix_s() * 1e9)
            _begin(stage, inputs, sandbox, build_context)
            start = partial(_start, stage, sandbox, build_context, log)
            start().commands(stage.clean)
            before = _leftovers(sandbox, folder, inputs)
            if inputs.profile is not None:
                lay(inputs.profile.folder / "profile", sandbox.tree)
            bolted = _bolt_relinks(stage, start, inputs, folder)
            started_ns = build_context.clock.monotonic_ns()
            run = start()
            profile, unable = _main_part(run, inputs, jobs, folder)
            build_s = (build_context.clock.monotonic_ns() - started_ns) / 1e9
            calls = call_log.calls()
            relinked = bolted or _relinks(stage, start, (*inputs.dependency_calls, *calls), folder)
            if relinked is not None:
                # What relinks took is not the build's: what is left of it begins anew.
                run = replace(run, runner=start().runner)
            run.commands(with_jobs(stage.tool_commands, jobs))
            shutil.copyfile(log, folder / _LOG)
            facts = StageFacts(
                label=stage.label,
                began_unix_ns=began_unix_ns,
                build_s=build_s,
                chain_s=build_s + inputs.chain_s,
                left_running=tuple(sorted(set(run.left_running))),
                unable=unable,
                profile=profile,
            )
            if relinked is not None:
                made, relink_s = relinked
                facts = replace(facts, relinked=made, relink_s=relink_s)
            calls += call_log.calls(skip=len(calls))
            _keep_calls(call_log, calls, folder, inputs)
            if stage.kind == "dependencies":
                sandbox.tree.rename(folder / TREE)
            elif stage.kind != "profile":
                evidence = OriginEvidence(
                    run.place,
                    (*inputs.dependency_calls, *calls),
                    before,
                    began_unix_ns,
                    build_context.sandboxes.temporary_path,
                    recorded=build_context.meter is not None,
                )
                facts = _take(run, calls, evidence, (folder, facts), inputs)
            if stage.keep_tree and stage.kind == "program":
                # What BOLT makes has the tree of the program that it begins with.
                before_it = inputs.linked
                built = sandbox.tree if before_it is None else before_it.folder / BUILD_TREE
                copy_tree(built, folder / BUILD_TREE)
            if stage.strip and facts.program is not None:
                facts = replace(facts, program=_stripped(run, folder, facts.program))
            take_over(folder)
            return as_json(facts)

    try:
        entry = build_context.cache.make(stage.kind, stage.key, fill, reader(stage.kind))
    except StageFailedError as failed:
        tree = build_context.sandboxes.build_path
        error = first_error(failed.output, failed.calls, tree)
        return StageResult(None, log, str(failed), read_tail(log), error)
    log.unlink(missing_ok=True)
    return StageResult(entry, entry.folder / _LOG)


def _begin(stage: Stage, inputs: Inputs, sandbox: Sandbox, build_context: BuildContext) -> None:
    """The tree that the commands begin with."""
    again = build_context.source_again if inputs.parent is None else None
    build_context.copy_pinned(inputs.tree, sandbox.tree, inputs.tree_sha256, again)
    if inputs.laid_over is not None:
        lay_over(read_unit_choices(stage.laid_over[1]), inputs.laid_over, sandbox.tree)


def _main_part(
    run: Run, inputs: Inputs, jobs: int, folder: Path
) -> tuple[ProfileFacts, dict[str, str]]:
    """The training, or the commands; what is known of the profile, and who cannot take part."""
    stage = run.stage
    if stage.training_steps is not None:
        return run.collect(stage.training_steps, inputs, folder / "profile")
    run.commands(with_jobs(stage.commands, jobs))
    return ProfileFacts(), run.lay_out_files(inputs)


def _leftovers(sandbox: Sandbox, folder: Path, inputs: Inputs) -> tuple[Leftover, ...]:
    """Leftovers of earlier builds in the tree that the first stage of the chain had; kept, too."""
    parent = inputs.parent
    before = leftovers(sandbox.tree) if parent is None else read_leftovers(parent.folder / BEFORE)
    (folder / BEFORE).write_text(as_text(before))
    return before


def _start(stage: Stage, sandbox: Sandbox, build_context: BuildContext, log: Path) -> Run:
    """Commands of a stage that may take, from now on and together, what its limits allow."""
    deadline_ns = build_context.clock.monotonic_ns() + stage.deadline_ns
    bounds = Bounds.of(sandbox, deadline_ns, stage.disk_bytes)
    return Run(
        stage, Runner(build_context, sandbox, bounds, log, environment_of(stage, build_context))
    )


def environment_of(stage: Stage, build_context: BuildContext) -> dict[str, str]:
    """Environment of the commands of a stage."""
    sandboxes = build_context.sandboxes
    recording: dict[str, str] = {}
    if build_context.meter is not None:
        path = dict(stage.env).get("PATH", build_context.path)
        recording = recorder.environment(sandboxes.recorder_path, path)
    return {
        **build_context.environment,
        "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH,
        "GIT_CEILING_DIRECTORIES": str(Path(sandboxes.build_path).parent),
        **dict(stage.env),
        **recording,
    }


def _keep_calls(call_log: CallLog, calls: Sequence[Call], folder: Path, inputs: Inputs) -> None:
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
        shutil.copyfile(call_log.path, folder / recorder.CALLS)
        commands = json.dumps(recorder.compile_commands(calls), indent=1)
        (folder / recorder.COMPILE_COMMANDS).write_text(commands + "\n")


def _relinks(
    stage: Stage,
    start: Callable[[], Run],
    calls: Sequence[Call],
    folder: Path,
) -> tuple[relink.Relinked, float] | None:
    """Make the relinks that are asked for, while objects are there; what came of it, in seconds."""
    if stage.relinks is None:
        return None
    run = _with_own_log(start(), folder)
    clock = run.runner.build_context.clock
    context, started_ns = _relink_context(run, calls, _loaded_of(run)), clock.monotonic_ns()
    relinked = relink.make_relinks(stage.relinks, context, folder / relink.FOLDER)
    return relinked, (clock.monotonic_ns() - started_ns) / 1e9


def _with_own_log(run: Run, folder: Path) -> Run:
    """The run without what tools say of relinks: that is not said of the build."""
    log = folder / _RELINKS_LOG
    log.write_bytes(b"")
    return replace(run, runner=replace(run.runner, log=log))


def _loaded_of(run: Run) -> tuple[str, ...]:
    """Programs and libraries among what will be kept of the tree, the program first."""
    if not run.stage.takes_more_than_program:
        return (run.stage.artifact,)
    apart = run.runner.sandbox.temporary / "kept"
    try:
        taken = take(replace(run.stage, tools=()), run.place, apart)
    except TakingError:  # what tools' commands make is missing yet, or it is said later
        return (run.stage.artifact,)
    finally:
        remove_tree(apart)
    return tuple(file.path for file in taken.files if file.loaded)


def _bolt_relinks(
    stage: Stage, start: Callable[[], Run], inputs: Inputs, folder: Path
) -> tuple[relink.Relinked, float] | None:
    """Relinks of what BOLT lays out: made before it does, while its input is still there."""
    argv = bolt_call(stage.commands)
    if stage.relinks is None or not argv:
        return None
    run = _with_own_log(start(), folder)
    clock, tree = run.runner.build_context.clock, run.runner.sandbox.tree
    calls = {stage.artifact: argv}
    for number, name in enumerate(inputs.others):
        if (tree / f"{FDATA}.{number}").exists():
            calls[name] = bolt_call(of_file(stage.file_commands, name, number))
    files = (stage.artifact, *inputs.others)
    context, started_ns = _relink_context(run, (), files), clock.monotonic_ns()
    relinked = relink.make_bolted(stage.relinks, calls, context, folder / relink.FOLDER)
    return relinked, (clock.monotonic_ns() - started_ns) / 1e9


def _relink_context(run: Run, calls: Sequence[Call], files: tuple[str, ...]) -> RelinkContext:
    sandbox, build_context = run.runner.sandbox, run.runner.build_context
    sandboxes, meter = build_context.sandboxes, build_context.meter

    return RelinkContext(
        run=run.runner.run,
        calls=calls,
        place=run.place,
        scratch=(
            sandbox.temporary / relink.FOLDER,
            f"{sandboxes.temporary_path}/{relink.FOLDER}",
        ),
        files=files,
        path=dict(run.stage.env).get("PATH", build_context.path),
        recorder=sandboxes.recorder_path,
        parse=None if meter is None else partial(_parsed, meter),
    )


def _parsed(meter: Path, asked: AskedCall) -> Call:
    (call,) = calls_of(meter, [asked])
    return call


def _take(
    run: Run,
    calls: Sequence[Call],
    evidence: OriginEvidence,
    known: tuple[Path, StageFacts],
    inputs: Inputs,
) -> StageFacts:
    """Copy what is kept of a program's tree to the stage's `files`; its facts with those of that.

    `known` are the folder of the stage, and what is known of it.
    """
    (folder, facts), stage = known, run.stage
    files = folder / "files"
    try:
        taken = take(stage, run.place, files)
    except TakingError as error:
        raise StageFailedError(str(error)) from None
    program = ProgramFacts(taken, _artifact(files / stage.artifact))
    if stage.kind == "instrumented":
        return replace(facts, program=program)
    if inputs.linked is None:
        made = made_libraries(run.place, inputs.source, taken.files)
        program = _proved(run, calls, evidence, files, replace(program, made=made))
    else:
        program = _proved_after(inputs.linked, files, stage.artifact, program)
    return replace(facts, program=program, profile=_profile(folder / _LOG, inputs))


def _artifact(program: Path) -> Artifact:
    artifact = read_artifact(program)
    if artifact is None:
        raise StageFailedError(f"'{program.name}' is not a program in ELF format")
    return artifact


def _proved(
    run: Run,
    calls: Sequence[Call],
    evidence: OriginEvidence,
    files: Path,
    program: ProgramFacts,
) -> ProgramFacts:
    """With what is proved of the program, and of each file that is loaded with it."""
    stage, processes = run.stage, run.runner.build_context.processes
    proof = read_proof(
        files / stage.artifact, run.place, calls, processes, run.map_text(calls, stage.artifact)
    )
    names = programs_below(files, stage.artifact, [path for _, path in stage.tools])
    origins = trace(names, evidence, proof.link)
    every = evidence.calls
    others = {
        name: read_proof(
            files / name, run.place, every, processes, run.map_text(every, name), proof
        )
        for name in program.taken.others
    }
    return replace(program, proof=replace(proof, origins=origins), file_proofs=others)


def _proved_after(
    linked: StageEntry, files: Path, artifact: str, program: ProgramFacts
) -> ProgramFacts:
    before = program_of(linked)
    others = {
        name: proof_after(before.file_proofs[name], files / name)
        for name in program.taken.others
        if name in before.file_proofs
    }
    proof = proof_after(proof_of(linked), files / artifact)
    return replace(program, made=before.made, proof=proof, file_proofs=others)


def _profile(log: Path, inputs: Inputs) -> ProfileFacts:
    """Known facts about the profiles that a program was made with."""
    before = [entry.facts.profile for entry in (inputs.linked, inputs.profile) if entry is not None]
    coverage = {
        profile_coverage.used_by: profile_coverage
        for facts in before
        for profile_coverage in facts.coverage
    }
    warnings = {name: count for facts in before for name, count in facts.warnings.items()}
    if inputs.linked is not None:
        coverage["BOLT"] = bolt_coverage(log)
        if coverage["BOLT"].profiled == 0:
            raise StageFailedError("BOLT found no function of the profile in the program")
    elif inputs.profile is not None:
        warnings = warnings_in(log)
    idle = tuple(name for facts in before for name in facts.idle)
    return ProfileFacts(tuple(coverage.values()), warnings, idle)


def _stripped(run: Run, folder: Path, program: ProgramFacts) -> ProgramFacts:
    """Strip what is loaded, after it was judged: the facts of the files that will run."""
    inside, files = run.runner.sandbox.temporary / "stripped", folder / "files"
    seen_as = f"{run.runner.build_context.sandboxes.temporary_path}/{inside.name}"
    stripped = []
    for file in program.taken.files:
        if file.loaded:
            kept = files / file.path
            inside.unlink(missing_ok=True)
            shutil.copy2(kept, inside)
            run.commands((("strip", seen_as),))
            kept.unlink()
            copy_foreign(inside, kept, run.stage.disk_bytes)
        stripped.append(read_built(files / file.path, file.path) if file.loaded else file)
    taken = replace(program.taken, files=tuple(stripped))
    return replace(program, taken=taken, artifact=_artifact(files / run.stage.artifact))
