"""Single executions of a study's workloads, and pilots: what one of them takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import median

from ensign.experiment.compare.pilot import CommandPilot, run_of_totals
from ensign.experiment.loop import trial_seed
from ensign.experiment.machine import CpuPlan
from ensign.experiment.metric_and_mode import MetricAndMode, Requested, behaviour_findings, choose
from ensign.experiment.study.budget import WorkloadPilot
from ensign.experiment.study.groups import merged
from ensign.experiment.study.variants import VariantSet, race_request
from ensign.meter.client import Meter
from ensign.meter.racing import race
from ensign.meter.requests import RaceRequest
from ensign.model.errors import InternalError
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.trials import TWIN, Metric, Mode, Trial

# A pilot shorter than this is mostly start-up of the load generator.
_LONG_ENOUGH_NS = 60_000_000
_GROWTH = 8
# A drive has no start-up of its own, so it may begin with few of what may be slow commands.
_FIRST_OF_LOAD, _FIRST_OF_DRIVE = 1000, 200


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


def first_requests(workload: Workload) -> int | None:
    """Requests of an execution of which nothing is known yet. Pure."""
    if workload.fixed_requests is not None or not workload.sends_requests:
        return workload.fixed_requests
    first = _FIRST_OF_LOAD if workload.drive is None else _FIRST_OF_DRIVE
    return workload.rounding * max(1, first // workload.rounding)


def one_trial(
    meter: Meter,
    study: Study,
    variants: VariantSet,
    workload: Workload,
    requests: int | None,
    *,
    round_index: int,
) -> Trial:
    """One execution of one workload, as the trial of that round; in groups where there are any."""
    variants = variants.in_round(round_index)
    seed = trial_seed(study.race.seed, round_index, workload.name)
    groups = variants.in_groups(seed)
    requested = (race_request(study, each, workload, requests, seed=seed) for each in groups)
    trials = [_raced(meter, request, workload, round_index) for request in requested]
    return variants.check(merged(trials, variants.artifacts[0][0]), variants)


def _raced(meter: Meter, request: RaceRequest, workload: Workload, round_index: int) -> Trial:
    names = {TWIN: f"{request.variants[0].name} (twin)"}
    with closing(
        race(meter, request, workload=workload.name, first_round=round_index, names=names)
    ) as trials:
        for trial in trials:
            return trial
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


@dataclass(frozen=True, slots=True)
class BaselinePilot:
    """Unmeasured executions of the baseline alone; each took `startup_ns` besides."""

    looked: CommandPilot
    startup_ns: int

    def of(self, measured: WorkloadPilot) -> WorkloadPilot:
        """What one execution needs where they are raced as they were looked at."""
        return replace(
            measured,
            running_ns=max(self.looked.wall_ns, 1),
            startup_ns=self.startup_ns,
            peak_memory_bytes=max(measured.peak_memory_bytes, self.looked.peak_memory_bytes),
        )


def looked_at(
    meter: Meter,
    study: Study,
    variants: VariantSet,
    workload: Workload,
    requests: int | None,
    *,
    runs: int,
) -> BaselinePilot | None:
    """So many executions on all CPUs; None where they failed, which the race itself tells."""
    wide = replace(variants.only_baseline().in_round(0), cpus=variants.cpus.widened())
    seed = trial_seed(study.race.seed, 0, workload.name)
    request = race_request(study, wide, workload, requests, seed=seed)
    request = replace(
        request,
        variants=request.variants[:1],
        mode=Mode.ALTERNATING,
        executions=runs,
        apart=True,
        observe=True,
    )
    with closing(race(meter, request, workload=workload.name)) as found:
        trials = [trial for trial in found if not trial.failures]
    if not trials:
        return None
    ran = tuple(run_of_totals(trial.variants[0]) for trial in trials)
    return BaselinePilot(CommandPilot(workload.name, ran), round(median(map(_besides_ns, trials))))


def _besides_ns(trial: Trial) -> int:
    return max(trial.wall_ns - trial.variants[0].wall_ns, 0)


@dataclass(frozen=True, slots=True)
class Decided:
    """How a study is measured: `alternating` workloads run by turns, `wide` ones get all CPUs."""

    metric: Metric
    alternating: tuple[str, ...]
    wide: tuple[str, ...]
    findings: tuple[Finding, ...]


def decided(study: Study, sights: Mapping[str, BaselinePilot], cpus: CpuPlan) -> Decided:
    """By the same rule as commands; one workload decides on the metric of all. Pure.

    The geometric mean over workloads is of one metric.
    """
    seen = [(each, sights[each.name]) for each in study.workloads if each.name in sights]
    metrics = [_chosen(study, each, sight, study.race.metric).metric for each, sight in seen]
    metric = study.race.cost
    if study.race.metric is None and Metric.WALL in metrics:
        metric = Metric.WALL
    if all(each.scored for each in study.workloads):
        metric = Metric.SCORE
    found: list[Finding] = []
    whole, wide = [], []
    for workload, sight in seen:
        chosen = _chosen(study, workload, sight, study.race.metric or metric.value)
        if chosen.mode is Mode.ALTERNATING:
            whole.append(workload.name)
        if chosen.parallel:
            wide.append(workload.name)
        found += _findings(study, workload, sight, cpus)
    return Decided(metric, tuple(whole), tuple(wide), tuple(found))


def _chosen(
    study: Study, workload: Workload, sight: BaselinePilot, metric: str | None
) -> MetricAndMode:
    asked = Requested(
        metric=None if metric is None else Metric(metric),
        mode=None if study.race.mode is None else study.race.turns,
        serves=_serves(workload),
        loaded=workload.load is not None,
        scored=workload.scored,
    )
    return choose(asked, [sight.looked.behaviour])


def _findings(
    study: Study, workload: Workload, sight: BaselinePilot, cpus: CpuPlan
) -> Sequence[Finding]:
    chosen = _chosen(study, workload, sight, study.race.metric)
    return (
        *behaviour_findings(
            sight.looked.behaviour,
            workload.name,
            serves=_serves(workload),
            cpus=len(set(cpus.widened().program)),
            by_turns=chosen.mode is Mode.ALTERNATING,
        ),
        *(replace(each, subject=workload.name) for each in chosen.findings),
    )


def _serves(workload: Workload) -> bool:
    return workload.load is not None or workload.drive is not None
