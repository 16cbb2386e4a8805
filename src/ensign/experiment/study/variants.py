"""All that a program runs with, in its layout: where its loader finds what was built. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ensign.builders.training import TrainingRun
from ensign.experiment.machine import CpuPlan
from ensign.experiment.program_reports import report_of
from ensign.meter.requests import (
    DriveLoad,
    Load,
    NamedPattern,
    ProcessSpec,
    RaceRequest,
    Readiness,
    Sink,
    VariantFiles,
    VariantSpec,
)
from ensign.model.placeholders import fill, fill_all, program_values
from ensign.model.study import Study
from ensign.model.study_workload import DriveStep, Server, Workload
from ensign.model.trials import TWIN, Metric, Mode, Trial
from ensign.model.units import parse_duration_ns
from ensign.workloads.kind import DrivenServer, LoadedServer, OwnRun
from ensign.workloads.registry import kind_of

# What the meter replaces by the variant's own copy.
_COPY = "{files}"
_PATH = "LD_LIBRARY_PATH"


@dataclass(frozen=True, slots=True)
class ProgramTree:
    """Folders laid over each other, in which `program` and the folders `libraries` lie.

    What `without` names is left out. `in_place`: the only folder itself is used, no copy of it.
    """

    folders: tuple[str, ...]
    program: str
    libraries: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    in_place: bool = False

    @property
    def root(self) -> str:
        """The folder that the variant sees."""
        return self.folders[0] if self.in_place else _COPY

    @property
    def values(self) -> Mapping[str, str]:
        """Values of placeholders."""
        return {**program_values(f"{self.root}/{self.program}"), "files": self.root}

    @property
    def files(self) -> VariantFiles | None:
        """Files that the meter is to copy."""
        return None if self.in_place else VariantFiles(self.folders, self.without)

    def environment(self, env: Mapping[str, str], inherited: str) -> tuple[tuple[str, str], ...]:
        """`env` with the folders in which the loader looks first, before its own or inherited."""
        if not self.libraries:
            return tuple(env.items())
        own = [f"{self.root}/{library}".rstrip("/") for library in self.libraries]
        rest = env.get(_PATH, inherited)
        return tuple({**env, _PATH: ":".join([*own, *([rest] if rest else [])])}.items())


def _unchecked(trial: Trial, _variants: VariantSet) -> Trial:
    return trial


@dataclass(frozen=True, slots=True)
class VariantSet:
    """Variants that take part, in order, the baseline first, each with its program's path.

    `tools` are the paths behind `{NAME}` placeholders. Relative paths in commands start at
    `folder`; a server has a folder of its own. `relinks` has paths of relinks by variant, of which
    each round uses the next of `rotation`; a variant without them is the same program in every
    round. `memory_bytes` is what all variants of a race may take together; None does not limit it.
    `most_variants` (3 or more) race at a time, `at_once` connections of a drive send in one slice;
    None: all. `trees` has, by path, what a program runs with; `library_path` is the inherited
    LD_LIBRARY_PATH. `apart` has the workloads of which no two variants may be alive at once.
    `check` judges what each trial ran, and takes out of it who ran something else. `alternating`
    executions take turns whatever the workload. Where the ends of slices find a program is
    `sampled`.
    """

    artifacts: tuple[tuple[str, str], ...]
    tools: Mapping[str, str]
    cpus: CpuPlan
    folder: str | None = None
    relinks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rotation: int = 0
    twin: str | None = None
    memory_bytes: int | None = None
    most_variants: int | None = None
    at_once: int | None = None
    trees: Mapping[str, ProgramTree] = field(default_factory=dict)
    library_path: str = ""
    apart: frozenset[str] = frozenset()
    check: Callable[[Trial, VariantSet], Trial] = _unchecked
    alternating: bool = False
    sampled: bool = False

    @property
    def twin_apart(self) -> bool:
        """True if the twin's relinks are none of the baseline's."""
        baseline = self.relinks.get(self.artifacts[0][0], ())
        return not set(self.relinks.get(TWIN, ())) & set(baseline)

    def in_round(self, round_index: int) -> VariantSet:
        """Variants of that round: each one's relink of it, the twin's own one, too."""
        if not self.rotation:
            return self
        chosen = {
            variant: paths[round_index % self.rotation] for variant, paths in self.relinks.items()
        }
        artifacts = tuple((name, chosen.get(name, path)) for name, path in self.artifacts)
        return replace(self, artifacts=artifacts, twin=chosen.get(TWIN))

    def artifact_of(self, name: str, round_index: int) -> str:
        """The program that a variant (or the twin) is in that round."""
        used = self.in_round(round_index)
        if name == TWIN:
            return used.twin or self.artifacts[0][1]
        return dict(used.artifacts)[name]

    def without(self, variants: Collection[str]) -> VariantSet:
        """Those that are left; the baseline leads them."""
        left = tuple(pair for pair in self.artifacts if pair[0] not in variants)
        return replace(self, artifacts=left)

    def has_failed(self, variants: Collection[str]) -> bool:
        """True if there was somebody beside the baseline, and nobody is left of these."""
        others = [name for name, _ in self.artifacts[1:]]
        return bool(others) and all(name in variants for name in others)

    def only_baseline(self) -> VariantSet:
        """The baseline alone (it still gets its twin)."""
        return replace(self, artifacts=self.artifacts[:1])


_SINKS = {None: Sink.PIPE, "pipe": Sink.PIPE, "null": Sink.NULL}


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a workload: the same requests, by the same seed, for every variant."""

    workload: Workload
    requests: int | None
    seed: int


