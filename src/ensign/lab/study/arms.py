"""From a study's workloads and built variants to the arms of a race. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ensign.builders.training import TrainingRun
from ensign.model.placeholders import fill_all
from ensign.model.requests import ArmSpec, Load, ProcessSpec, RaceRequest, Readiness
from ensign.model.study import Server, Study, Workload
from ensign.model.trials import TWIN, Mode
from ensign.model.units import parse_duration_ns


@dataclass(frozen=True, slots=True)
class Seats:
    """CPUs of the programs under test, of load generators, and of the meter."""

    program: tuple[int, ...]
    load: tuple[int, ...]
    meter: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """Who takes part: variants in order, the baseline first, each with its program's path.

    `tools` are the paths behind `{NAME}` placeholders. Relative paths in commands start at
    `folder`; a server has a folder of its own. `relinks` has paths of relinks by arm, of which each
    sweep uses the next of `rotation`; an arm without them is the same program in every sweep.
    """

    artefacts: tuple[tuple[str, str], ...]
    tools: Mapping[str, str]
    seats: Seats
    folder: str | None = None
    relinks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rotation: int = 0
    twin: str | None = None

    def in_sweep(self, sweep: int) -> Field:
        """Who takes part in that sweep: each arm's relink of it, the twin's own one, too."""
        if not self.rotation:
            return self
        chosen = {arm: paths[sweep % self.rotation] for arm, paths in self.relinks.items()}
        artefacts = tuple((name, chosen.get(name, path)) for name, path in self.artefacts)
        return replace(self, artefacts=artefacts, twin=chosen.get(TWIN))

    def only_baseline(self) -> Field:
        """The baseline alone (it still gets its twin)."""
        return replace(self, artefacts=self.artefacts[:1])


def race_request(
    study: Study, field: Field, workload: Workload, requests: int | None, *, seed: int
) -> RaceRequest:
    """One execution of one workload with all variants and the baseline's twin."""
    arms = [
        _arm(study, field, workload, name, artefact, requests) for name, artefact in field.artefacts
    ]
    baseline, path = field.artefacts[0]
    twin = _arm(study, field, workload, baseline, field.twin or path, requests)
    return RaceRequest(
        arms=(*arms, replace(twin, name=TWIN)),
        mode=Mode(study.race.mode),
        slice_ns=parse_duration_ns(study.race.slice),
        executions=1,
        seed=seed,
        meter_cpus=field.seats.meter,
        ports=study.race.ports,
    )


def training_request(study: Study, field: Field, run: TrainingRun) -> RaceRequest:
    """The training of the one program in `field`; a server is asked to stop.

    A workload's deadline counts only where the study sets it: counting programs are slow.
    """
    ((name, artefact),) = field.artefacts
    arm = _arm(study, field, run.workload, name, artefact, run.workload.requests)
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
    else:
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


def _arm(
    study: Study, field: Field, workload: Workload, name: str, artefact: str, requests: int | None
) -> ArmSpec:
    values = {**field.tools, "artefact": artefact}
    if requests is not None:
        values["requests"] = str(requests)
    deadline_ns = parse_duration_ns(workload.deadline)
    if study.server is None or workload.load is None:
        return _batch(workload, field, name, values, deadline_ns)
    server = study.server
    return ArmSpec(
        name=name,
        program=_server(server, field, values),
        load=Load(
            ProcessSpec(
                argv=fill_all(workload.load, values),
                cwd=field.folder,
                cpus=field.seats.load,
                deadline_ns=deadline_ns,
            ),
            operations=requests or 1,
        ),
        ready=Readiness(server.ready.output, parse_duration_ns(server.ready.deadline)),
        preload=tuple(
            ProcessSpec(
                argv=fill_all(argv, values),
                cwd=field.folder,
                cpus=field.seats.load,
                deadline_ns=deadline_ns,
            )
            for argv in workload.preload
        ),
        ask_to_stop=server.stop == "term",
    )


def _server(server: Server, field: Field, values: Mapping[str, str]) -> ProcessSpec:
    return ProcessSpec(
        argv=fill_all(server.command, values),
        env=tuple(server.env.items()),
        cpus=field.seats.program,
        cwd="{tmp}",
    )


def _batch(
    workload: Workload, field: Field, name: str, values: Mapping[str, str], deadline_ns: int
) -> ArmSpec:
    program = ProcessSpec(
        argv=fill_all(workload.command or (), values),
        cwd=field.folder,
        cpus=field.seats.program,
        stdin=workload.input,
        deadline_ns=deadline_ns,
    )
    return ArmSpec(name=name, program=program)
