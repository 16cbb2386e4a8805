"""Single executions of a study's workloads, and pilots: what one of them takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from ensign.experiment.bounds import link_findings, usage_findings
from ensign.experiment.groups import race_in_groups, variants_together
from ensign.experiment.loop import trial_seed
from ensign.experiment.machine import CpuPlan
from ensign.experiment.metric_and_mode import (
    MetricAndMode,
    Requested,
    choose,
    runs_to_look_at,
    runs_to_look_at_again,
)
from ensign.experiment.pilots import CommandPilot, run_of_totals
from ensign.experiment.self_timed import (
    CLOCK_RATE,
    NOTEWORTHY_NS,
    asks_for_cpu_time,
    by_another,
    by_the_cpu_clock,
    by_the_wall_clock,
)
from ensign.experiment.study.budget import (
    CLOCK_EXECUTIONS,
    CLOCKS_SHARE,
    LOOKS_SHARE,
    Demand,
    WorkloadPilot,
    require_time_left,
)
from ensign.experiment.study.variants import VariantSet, first_requests, mode_of, race_request
from ensign.experiment.tracing import NO_TIME, MeterTracer, TraceOptions
from ensign.host.clock import Clock
from ensign.meter.client import Meter
from ensign.meter.racing import race
from ensign.model.errors import BudgetTooShort, CommandFailed, InternalError
from ensign.model.findings import Finding
from ensign.model.study import Study, longest_run_ns
from ensign.model.study_workload import Workload
from ensign.model.traced_execution import TracedExecution
from ensign.model.trials import TWIN, Metric, Mode, Trial
from ensign.model.units import format_duration, parse_duration_ns
from ensign.store.folder import StudyFolder
from ensign.workloads.registry import may_end_by_the_clock

# A pilot shorter than this is mostly start-up of the load generator.
_LONG_ENOUGH_NS = 60_000_000
_GROWTH = 8


def pilot(
    meter: Meter, study: Study, variants: VariantSet, workload: Workload
) -> tuple[WorkloadPilot, tuple[Trial, ...]]:
    """Races the baseline against its twin, with more requests until the run is long enough."""
    tried: list[Trial] = []
    requests = first_requests(workload)
    while True:
        trial = one_trial(meter, study, variants.only_baseline(), workload, requests, round_index=0)
        tried.append(trial)
        measured = _pilot_of(trial, requests)
        fixed = workload.fixed_requests is not None or workload.command is not None
        if fixed or measured.running_ns >= _LONG_ENOUGH_NS or requests is None:
            return measured, tuple(tried)
        requests *= _GROWTH


def one_trial(  # noqa: PLR0913  # who races what, and which execution it is
    meter: Meter,
    study: Study,
    variants: VariantSet,
    workload: Workload,
    requests: int | None,
    *,
    round_index: int,
    execution: int = 0,
) -> Trial:
    """One execution of one workload, as the trial of that round; in groups where there are any.

    Of several executions in one round, each has an order of its own.
    """
    variants = variants.in_round(round_index)
    name = f"{workload.name} {execution}" if execution else workload.name
    seed = trial_seed(study.race.seed, round_index, name)
    request = race_request(study, variants, workload, requests, seed=seed)
    names = {TWIN: f"{request.variants[0].name} (twin)"}
    raced = race_in_groups(
        meter,
        request,
        variants.most_variants,
        workload=workload.name,
        first_round=round_index,
        names=names,
    )
    with closing(raced) as trials:
        for trial in trials:
            return variants.check(trial, variants)
    raise InternalError(f"{workload.name}: the meter returned no execution")


def _pilot_of(trial: Trial, requests: int | None) -> WorkloadPilot:
    running_ns = sum(variant.wall_ns for variant in trial.variants)
    return WorkloadPilot(
        requests=requests,
        # The quicker of baseline and twin: what disturbs a pilot only ever makes it slower.
        running_ns=min(variant.wall_ns for variant in trial.variants),
        startup_ns=max(trial.wall_ns - running_ns, 0) // len(trial.variants),
        peak_memory_bytes=max(variant.peak_memory_bytes for variant in trial.variants),
    )


def looked_at(
    meter: Meter,
    study: Study,
    variants: VariantSet,
    workload: Workload,
    requests: int | None,
    *,
    runs: int,
) -> CommandPilot | None:
    """So many executions of the baseline alone, on all CPUs that it may have.

    None where they failed, which the race itself tells.
    """
    cpus = variants.cpus if workload.one_cpu else variants.cpus.widened()
    alone = replace(variants.only_baseline().in_round(0), cpus=cpus)
    seed = trial_seed(study.race.seed, 0, workload.name)
    request = race_request(study, alone, workload, requests, seed=seed)
    request = replace(
        request,
        variants=request.variants[:1],
        mode=Mode.ALTERNATING,
        executions=runs,
        apart=True,
        observe=True,
    )
    with closing(race(meter, request, workload=workload.name)) as alone_trials:
        trials = [trial for trial in alone_trials if not trial.failures]
    ran = tuple(run_of_totals(trial.variants[0], _besides_ns(trial)) for trial in trials)
    return CommandPilot(workload.name, ran) if ran else None


def _besides_ns(trial: Trial) -> int:
    return max(trial.wall_ns - trial.variants[0].wall_ns, 0)


def _as_looked_at(measured: WorkloadPilot, alone: CommandPilot) -> WorkloadPilot:
    """Needs of one execution where it is raced as it was looked at."""
    return replace(
        measured,
        running_ns=max(alone.wall_ns, 1),
        startup_ns=alone.prepare_ns,
        peak_memory_bytes=max(measured.peak_memory_bytes, alone.peak_memory_bytes),
    )


@dataclass(frozen=True, slots=True)
class Decided:
    """Modes of a study: `alternating` workloads run by turns, `wide` ones get all CPUs."""

    metric: Metric
    alternating: tuple[str, ...]
    wide: tuple[str, ...]
    findings: tuple[Finding, ...]


def decided(study: Study, sights: Mapping[str, CommandPilot], cpus: CpuPlan) -> Decided:
    """Modes by the same rule as commands; one workload decides on the metric of all. Pure.

    The geometric mean over workloads is of one metric.
    """
    seen = [(each, sights[each.name]) for each in study.workloads if each.name in sights]
    metrics = [_chosen(study, each, sight, study.race.metric).metric for each, sight in seen]
    metric = study.race.cost
    if study.race.metric is None and Metric.WALL in metrics:
        metric = Metric.WALL
    if all(each.scored for each in study.workloads):
        metric = Metric.SCORE
    findings: list[Finding] = []
    whole, wide = [], []
    for workload, sight in seen:
        chosen = _chosen(study, workload, sight, study.race.metric or metric.value)
        if chosen.mode is Mode.ALTERNATING:
            whole.append(workload.name)
        if chosen.parallel:
            wide.append(workload.name)
        findings += _findings(study, workload, sight, cpus)
    return Decided(metric, tuple(whole), tuple(wide), tuple(findings))


def _chosen(
    study: Study, workload: Workload, sight: CommandPilot, metric: str | None
) -> MetricAndMode:
    asked = Requested(
        metric=None if metric is None else Metric(metric),
        mode=None if study.race.mode is None else study.race.turns,
        serves=_serves(workload),
        loaded=workload.load is not None,
        scored=workload.scored,
    )
    return choose(asked, [sight.behavior])


def _findings(
    study: Study, workload: Workload, sight: CommandPilot, cpus: CpuPlan
) -> Sequence[Finding]:
    chosen = _chosen(study, workload, sight, study.race.metric)
    return (
        *usage_findings(
            (sight,),
            servers=_serves(workload),
            cpus=len(set(cpus.widened().program)),
            by_turns=chosen.mode is Mode.ALTERNATING,
        ),
        *link_findings(sight, 0 if workload.network is None else workload.network.rate_bits),
        *(replace(finding, subject=workload.name) for finding in chosen.findings),
    )


def _serves(workload: Workload) -> bool:
    return workload.load is not None or workload.drive is not None


# A budget so many times as large may do, where nobody knows yet.
_LARGER = 4


@dataclass(frozen=True, slots=True)
class PlanContext:
    """Context of a plan: the meter that races pilots, a clock, the store, and the listener.

    `traced` is what was seen of the baseline on each workload.
    """

    meter: Meter
    clock: Clock
    folder: StudyFolder
    on_pilot: Callable[[str], None]
    traced: Mapping[str, TracedExecution] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pilots:
    """Needs and behavior of the baseline by workload, and the time that finding out took (ns)."""

    by_workload: Mapping[str, WorkloadPilot]
    spent_ns: int
    decided: Decided
    sights: Mapping[str, CommandPilot]


def piloted(context: PlanContext, study: Study, variants: VariantSet) -> Pilots:
    """A pilot of each workload, and what follows from its behavior.

    InputError where what is asked for does not fit into the budget, as soon as a pilot says so.
    """
    pilots: dict[str, WorkloadPilot] = {}
    sights: dict[str, CommandPilot] = {}
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
            # Workloads of one server have the trace of the first of them.
            traced = None if _serves(workload) else context.traced.get(workload.name)
            sights[workload.name] = replace(sight, traced=traced)
    choice = decided(study, sights, variants.cpus)
    for name in {*choice.alternating, *choice.wide}:
        pilots[name] = _as_looked_at(pilots[name], sights[name])
    left_ns = parse_duration_ns(study.race.budget) * CLOCKS_SHARE
    for workload in study.workloads:
        measured, sight = pilots[workload.name], sights.get(workload.name)
        left_ns -= CLOCK_EXECUTIONS * demand.execution_ns(
            workload.name, {workload.name: measured.running_ns}, 0
        )
        if sight is None:
            continue
        placed = replace(variants, alternating=workload.name in choice.alternating)
        traced = context.traced.get(workload.name)
        known = (measured.requests, sight, traced, left_ns >= 0)
        timed = ends_by_the_clock(context.meter, ClockTrial(study, placed, workload, *known))
        pilots[workload.name] = replace(measured, self_timed=timed)
    return Pilots(pilots, context.clock.monotonic_ns() - began_ns, choice, sights)


def _looked_at(
    context: PlanContext,
    study: Study,
    variants: VariantSet,
    workload: Workload,
    measured: WorkloadPilot,
) -> CommandPilot | None:
    took_ns = measured.startup_ns + measured.running_ns + measured.overhead_ns
    allowed_ns = parse_duration_ns(study.race.budget) * LOOKS_SHARE / len(study.workloads)
    runs = runs_to_look_at(measured.running_ns, took_ns, allowed_ns)
    return looked_at(context.meter, study, variants, workload, measured.requests, runs=runs)


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


# Beside the twin.
_CROWD = 3


@dataclass(frozen=True, slots=True)
class ClockTrial:
    """One workload of which is to be known whether it ends by a clock.

    `alone` are executions of the baseline by itself, `traced` is one that was followed (None: none
    was asked for). `affordable`: there is time for executions on purpose.
    """

    study: Study
    variants: VariantSet
    workload: Workload
    requests: int | None
    alone: CommandPilot
    traced: TracedExecution | None
    affordable: bool


def ends_by_the_clock(meter: Meter, tried: ClockTrial) -> str | None:
    """Sign that the workload ends by a clock; "" where it does not, or where it counts.

    None where that is not known: finding out would take too long.
    """
    if not may_end_by_the_clock(tried.workload):
        return ""
    try:
        by_wall = _by_wall(meter, tried)
        by_cpu = "" if by_wall else _by_cpu(meter, tried)
    except CommandFailed:
        # What fails so is told by the race itself.
        return ""
    known = by_wall is not None and by_cpu is not None
    return by_wall or by_cpu or ("" if known else None)


def _by_wall(meter: Meter, tried: ClockTrial) -> str | None:
    """Sign by copies of the baseline that take turns in slices, beside executions of it alone.

    The more take turns, the less each gets between its start and its end; there are no more of them
    than the race will have. A race in slices shows it by itself, where there is no time for that.
    """
    study, variants, workload = tried.study, tried.variants, tried.workload
    if workload.name in variants.apart or tried.alone.least_cpu_ns < NOTEWORTHY_NS:
        return ""
    if not tried.affordable:
        return "" if mode_of(study, variants, workload) is Mode.INTERLEAVED else None
    alone = replace(variants.only_baseline(), alternating=False)
    race = study.race.model_copy(update={"mode": Mode.INTERLEAVED.value, "metric": "cpu"})
    raced = study.model_copy(update={"race": race})
    baseline, path = variants.artifacts[0]
    copies = ((f"copy-{number}", path) for number in range(1, min(_CROWD, len(variants.artifacts))))
    crowd = replace(alone, artifacts=(*alone.artifacts, *copies))
    pilots = {baseline: tried.alone}

    def sliced(round_index: int) -> Trial:
        return one_trial(meter, raced, crowd, workload, tried.requests, round_index=round_index)

    def again() -> Mapping[str, CommandPilot]:
        run = (workload, tried.requests, tried.alone)
        return {baseline: alone_again(meter, study, variants, *run)}

    self_timed = by_the_wall_clock(pilots, sliced(1))
    if not self_timed:
        return ""
    self_timed = by_another(self_timed, pilots, sliced(2), again)
    return self_timed[0].how if self_timed else ""


def alone_again(
    meter: Meter,
    study: Study,
    variants: VariantSet,
    workload: Workload,
    requests: int | None,
    before: CommandPilot,
) -> CommandPilot:
    """Some executions alone as those `before`; those, where these fail."""
    runs = runs_to_look_at_again(before.wall_ns, len(before.runs))
    again = looked_at(meter, study, variants, workload, requests, runs=runs)
    return again or before


def _by_cpu(meter: Meter, tried: ClockTrial) -> str | None:
    """Sign by a CPU clock that runs faster, where the program asks for its CPU time repeatedly."""
    if tried.workload.command is None:
        return ""
    seed = trial_seed(tried.study.race.seed, 0, tried.workload.name)
    alone = tried.variants.only_baseline()
    request = race_request(tried.study, alone, tried.workload, tried.requests, seed=seed)
    variant = request.variants[0]
    tracer, wish = MeterTracer(meter), TraceOptions(tried.study.race.ports)
    usual = tried.traced
    if usual is not None and is_cut_short(usual):
        usual = None
    if usual is None and not tried.affordable:
        return None
    if usual is not None and not asks_for_cpu_time(usual):
        return ""

    def usually() -> TracedExecution:
        return usual or tracer.trace(variant, wish)

    hurried = tracer.trace(variant, replace(wish, cpu_clock_rate=CLOCK_RATE))
    self_timed = by_the_cpu_clock(tried.workload.name, hurried, usually, tried.alone.cpu_ns)
    return "" if self_timed is None else self_timed.how


def is_cut_short(seen: TracedExecution) -> bool:
    """True if there was no time to follow the execution to its end."""
    return seen.not_judged == NO_TIME or (seen.followed and seen.cpu_ns <= 0)