def race_request(
    study: Study, variants: VariantSet, workload: Workload, requests: int | None, *, seed: int
) -> RaceRequest:
    """One execution of one workload with all variants and the baseline's twin."""
    run = Execution(workload, requests, seed)
    specs = [
        _variant(study, variants, run, name, artifact) for name, artifact in variants.artifacts
    ]
    baseline, path = variants.artifacts[0]
    twin = _variant(study, variants, run, baseline, variants.twin or path)
    return RaceRequest(
        # Without baseline and twin there is nothing to compare with.
        variants=(
            replace(specs[0], required=True),
            *specs[1:],
            replace(twin, name=TWIN, required=True),
        ),
        mode=mode_of(study, variants, workload),
        slice_ns=parse_duration_ns(study.race.slice),
        executions=1,
        seed=seed,
        meter_cpus=variants.cpus.meter,
        ports=study.race.ports,
        apart=workload.name in variants.apart,
        code_samples=variants.sampled,
    )


def mode_of(study: Study, variants: VariantSet, workload: Workload) -> Mode:
    """Mode of a workload.

    Whole executions where they cannot be there together, where it says what it achieved, where its
    behavior asks for them, and for the wall time of a server under a load generator: slices have no
    queues.
    """
    asked = study.race.mode is not None
    waits = workload.load is not None and study.race.cost is Metric.WALL and not asked
    by_turns = variants.alternating or workload.name in variants.apart or workload.by_turns
    return Mode.ALTERNATING if by_turns or waits else study.race.turns


def training_request(study: Study, variants: VariantSet, run: TrainingRun) -> RaceRequest:
    """The training of the one program in `variants`; a server is asked to stop.

    A workload's deadline counts only where the study sets it: instrumented programs are slow.
    """
    ((name, artifact),) = variants.artifacts
    execution = Execution(run.workload, run.workload.fixed_requests, study.race.seed)
    variant = _variant(study, variants, execution, name, artifact)
    program = replace(
        variant.program,
        argv=(*run.wrapper, *variant.program.argv),
        env=(*variant.program.env, *run.env),
    )
    deadline_ns = run.deadline_ns
    if "deadline" in run.workload.model_fields_set:
        deadline_ns = min(deadline_ns, parse_duration_ns(run.workload.deadline))
    if variant.load is None:
        program = replace(program, deadline_ns=deadline_ns)
    elif isinstance(variant.load, Load):
        process = replace(variant.load.process, deadline_ns=deadline_ns)
        variant = replace(variant, load=replace(variant.load, process=process))
    variant = replace(variant, program=program, writes=tuple(map(str, run.writes)))
    return RaceRequest(
        variants=(replace(variant, ask_to_stop=True),),
        mode=Mode.ALTERNATING,
        slice_ns=parse_duration_ns(study.race.slice),
        executions=1,
        seed=study.race.seed,
        ports=study.race.ports,
        env_padding=False,
        counters=(),
    )


def _variant(
    study: Study, variants: VariantSet, run: Execution, name: str, artifact: str
) -> VariantSpec:
    workload = run.workload
    tree = variants.trees.get(artifact)
    own = program_values(artifact) if tree is None else tree.values
    values = {**variants.tools, **own}
    if run.requests is not None:
        values["requests"] = str(run.requests)
    filled = _Filled(variants, run, values)
    processes = kind_of(workload).processes(workload, run.requests)
    if isinstance(processes, OwnRun):
        variant = filled.own_run(name, processes)
    elif study.server is None:
        raise ValueError(f"workload {workload.name} has no server")
    else:
        variant = filled.served(name, study.server, processes)
    variant = replace(_scored(variant, workload), prepare=filled.prepare)
    if tree is None:
        return variant
    env = tree.environment(dict(variant.program.env), variants.library_path)
    reads = tree.folders if tree.in_place else ()
    program = replace(variant.program, env=env)
    return replace(variant, program=program, files=tree.files, reads=reads)


