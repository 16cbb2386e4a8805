"""What the baseline does on each workload, and what follows for metric, mode and CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from statistics import median

from ensign.experiment.compare.pilot import CommandPilot, run_of_totals
from ensign.experiment.cpu_plan import CpuPlan
from ensign.experiment.loop import trial_seed
from ensign.experiment.metric_and_mode import MetricAndMode, Requested, behaviour_findings, choose
from ensign.experiment.study.budget import WorkloadPilot
from ensign.experiment.study.variants import VariantSet, race_request
from ensign.meter.client import Meter
from ensign.meter.racing import race
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.trials import Metric, Mode, Trial


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
