"""A stage in its sandbox: what it is made from, its commands, the training of its program."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from ensign.builders.build_context import Runner
from ensign.builders.collect_artifacts import Taken
from ensign.builders.commands import Commands, called, with_folders
from ensign.builders.profiles import (
    COUNTS,
    PROFILE,
    WORKLOAD,
    TrainingSteps,
    idle_functions,
    left_something,
    merged_coverage,
    of_file,
    taken_branches,
)
from ensign.builders.recorder import CALLS, read_calls
from ensign.builders.stage_facts import ProfileFacts, StageEntry
from ensign.builders.stages import Stage
from ensign.builders.training import TrainingRun
from ensign.host.files import copy_tree, remove_tree
from ensign.model.calls import Call
from ensign.proof.link import MAP, TreePlace, command_for_map, read_map
from ensign.proof.read import link_of
from ensign.toolchains.profiling import FDATA

TREE = "tree"
_BUBBLEWRAP = "bwrap"  # it waits for what is left


class StageFailedError(Exception):
    """Ends a stage; the text says why.

    `output` is what the command that failed had printed, `calls` are what was recorded until then.
    """

    def __init__(self, text: str, output: str = "") -> None:
        super().__init__(text)
        self.output = output
        self.calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Inputs:
    """Inputs of a stage: the source's tree, or its parent's; a profile; tools by name.

    Without `source_sha256` the source is nobody else's, and is not looked at. `laid_over` is the
    tree of the other revision that some sources come from.
    """

    source: Path
    source_sha256: str = ""
    parent: StageEntry | None = None
    profile: StageEntry | None = None
    tools: Mapping[str, Path] = field(default_factory=dict)
    laid_over: Path | None = None

    @property
    def tree(self) -> Path:
        """The tree that the stage gets a copy of: of a program, the files that were kept."""
        if self.parent is None:
            return self.source
        return self.parent.folder / self._name

    @property
    def tree_sha256(self) -> str:
        """Hash that the tree must have; empty where it is not known."""
        if self.parent is None:
            return self.source_sha256
        return self.parent.contents.get(self._name, "")

    @property
    def _name(self) -> str:
        is_tree = self.parent is not None and self.parent.kind == "dependencies"
        return TREE if is_tree else "files"

    @property
    def linked(self) -> StageEntry | None:
        """The parent, where it is a program already."""
        return self.parent if self.parent is not None and self.parent.kind == "program" else None

    @property
    def taken(self) -> Taken:
        """Parts of the parent that count, where it is a program."""
        program = None if self.parent is None else self.parent.facts.program
        return Taken((), ()) if program is None else program.taken

    @property
    def others(self) -> tuple[str, ...]:
        """Files that are loaded besides the program itself."""
        return self.taken.others

    @property
    def began_unix_ns(self) -> int:
        """Start of the first stage of the chain; 0 if this is the first one."""
        return 0 if self.parent is None else self.parent.facts.began_unix_ns

    @property
    def dependency_calls(self) -> tuple[Call, ...]:
        """The calls of the stage that this one's tree comes from."""
        return () if self.parent is None else read_calls(self.parent.folder / CALLS)

    @property
    def chain_s(self) -> float:
        """Time that it took to come here, without dependencies."""
        before = [entry for entry in (self.parent, self.profile) if entry is not None]
        chains = (entry.facts.chain_s for entry in before if entry.kind != "dependencies")
        return max(chains, default=0.0)