def _scored(variant: VariantSpec, workload: Workload) -> VariantSpec:
    """With the patterns by which the study finds scores in what is printed."""
    one, several = workload.score, [*workload.scores.items()]
    if one is not None and one.asked.has_names:
        several = [("", one), *several]
        one = None
    named = tuple(NamedPattern(name, section.asked) for name, section in several)
    score = variant.score if one is None else one.asked
    return replace(variant, score=score, scores=(*variant.scores, *named))


def _below(folder: str | None, path: str) -> str:
    """An absolute path, or one that a placeholder of the meter begins, stays."""
    inside = folder is not None and not path.startswith(("/", "{"))
    return f"{folder}/{path}" if inside else path


@dataclass(frozen=True, slots=True)
class _Filled:
    """Processes of one execution, with the values of their placeholders."""

    variants: VariantSet
    run: Execution
    values: Mapping[str, str]

    def own_run(self, name: str, processes: OwnRun) -> VariantSpec:
        workload, values = self.run.workload, self.values
        program = ProcessSpec(
            argv=fill_all(processes.argv, values),
            env=self._env({**dict(processes.env), **workload.env}),
            cwd=self._folder(workload),
            cpus=self.variants.cpus.program,
            stdin=None if workload.stdin is None else self._stdin(workload, workload.stdin),
            stdout=None if workload.output in _SINKS else fill(workload.output or "", values),
            sink=_SINKS.get(workload.output, Sink.PIPE),
            deadline_ns=parse_duration_ns(workload.deadline),
            ignore_failure=workload.ignore_failure,
        )
        counted = processes.operations
        return VariantSpec(
            name,
            program,
            operations=counted.count,
            operations_pattern=counted.pattern,
            # The meter starts what was built, from where it lies.
            copy_program=not workload.ends,
            scores=tuple(NamedPattern(*score) for score in processes.scores),
            report=None if processes.report is None else report_of(processes.report),
        )

    @property
    def prepare(self) -> tuple[ProcessSpec, ...]:
        """Commands before each execution, where its program begins, free to use every CPU."""
        workload = self.run.workload
        if workload.prepare is None:
            return ()
        return (
            ProcessSpec(
                argv=fill_all(workload.prepare, self.values),
                env=self._env(workload.env),
                cwd=self._folder(workload),
                deadline_ns=parse_duration_ns(workload.deadline),
            ),
        )

    def _folder(self, workload: Workload) -> str | None:
        own = self.variants.folder
        return own if workload.folder is None else _below(own, fill(workload.folder, self.values))

    def _stdin(self, workload: Workload, name: str) -> str:
        """Relative paths of a study start at its folder, wherever the command runs."""
        path = fill(name, self.values)
        return path if workload.folder is None else _below(self.variants.folder, path)

    def served(
        self, name: str, server: Server, processes: LoadedServer | DrivenServer
    ) -> VariantSpec:
        preload = tuple(
            DriveLoad(step.drive, None, self.run.seed)
            if isinstance(step, DriveStep)
            else self._loader(step)
            for step in self.run.workload.preload
        )
        return VariantSpec(
            name=name,
            program=self._server(server),
            load=self._load(processes),
            ready=Readiness(server.ready.output, parse_duration_ns(server.ready.deadline)),
            preload=preload,
            ask_to_stop=server.stop == "term",
        )

    def _load(self, processes: LoadedServer | DrivenServer) -> Load | DriveLoad:
        run, variants = self.run, self.variants
        if isinstance(processes, DrivenServer):
            cpus = variants.cpus.load
            return DriveLoad(processes.drive, run.requests, run.seed, cpus, variants.at_once)
        counted = processes.operations
        return Load(self._loader(processes.argv), counted.count, counted.pattern, counted.json)

    def _loader(self, argv: Sequence[str]) -> ProcessSpec:
        return ProcessSpec(
            argv=fill_all(argv, self.values),
            cwd=self.variants.folder,
            cpus=self.variants.cpus.load,
            deadline_ns=parse_duration_ns(self.run.workload.deadline),
            ignore_failure=self.run.workload.ignore_failure,
        )

    def _server(self, server: Server) -> ProcessSpec:
        return ProcessSpec(
            argv=fill_all((*server.command, *self.run.workload.server_args), self.values),
            env=self._env({**server.env, **self.run.workload.env}),
            cpus=self.variants.cpus.program,
            cwd="{tmp}",
        )

    def _env(self, env: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        return tuple((key, fill(text, self.values)) for key, text in env.items())


# A drive has no start-up of its own, so it may begin with few of what may be slow commands.
_FIRST_OF_LOAD, _FIRST_OF_DRIVE = 1000, 200


def first_requests(workload: Workload) -> int | None:
    """Requests of an execution of which nothing is known yet. Pure."""
    if workload.fixed_requests is not None or not workload.sends_requests:
        return workload.fixed_requests
    first = _FIRST_OF_LOAD if workload.drive is None else _FIRST_OF_DRIVE
    return workload.rounding * max(1, first // workload.rounding)
