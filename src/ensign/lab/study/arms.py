"""From a study's workloads and built variants to the arms of a race. Pure."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ensign.builders.training import TrainingRun
from ensign.lab.study.trees import ProgramTree
from ensign.meter.requests import (
    ArmSpec,
    DriveLoad,
    Load,
    ProcessSpec,
    RaceRequest,
    Readiness,
    Sink,
)
from ensign.model.placeholders import fill, fill_all
from ensign.model.study import DriveStep, Server, Study, Workload, counts_itself
from ensign.model.trials import TWIN, Better, Metric, Mode, Score, Trial
from ensign.model.units import parse_duration_ns

_NO_VARIANT = 2  # the baseline and its twin


def group_count(variants: int, most_arms: int) -> int:
    """In how many races so many variants fit beside baseline and twin, which are in each."""
    return max(1, math.ceil(variants / (most_arms - _NO_VARIANT)))


@dataclass(frozen=True, slots=True)
class Seats:
    """CPUs of the programs under test, of load generators, and of the meter.

    `wide` are those of the programs and of load generators where a program needs several; empty
    where these are no others.
    """

    program: tuple[int, ...]
    load: tuple[int, ...]
    meter: tuple[int, ...]
    wide: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def widened(self) -> Seats:
        """Those for programs with several busy tasks."""
        program, load = self.wide
        return replace(self, program=program or self.program, load=load or self.load)


def _unchecked(trial: Trial, _arms: Field) -> Trial:
    return trial


@dataclass(frozen=True, slots=True)
class Field:
    """Who takes part: variants in order, the baseline first, each with its program's path.

    `tools` are the paths behind `{NAME}` placeholders. Relative paths in commands start at
    `folder`; a server has a folder of its own. `relinks` has paths of relinks by arm, of which each
    sweep uses the next of `rotation`; an arm without them is the same program in every sweep.
    `memory_bytes` is what all arms of a race may take together; None does not limit it. `most_arms`
    (3 or more) race at a time, `at_once` connections of a drive send in one slice; None: all.
    `trees` has, by path, what a program runs with; `library_path` is the inherited LD_LIBRARY_PATH.
    `apart` has the workloads of which no two arms may be alive at once. `check` judges what each
    trial ran, and takes out of it who ran something else. `whole` executions take turns whatever
    the workload.
    """

    artefacts: tuple[tuple[str, str], ...]
    tools: Mapping[str, str]
    seats: Seats
    folder: str | None = None
    relinks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rotation: int = 0
    twin: str | None = None
    memory_bytes: int | None = None
    most_arms: int | None = None
    at_once: int | None = None
    trees: Mapping[str, ProgramTree] = field(default_factory=dict)
    library_path: str = ""
    apart: frozenset[str] = frozenset()
    check: Callable[[Trial, Field], Trial] = _unchecked
    whole: bool = False

    def in_sweep(self, sweep: int) -> Field:
        """Who takes part in that sweep: each arm's relink of it, the twin's own one, too."""
        if not self.rotation:
            return self
        chosen = {arm: paths[sweep % self.rotation] for arm, paths in self.relinks.items()}
        artefacts = tuple((name, chosen.get(name, path)) for name, path in self.artefacts)
        return replace(self, artefacts=artefacts, twin=chosen.get(TWIN))

    def in_groups(self, seed: int) -> tuple[Field, ...]:
        """Fields of at most `most_arms`, each with the baseline and its twin.

        The others are dealt by the seed. The field itself where all race together.
        """
        first, *others = self.artefacts
        count = 1 if self.most_arms is None else group_count(len(others), self.most_arms)
        if count == 1:
            return (self,)
        random.Random(seed).shuffle(others)  # noqa: S311  # not for secrets
        parts = (others[start::count] for start in range(count))
        return tuple(replace(self, artefacts=(first, *part)) for part in parts)

    def without(self, arms: Collection[str]) -> Field:
        """Those that are left; the baseline leads them."""
        left = tuple(pair for pair in self.artefacts if pair[0] not in arms)
        return replace(self, artefacts=left)

    def has_failed(self, arms: Collection[str]) -> bool:
        """Whether there was somebody beside the baseline, and nobody is left of these."""
        others = [name for name, _ in self.artefacts[1:]]
        return bool(others) and all(name in arms for name in others)

    def only_baseline(self) -> Field:
        """The baseline alone (it still gets its twin)."""
        return replace(self, artefacts=self.artefacts[:1])


_SINKS = {None: Sink.PIPE, "pipe": Sink.PIPE, "null": Sink.NULL}
# Where memtier_benchmark writes what it did, and where that says how many requests there were.
_MEMTIER_JSON, _MEMTIER_COUNT = "{tmp}/memtier.json", "/ALL STATS/Totals/Count"


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of a workload: the same requests, by the same seed, for every arm."""

    workload: Workload
    requests: int | None
    seed: int


def race_request(
    study: Study, field: Field, workload: Workload, requests: int | None, *, seed: int
) -> RaceRequest:
    """One execution of one workload with all variants and the baseline's twin."""
    run = Execution(workload, requests, seed)
    arms = [_arm(study, field, run, name, artefact) for name, artefact in field.artefacts]
    baseline, path = field.artefacts[0]
    twin = _arm(study, field, run, baseline, field.twin or path)
    return RaceRequest(
        # Without baseline and twin there is nothing to compare with.
        arms=(
            replace(arms[0], required=True),
            *arms[1:],
            replace(twin, name=TWIN, required=True),
        ),
        mode=mode_of(study, field, workload),
        slice_ns=parse_duration_ns(study.race.slice),
        executions=1,
        seed=seed,
        meter_cpus=field.seats.meter,
        ports=study.race.ports,
        apart=workload.name in field.apart,
    )


