"""The plan that is written down before the first round, and taken up again on resumption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter, ValidationError

from ensign.host.clock import Clock
from ensign.lab.metric_and_mode import runs_to_look_at
from ensign.lab.study.arms import Field
from ensign.lab.study.calibrate import pilot
from ensign.lab.study.fitting import (
    CLOCK_EXECUTIONS,
    CLOCKS_SHARE,
    LOOKS_SHARE,
    Demand,
    Pilot,
    band_arms,
    exact_sweeps,
    fitted,
    is_adaptive,
    require_room,
)
from ensign.lab.study.groups import arms_together, fewest, group_findings, most_arms_of
from ensign.lab.study.looking import Decided, Sight, decided, looked_at
from ensign.lab.study.self_timed import ClockTrial, ends_by_the_clock, self_timed_findings
from ensign.lab.study.sweeps import SweepPlan
from ensign.lab.study.turns import connections_at_once, turns_findings
from ensign.meter.client import Meter
from ensign.model.errors import CommandFailed, InputError
from ensign.model.findings import Finding, Severity
from ensign.model.study import Study, Workload, longest_run_ns
from ensign.model.traced import TracedExecution
from ensign.model.trials import Trial
from ensign.model.units import format_duration, format_size, parse_duration_ns
from ensign.stats.expected import pilot_rounds
from ensign.store.folder import StudyFolder

_KEY_CHARACTERS = 16
_PLAN = TypeAdapter(SweepPlan)


@dataclass(frozen=True, slots=True)
class PlanSite:
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
    left_out = {"margin", "slice_check", "confirm"}
    if study.race.precision is None:
        left_out.add("precision")
    said = study.model_dump(
        mode="json", include={"server", "cpus", "race"}, exclude={"race": left_out}
    )
    said["workloads"] = [each.identity for each in study.workloads]
    programs: dict[str, object] = {"study": said, "programs": dict(hashes)}
    if relinks:
        programs["relinks"] = {name: list(each) for name, each in relinks.items()}
    text = json.dumps(programs, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Pilots:
    """What the baseline needs and does by workload, and the time that finding out took (ns)."""

    by_workload: Mapping[str, Pilot]
    spent_ns: int
    decided: Decided
    sights: Mapping[str, Sight]


def piloted(site: PlanSite, study: Study, field: Field) -> Pilots:
    """A pilot of each workload, and what follows from its behavior.

    InputError where what is asked for does not fit into the budget, as soon as a pilot says so.
    """
    pilots: dict[str, Pilot] = {}
    sights: dict[str, Sight] = {}
    variants = len(field.artefacts) - 1
    demand = Demand(study, pilots, variants, arms_together(variants, study.race.group_size))
    began_ns = site.clock.monotonic_ns()
    for workload in study.workloads:
        site.on_pilot(workload.name)
        measured = pilots[workload.name] = _piloted(site, study, field, workload)
        # It is run once more at least.
        spent_ns = site.clock.monotonic_ns() - began_ns
        require_room(demand, spent_ns + measured.startup_ns + measured.running_ns)
        sight = _looked_at(site, study, field, workload, measured)
        if sight is not None:
            sights[workload.name] = sight
    found = decided(study, sights, field.seats)
    for name in {*found.whole, *found.wide}:
        pilots[name] = sights[name].of(pilots[name])
    left_ns = parse_duration_ns(study.race.budget) * CLOCKS_SHARE
    for workload in study.workloads:
        measured, sight = pilots[workload.name], sights.get(workload.name)
        left_ns -= CLOCK_EXECUTIONS * demand.execution_ns(
            workload.name, {workload.name: measured.running_ns}, 0
        )
        if sight is None:
            continue
        placed = replace(field, whole=workload.name in found.whole)
        traced = site.traced.get(workload.name)
        known = (measured.requests, sight.looked, traced, left_ns >= 0)
        timed = ends_by_the_clock(site.meter, ClockTrial(study, placed, workload, *known))
        pilots[workload.name] = replace(measured, self_timed=timed)
    return Pilots(pilots, site.clock.monotonic_ns() - began_ns, found, sights)


def _looked_at(
    site: PlanSite, study: Study, field: Field, workload: Workload, measured: Pilot
) -> Sight | None:
    took_ns = measured.startup_ns + measured.running_ns + measured.overhead_ns
    allowed_ns = parse_duration_ns(study.race.budget) * LOOKS_SHARE / len(study.workloads)
    runs = runs_to_look_at(measured.running_ns, took_ns, allowed_ns)
    return looked_at(site.meter, study, field, workload, measured.requests, runs=runs)


def fixed_plan(
    site: PlanSite, study: Study, field: Field, key: str, pilots: Pilots | None = None
) -> SweepPlan:
    """The stored plan of that key, or a new one from pilots, stored before it is used.

    InputError as `piloted`, which is called where there are no `pilots` yet.
    """
    stored = site.folder.read_json(f"plans/{key}")
    if stored is None:
        plan = _new_plan(study, field, key, pilots or piloted(site, study, field))
        write_plan(site.folder, plan)
        return plan
    return _read(site.folder, key, stored)


def taken_up(folder: StudyFolder, plan: SweepPlan) -> SweepPlan:
    """The stored plan of the same key, or this one, which is stored now."""
    stored = folder.read_json(f"plans/{plan.key}")
    if stored is None:
        write_plan(folder, plan)
        return plan
    return _read(folder, plan.key, stored)


def write_plan(folder: StudyFolder, plan: SweepPlan) -> None:
    """Replaces the stored plan in one step."""
    folder.write_json(f"plans/{plan.key}", _PLAN.dump_python(plan, mode="json"))


def plan_findings(plan: SweepPlan) -> tuple[Finding, ...]:
    """What there is to say of a plan before it is carried out. Pure."""
    return (
        *group_findings(plan.together, plan.most_arms),
        *_memory_findings(plan),
        *turns_findings(plan.at_once),
        *plan.seen,
        *self_timed_findings(plan.self_timed, plan.clock_unknown),
    )


def require_any_room(study: Study, variants: int) -> None:
    """InputError where a study cannot fit its budget, whatever its programs take. Pure.

    `variants` do not count the baseline.
    """
    together = arms_together(variants, study.race.group_size)
    require_room(Demand(study, {}, variants, together), 0)


def _read(folder: StudyFolder, key: str, stored: Mapping[str, object]) -> SweepPlan:
    try:
        return _PLAN.validate_python({"key": key, **stored})
    except ValidationError:
        raise InputError(
            f"plan {key} in {folder.root} is damaged; delete it and run again"
        ) from None


def _new_plan(study: Study, field: Field, key: str, found: Pilots) -> SweepPlan:
    variants = len(field.artefacts) - 1
    together = arms_together(variants, study.race.group_size)
    largest = max(variants + 2, band_arms(study))
    pilots: dict[str, Pilot] = {}
    for name, measured in found.by_workload.items():
        most = most_arms_of(measured.peak_memory_bytes, field.memory_bytes, largest)
        pilots[name] = replace(measured, most_arms=most if most < largest else None)
    fit = fitted(Demand(study, pilots, variants, together), found.spent_ns)
    return SweepPlan(
        key,
        fit.sweeps,
        fit.requests,
        fit.total_ns,
        together=together,
        most_arms={
            name: each.most_arms
            for name, each in pilots.items()
            if each.most_arms is not None and each.most_arms != together
        },
        at_once=connections_at_once(study, pilots),
        exact=exact_sweeps(study) is not None,
        closed=False,
        allowed_ns=fit.allowed_ns,
        round_ns=fit.round_ns,
        spent_ns=found.spent_ns,
        overhead_ns=max(each.overhead_ns for each in pilots.values()),
        pilots=pilot_rounds(max(variants, 1), len(study.workloads), fit.sweeps),
        memory_bytes=max(
            each.peak_memory_bytes * (fewest(together, each.most_arms) or variants + 2)
            for each in pilots.values()
        ),
        free_bytes=field.memory_bytes,
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
        whole=found.decided.whole,
        wide=found.decided.wide,
        seen=found.decided.findings,
    )


def _piloted(site: PlanSite, study: Study, field: Field, workload: Workload) -> Pilot:
    """The pilot of a workload; a command's is ended where a single run is more than fits."""
    longest_ns = longest_run_ns(study, workload)
    cut = longest_ns < parse_duration_ns(workload.deadline)
    tried = workload.model_copy(update={"deadline": f"{longest_ns}ns"}) if cut else workload
    began_ns = site.clock.monotonic_ns()
    try:
        measured, trials = pilot(site.meter, study, field, tried)
    except CommandFailed:
        if not cut or site.clock.monotonic_ns() - began_ns < longest_ns:
            raise
        raise InputError(
            f"the budget of {study.race.budget} is too short: one execution of workload "
            f"'{workload.name}' takes more than {format_duration(longest_ns)}, and each round "
            f"needs one of each variant; give a larger budget, or leave out {workload.name}"
        ) from None
    elapsed_ns = site.clock.monotonic_ns() - began_ns
    besides_ns = max(elapsed_ns - sum(trial.wall_ns for trial in trials), 0)
    return replace(measured, overhead_ns=besides_ns // len(trials))


def raced_ns(trials: Sequence[Trial], overhead_ns: int) -> int:
    """Time that stored trials took, with what each of their races took besides. Pure."""
    races = sum(max(1, len(trial.groups)) for trial in trials)
    return sum(trial.wall_ns for trial in trials) + races * overhead_ns


def _memory_findings(plan: SweepPlan) -> tuple[Finding, ...]:
    if plan.free_bytes is None or plan.memory_bytes <= plan.free_bytes:
        return ()
    text = (
        f"the fewest arms that can race together need about {format_size(plan.memory_bytes)} by "
        f"the pilot, more than the {format_size(plan.free_bytes)} that may be taken"
    )
    return (Finding("memory-short", Severity.WARNING, text),)