@dataclass(frozen=True, slots=True)
class Run:
    """A stage that is being carried out: its commands, and the training of its program."""

    stage: Stage
    runner: Runner
    left_running: list[str] = field(default_factory=list)

    def commands(self, commands: Commands) -> None:
        """Run them one after the other. StageFailedError."""
        for argv in commands:
            logged_bytes = self.runner.logged_bytes
            outcome = self.runner.run(argv)
            left = (name for name in outcome.left_running if name != _BUBBLEWRAP)
            self.left_running.extend(left)
            if not outcome.ok:
                raise StageFailedError(
                    f"'{called(argv)}' {outcome.describe()}{self.runner.limit_met(outcome)}",
                    self.runner.output_since(logged_bytes) if outcome.reason == "exited" else "",
                )

    def collect(
        self, training_steps: TrainingSteps, inputs: Inputs, profile: Path
    ) -> tuple[ProfileFacts, dict[str, str]]:
        """Train the program of this sandbox; its profile goes to the new folder `profile`.

        What is known of that, and which files could not take part.
        """
        temporary = self.runner.sandbox.temporary
        counts, made = temporary / "counts", temporary / "profile"
        for folder in (counts, made):
            folder.mkdir()
        folders = {COUNTS: str(counts), PROFILE: str(made)}
        self.commands(with_folders(training_steps.instrument, folders))
        instrumented, unable = self._instrument_files(training_steps, inputs, folders)
        try:
            self._train_all(training_steps, inputs, folders)
        except StageFailedError:
            if not instrumented or not training_steps.instrument_file:
                raise
            # One of the libraries may not bear it: the program alone, then.
            self._restore(inputs, instrumented)
            why = "the training failed while it collected its profile"
            unable |= dict.fromkeys(instrumented.values(), why)
            instrumented = {}
            for folder in (counts, counts.with_name(f"{counts.name}.files")):
                remove_tree(folder)
            counts.mkdir()
            self._train_all(training_steps, inputs, folders)
        if not left_something(counts):
            raise StageFailedError("the profile is empty: the training left no counts")
        self.commands(with_folders(training_steps.merge, folders))
        for number, name in instrumented.items():
            merged = self._tried(of_file(training_steps.merge_file, name, number), folders)
            if merged:
                unable[name] = "the training left no counts of it"
        copy_tree(made, profile)
        coverage = merged_coverage(profile, counts, self.runner.log)
        if coverage is None:
            raise StageFailedError("the profile is empty: no function ran in the training")
        tree = self.runner.sandbox.tree
        programs = [tree / name for name in (self.stage.artifact, *inputs.others)]
        return ProfileFacts(coverage, idle=idle_functions(counts, programs)), unable

    def _instrument_files(
        self, training_steps: TrainingSteps, inputs: Inputs, folders: Mapping[str, str]
    ) -> tuple[dict[int, str], dict[str, str]]:
        """Further files that count themselves, by number; why others cannot."""
        instrumented: dict[int, str] = {}
        unable: dict[str, str] = {}
        for number, name in enumerate(inputs.others if training_steps.merge_file else ()):
            failed = self._tried(of_file(training_steps.instrument_file, name, number), folders)
            if failed:
                unable[name] = failed
            else:
                instrumented[number] = name
        return instrumented, unable

    def _restore(self, inputs: Inputs, instrumented: Mapping[int, str]) -> None:
        for name in instrumented.values():
            target = self.runner.sandbox.tree / name
            target.unlink()
            shutil.copy2(inputs.tree / name, target)

    def _train_all(
        self, training_steps: TrainingSteps, inputs: Inputs, folders: Mapping[str, str]
    ) -> None:
        tree = self.runner.sandbox.tree
        env = [(name, text.replace(COUNTS, folders[COUNTS])) for name, text in training_steps.env]
        for workload in training_steps.workloads:
            placed = {**folders, WORKLOAD: workload.name}
            run = TrainingRun(
                program=tree / self.stage.artifact,
                workload=workload,
                env=tuple(env),
                tools=inputs.tools,
                deadline_ns=self.runner.left_ns,
                wrapper=with_folders((training_steps.wrapper,), placed)[0],
                root=tree,
                libraries=tuple(str(tree / folder) for folder in inputs.taken.folders),
                writes=self.runner.sandbox.folders,
            )
            self._train(run)

    def lay_out_files(self, inputs: Inputs) -> dict[str, str]:
        """Let BOLT lay out all that is loaded besides the program; why it could not."""
        if not self.stage.file_commands:
            return {}
        tree = self.runner.sandbox.tree
        unable = {} if inputs.profile is None else dict(inputs.profile.facts.unable)
        for number, name in enumerate(inputs.others):
            if name in unable:
                continue
            data = tree / f"{FDATA}.{number}"
            if not data.exists() or not taken_branches(data):
                unable[name] = "the training ran no function of it"
                continue
            failed = self._tried(of_file(self.stage.file_commands, name, number), {})
            if failed:
                unable[name] = failed
        return unable

    def _tried(self, commands: Commands, folders: Mapping[str, str]) -> str:
        """Run commands that may fail; how the first one did, empty if none."""
        for argv in with_folders(commands, folders):
            outcome = self.runner.run(argv)
            if not outcome.ok:
                return f"'{PurePath(argv[0]).name}' {outcome.describe()}"
        return ""

    def _train(self, run: TrainingRun) -> None:
        trainer, name = self.runner.build_context.trainer, run.workload.name
        self.runner.note(f"training: {name}")
        if run.deadline_ns <= 0:
            raise StageFailedError(f"the training timed out before '{name}'")
        reason = "there is no trainer" if trainer is None else trainer.train(run)
        if reason:
            raise StageFailedError(f"training '{name}': {reason}")

    def map_text(self, calls: Sequence[Call], name: str) -> str | None:
        """The linker's map of a file, by linking it once more into the scratch folder."""
        build_context, sandbox = self.runner.build_context, self.runner.sandbox
        link = link_of(calls, self.place, sandbox.tree / name)
        argv = command_for_map(link, build_context.sandboxes.temporary_path)
        if not argv:
            return None
        (sandbox.temporary / MAP).unlink(missing_ok=True)
        self.runner.run_unlogged(argv)
        return read_map(sandbox.temporary)

    @property
    def place(self) -> TreePlace:
        """Folders here of the paths in recorded calls."""
        runner = self.runner
        return TreePlace(runner.sandbox.tree, runner.build_context.sandboxes.build_path)
