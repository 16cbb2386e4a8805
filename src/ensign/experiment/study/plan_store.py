"""The plan that is written down before the first round, and taken up again on resumption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter, ValidationError

from ensign.experiment.metric_and_mode import runs_to_look_at
from ensign.experiment.study.budget import (
    CLOCK_EXECUTIONS,
    CLOCKS_SHARE,
    LOOKS_SHARE,
    Demand,
    WorkloadPilot,
    exact_rounds,
    fitted,
    is_adaptive,
    require_time_left,
    spread_variants,
)
from ensign.experiment.study.groups import (
    fewest,
    group_findings,
    most_variants_of,
    variants_together,
)
from ensign.experiment.study.pilots import BaselinePilot, Decided, decided, looked_at, pilot
from ensign.experiment.study.round_plan import RoundPlan
from ensign.experiment.study.self_timed import ClockTrial, ends_by_the_clock, self_timed_findings
from ensign.experiment.study.variants import VariantSet
from ensign.host.clock import Clock
from ensign.meter.client import Meter
from ensign.model.errors import BudgetTooShort, CommandFailed, InputError
from ensign.model.finding_kinds.race import CONNECTIONS_BY_TURNS, MEMORY_SHORT
from ensign.model.findings import Finding
from ensign.model.study import Study, longest_run_ns
from ensign.model.study_workload import Workload
from ensign.model.traced_execution import TracedExecution
from ensign.model.trials import Mode, Trial
from ensign.model.units import format_duration, format_size, parse_duration_ns
from ensign.stats.expected import pilot_rounds
from ensign.store.folder import StudyFolder

_KEY_CHARACTERS = 16
# A budget so many times as large may do, where nobody knows yet.
_LARGER = 4
_PLAN = TypeAdapter(RoundPlan)
# A slice lasts for two rounds of requests then, also of a variant that is a quarter slower or a
# third faster: whether it sends once or twice would move what beginning a slice costs per request.
_ROUNDS_PER_SLICE = 1.5


@dataclass(frozen=True, slots=True)
class PlanContext:
    """Where a plan is made: the meter that races pilots, a clock, the store, and who is told.

    `traced` is what was seen of the baseline on each workload.
    """

    meter: Meter
    clock: Clock
    folder: StudyFolder
    on_pilot: Callable[[str], None]
    traced: Mapping[str, TracedExecution] = field(default_factory=dict)


def plan_key(
    study: Study, hashes: Mapping[str, str], relinks: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Names everything that a trial depends on: programs, workloads, server, race. Pure.

    `hashes` are the loadable bytes per variant, `relinks` those of the relinks that are raced.
    Trials under one key may be compared.
    """
    left_out = {"margin", "prefer", "slice_check", "confirm"}
    if study.race.precision is None:
        left_out.add("precision")
    if study.race.stopping == "fixed":
        left_out.add("stopping")
    said = study.model_dump(
        mode="json", include={"server", "cpus", "race"}, exclude={"race": left_out}
    )
    said["workloads"] = [each.identity for each in study.workloads]
    if study.inputs:
        said["inputs"] = {path: each.sha256 for path, each in study.inputs.items()}
    programs: dict[str, object] = {"study": said, "programs": dict(hashes)}
    if relinks:
        programs["relinks"] = {name: list(each) for name, each in relinks.items()}
    text = json.dumps(programs, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Pilots:
    """What the baseline needs and does by workload, and the time that finding out took (ns)."""

    by_workload: Mapping[str, WorkloadPilot]
    spent_ns: int
    decided: Decided
    sights: Mapping[str, BaselinePilot]


def piloted(context: PlanContext, study: Study, variants: VariantSet) -> Pilots:
    """A pilot of each workload, and what follows from its behavior.

    InputError where what is asked for does not fit into the budget, as soon as a pilot says so.
    """
    pilots: dict[str, WorkloadPilot] = {}
    sights: dict[str, BaselinePilot] = {}
    compared = len(variants.artifacts) - 1
    demand = Demand(study, pilots, compared, variants_together(compared, study.race.group_size))
    began_ns = context.clock.monotonic_ns()
    for workload in study.workloads:
        context.on_pilot(workload.name)
        measured = pilots[workload.name] = _piloted(context, study, variants, workload)
        # It is run once more at least.
        spent_ns = context.clock.monotonic_ns() - began_ns
        require_time_left(demand, spent_ns + measured.startup_ns + measured.running_ns)
        sight = _looked_at(context, study, variants, workload, measured)
        if sight is not None:
            sights[workload.name] = sight
    found = decided(study, sights, variants.cpus)
    for name in {*found.alternating, *found.wide}:
        pilots[name] = sights[name].of(pilots[name])
    left_ns = parse_duration_ns(study.race.budget) * CLOCKS_SHARE
    for workload in study.workloads:
        measured, sight = pilots[workload.name], sights.get(workload.name)
        left_ns -= CLOCK_EXECUTIONS * demand.execution_ns(
            workload.name, {workload.name: measured.running_ns}, 0
        )
        if sight is None:
            continue
        placed = replace(variants, alternating=workload.name in found.alternating)
        traced = context.traced.get(workload.name)
        known = (measured.requests, sight.looked, traced, left_ns >= 0)
        timed = ends_by_the_clock(context.meter, ClockTrial(study, placed, workload, *known))
        pilots[workload.name] = replace(measured, self_timed=timed)
    return Pilots(pilots, context.clock.monotonic_ns() - began_ns, found, sights)


def _looked_at(
    context: PlanContext,
    study: Study,
    variants: VariantSet,
    workload: Workload,
    measured: WorkloadPilot,
) -> BaselinePilot | None:
    took_ns = measured.startup_ns + measured.running_ns + measured.overhead_ns
    allowed_ns = parse_duration_ns(study.race.budget) * LOOKS_SHARE / len(study.workloads)
    runs = runs_to_look_at(measured.running_ns, took_ns, allowed_ns)
    return looked_at(context.meter, study, variants, workload, measured.requests, runs=runs)


def fixed_plan(
    context: PlanContext,
    study: Study,
    variants: VariantSet,
    key: str,
    pilots: Pilots | None = None,
) -> RoundPlan:
    """The stored plan of that key, or a new one from pilots, stored before it is used.

    InputError as `piloted`, which is called where there are no `pilots` yet.
    """
    stored = context.folder.read_json(f"plans/{key}")
    if stored is None:
        plan = _new_plan(study, variants, key, pilots or piloted(context, study, variants))
        write_plan(context.folder, plan)
        return plan
    return _read(context.folder, key, stored)


def taken_up(folder: StudyFolder, plan: RoundPlan) -> RoundPlan:
    """The stored plan of the same key, or this one, which is stored now."""
    stored = folder.read_json(f"plans/{plan.key}")
    if stored is None:
        write_plan(folder, plan)
        return plan
    return _read(folder, plan.key, stored)


def write_plan(folder: StudyFolder, plan: RoundPlan) -> None:
    """Replaces the stored plan in one step."""
    folder.write_json(f"plans/{plan.key}", _PLAN.dump_python(plan, mode="json"))


def plan_findings(plan: RoundPlan) -> tuple[Finding, ...]:
    """What there is to say of a plan before it is carried out. Pure."""
    return (
        *group_findings(plan.together, plan.most_variants),
        *_memory_findings(plan),
        *turns_findings(plan.at_once),
        *plan.seen,
        *self_timed_findings(plan.self_timed, plan.clock_unknown),
    )


def require_any_time_left(study: Study, variants: int) -> None:
    """InputError where a study cannot fit its budget, whatever its programs take. Pure.

    `variants` do not count the baseline.
    """
    together = variants_together(variants, study.race.group_size)
    require_time_left(Demand(study, {}, variants, together), 0)


def _read(folder: StudyFolder, key: str, stored: Mapping[str, object]) -> RoundPlan:
    try:
        return _PLAN.validate_python({"key": key, **stored})
    except ValidationError:
        raise InputError(
            f"plan {key} in {folder.root} is damaged; delete it and run again"
        ) from None


def _new_plan(study: Study, variants: VariantSet, key: str, found: Pilots) -> RoundPlan:
    compared = len(variants.artifacts) - 1
    together = variants_together(compared, study.race.group_size)
    largest = max(compared + 2, spread_variants(study))
    pilots: dict[str, WorkloadPilot] = {}
    for name, measured in found.by_workload.items():
        most = most_variants_of(measured.peak_memory_bytes, variants.memory_bytes, largest)
        pilots[name] = replace(measured, most_variants=most if most < largest else None)
    fit = fitted(Demand(study, pilots, compared, together), found.spent_ns)
    return RoundPlan(
        key,
        fit.rounds,
        fit.requests,
        fit.total_ns,
        together=together,
        most_variants={
            name: each.most_variants
            for name, each in pilots.items()
            if each.most_variants is not None and each.most_variants != together
        },
        at_once=connections_at_once(study, pilots),
        exact=exact_rounds(study) is not None,
        closed=False,
        allowed_ns=fit.allowed_ns,
        round_ns=fit.round_ns,
        spent_ns=found.spent_ns,
        relinks=variants.rotation,
        overhead_ns=max(each.overhead_ns for each in pilots.values()),
        pilots=pilot_rounds(max(compared, 1), len(study.workloads), fit.rounds),
        memory_bytes=max(
            each.peak_memory_bytes * (fewest(together, each.most_variants) or compared + 2)
            for each in pilots.values()
        ),
        free_bytes=variants.memory_bytes,
        self_timed={name: each.self_timed for name, each in pilots.items() if each.self_timed},
        clock_unknown=tuple(
            name
            for name, each in pilots.items()
            if each.self_timed is None and name in found.sights
        ),
        alone={
            each.name: found.sights[each.name].looked
            for each in study.workloads
            if each.name in found.sights and not is_adaptive(each)
        },
        metric=found.decided.metric.value,
        alternating=found.decided.alternating,
        wide=found.decided.wide,
        seen=found.decided.findings,
    )


def _piloted(
    context: PlanContext, study: Study, variants: VariantSet, workload: Workload
) -> WorkloadPilot:
    """The pilot of a workload; a command's is ended where a single run is more than fits."""
    longest_ns = longest_run_ns(study, workload)
    cut = longest_ns < parse_duration_ns(workload.deadline)
    tried = workload.model_copy(update={"deadline": f"{longest_ns}ns"}) if cut else workload
    began_ns = context.clock.monotonic_ns()
    try:
        measured, trials = pilot(context.meter, study, variants, tried)
    except CommandFailed:
        if not cut or context.clock.monotonic_ns() - began_ns < longest_ns:
            raise
        raise BudgetTooShort(
            f"the budget of {study.race.budget} is too short: one execution of workload "
            f"'{workload.name}' takes more than {format_duration(longest_ns)}, and each round "
            f"needs one of each variant; give a larger budget, or leave out {workload.name}",
            _LARGER * parse_duration_ns(study.race.budget),
        ) from None
    elapsed_ns = context.clock.monotonic_ns() - began_ns
    besides_ns = max(elapsed_ns - sum(trial.wall_ns for trial in trials), 0)
    return replace(measured, overhead_ns=besides_ns // len(trials))


def raced_ns(trials: Sequence[Trial], overhead_ns: int) -> int:
    """Time that stored trials took, with what each of their races took besides. Pure."""
    races = sum(max(1, len(trial.groups)) for trial in trials)
    return sum(trial.wall_ns for trial in trials) + races * overhead_ns


def _memory_findings(plan: RoundPlan) -> tuple[Finding, ...]:
    if plan.free_bytes is None or plan.memory_bytes <= plan.free_bytes:
        return ()
    text = (
        f"even the fewest variants that can race together need about "
        f"{format_size(plan.memory_bytes)} by the pilot, "
        f"more than the {format_size(plan.free_bytes)} that they may take"
    )
    return (MEMORY_SHORT.found(text),)


def connections_at_once(study: Study, pilots: Mapping[str, WorkloadPilot]) -> dict[str, int]:
    """Connections that send in one slice of a workload; without those where it is all of them.

    A slice ends when the last reply is there. Where one pipeline of requests on each connection
    takes longer, slices would be as long as that: few, and far in time from the baseline's.
    """
    if study.race.turns is not Mode.DRIVEN or study.race.slice_connections == "all":
        return {}
    slice_ns = parse_duration_ns(study.race.slice)
    fitting = {
        workload.name: _fitting(workload, pilots[workload.name], slice_ns)
        for workload in study.workloads
    }
    return {name: number for name, number in fitting.items() if number is not None}


def turns_findings(at_once: Mapping[str, int]) -> tuple[Finding, ...]:
    """What to say of workloads whose connections send by turns."""
    if not at_once:
        return ()
    fewest, most = min(at_once.values()), max(at_once.values())
    range_ = str(fewest) if fewest == most else f"{fewest} to {most}"
    whose = "1 workload" if len(at_once) == 1 else f"{len(at_once)} workloads"
    text = (
        f"{whose}: {range_} connections send in one slice, by turns, because all "
        'at once would outlast it; race.slice_connections = "all" lets them'
    )
    return (CONNECTIONS_BY_TURNS.found(text),)


def _fitting(workload: Workload, pilot: WorkloadPilot, slice_ns: int) -> int | None:
    drive = workload.drive
    if drive is None or drive.rate_per_s is not None:
        return None
    round_ns = pilot.ns_per_request * drive.pipeline
    number = max(1, round(slice_ns / (_ROUNDS_PER_SLICE * round_ns)))
    return number if number < drive.connections else None