def mode_of(study: Study, field: Field, workload: Workload) -> Mode:
    """How the arms of a workload take turns.

    Whole executions where they cannot be there together, where it says what it achieved, where its
    behavior asks for them, and for the wall time of a server under a load generator: slices have no
    queues.
    """
    asked = study.race.mode is not None
    waits = workload.load is not None and study.race.cost is Metric.WALL and not asked
    by_turns = field.whole or workload.name in field.apart or workload.by_turns
    return Mode.WHOLE if by_turns or waits else study.race.turns


def training_request(study: Study, field: Field, run: TrainingRun) -> RaceRequest:
    """The training of the one program in `field`; a server is asked to stop.

    A workload's deadline counts only where the study sets it: counting programs are slow.
    """
    ((name, artefact),) = field.artefacts
    execution = Execution(run.workload, run.workload.fixed_requests, study.race.seed)
    arm = _arm(study, field, execution, name, artefact)
    program = replace(
        arm.program,
        argv=(*run.wrapper, *arm.program.argv),
        env=(*arm.program.env, *run.env),
    )
    deadline_ns = run.deadline_ns
    if "deadline" in run.workload.model_fields_set:
        deadline_ns = min(deadline_ns, parse_duration_ns(run.workload.deadline))
    if arm.load is None:
        program = replace(program, deadline_ns=deadline_ns)
    elif isinstance(arm.load, Load):
        process = replace(arm.load.process, deadline_ns=deadline_ns)
        arm = replace(arm, load=replace(arm.load, process=process))
    return RaceRequest(
        arms=(replace(arm, program=program, ask_to_stop=True),),
        mode=Mode.WHOLE,
        slice_ns=parse_duration_ns(study.race.slice),
        executions=1,
        seed=study.race.seed,
        ports=study.race.ports,
        env_padding=False,
        counters=(),
    )


def _arm(study: Study, field: Field, run: Execution, name: str, artefact: str) -> ArmSpec:
    workload, server = run.workload, study.server
    tree = field.trees.get(artefact)
    own = {"artefact": artefact} if tree is None else tree.values
    values = {**field.tools, **own}
    if run.requests is not None:
        values["requests"] = str(run.requests)
    if server is None or workload.command is not None:
        count, pattern = _operations(workload)
        program = _batch(workload, field, values)
        arm = ArmSpec(name, program, operations=count, operations_pattern=pattern)
    else:
        arm = _served(server, field, run, name, values)
    if workload.score is not None:
        said = workload.score
        arm = replace(arm, score=Score(said.pattern, said.unit, Better(said.better)))
    if tree is None:
        return arm
    env = tree.environment(dict(arm.program.env), field.library_path)
    return replace(arm, program=replace(arm.program, env=env), files=tree.files)


def _served(
    server: Server, field: Field, run: Execution, name: str, values: Mapping[str, str]
) -> ArmSpec:
    workload = run.workload
    return ArmSpec(
        name=name,
        program=_server(server, workload, field, values),
        load=_load(run, field, values),
        ready=Readiness(server.ready.output, parse_duration_ns(server.ready.deadline)),
        preload=tuple(
            DriveLoad(step.drive, None, run.seed)
            if isinstance(step, DriveStep)
            else _loader(step, workload, field, values)
            for step in workload.preload
        ),
        ask_to_stop=server.stop == "term",
    )


def _load(run: Execution, field: Field, values: Mapping[str, str]) -> Load | DriveLoad:
    workload = run.workload
    if workload.drive is not None:
        seats = field.seats.load
        return DriveLoad(workload.drive, run.requests, run.seed, seats, field.at_once)
    argv = workload.load or []
    if workload.operations is not None:
        return Load(_loader(argv, workload, field, values), *_operations(workload))
    if not counts_itself(argv):
        process = _loader(argv, workload, field, values)
        return Load(process, operations=run.requests or 1)
    process = _loader([*argv, f"--json-out-file={_MEMTIER_JSON}"], workload, field, values)
    return Load(process, None, operations_json=(_MEMTIER_JSON, _MEMTIER_COUNT))


def _operations(workload: Workload) -> tuple[int | None, str | None]:
    said = workload.operations
    return (None, said) if isinstance(said, str) else (said, None)


def _loader(
    argv: Sequence[str], workload: Workload, field: Field, values: Mapping[str, str]
) -> ProcessSpec:
    return ProcessSpec(
        argv=fill_all(argv, values),
        cwd=field.folder,
        cpus=field.seats.load,
        deadline_ns=parse_duration_ns(workload.deadline),
    )


def _server(
    server: Server, workload: Workload, field: Field, values: Mapping[str, str]
) -> ProcessSpec:
    return ProcessSpec(
        argv=fill_all((*server.command, *workload.server_args), values),
        env=tuple((key, fill(text, values)) for key, text in server.env.items()),
        cpus=field.seats.program,
        cwd="{tmp}",
    )


def _batch(workload: Workload, field: Field, values: Mapping[str, str]) -> ProcessSpec:
    return ProcessSpec(
        argv=fill_all(workload.command or (), values),
        cwd=field.folder,
        cpus=field.seats.program,
        stdin=None if workload.input is None else fill(workload.input, values),
        stdout=None if workload.output in _SINKS else fill(workload.output or "", values),
        sink=_SINKS.get(workload.output, Sink.PIPE),
        deadline_ns=parse_duration_ns(workload.deadline),
    )
