"""From stored trials and builds to the result that reports show. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ensign.lab.study.effects import design_of
from ensign.lab.study.failures import failure_findings, failures_of
from ensign.lab.study.layouts import layout_facts
from ensign.lab.study.longer_slices import slice_length_findings
from ensign.lab.study.overlap import overlap_findings
from ensign.lab.study.record import StudyRecord
from ensign.lab.study.self_timed import judged_workloads, without_claims
from ensign.model.comparisons import TimeShares
from ensign.model.findings import Finding
from ensign.model.results import LatencyComparison, StudyResult, SuiteComparison, WorkloadComparison
from ensign.model.study import Study
from ensign.model.trials import TWIN, Metric, Trial
from ensign.model.units import parse_duration_ns, parse_share
from ensign.stats.bands import ABOUT_EQUAL, band_edges, variant_bands
from ensign.stats.both_metrics import beside, time_shares
from ensign.stats.disturbed import taken_findings
from ensign.stats.factorial import factorial_reading
from ensign.stats.holm import significant_workloads
from ensign.stats.latency import PERCENTILES, latency_costs, timed_workloads
from ensign.stats.layouts import by_relink
from ensign.stats.noisiest import noisiest_findings
from ensign.stats.readings import reading_findings
from ensign.stats.rounds import RoundCosts, round_costs, round_findings
from ensign.stats.stopping import correlated_rounds, round_correlation
from ensign.stats.suite import (
    SuiteRule,
    compare_suite,
    compare_workloads,
    round_geomeans,
    workload_comparison,
)
from ensign.stats.twin import judge_twin

Floats = NDArray[np.float64]


def study_result(
    study: Study,
    record: StudyRecord,
    trials: tuple[Trial, ...],
    longer: tuple[Trial, ...] = (),
    relinked: tuple[Trial, ...] = (),
    *,
    finalists: int = 1,
) -> StudyResult:
    """The result of the whole rounds. InputError without a single one.

    `longer` are the trials at longer slices, `relinked` those of the baseline's relinks, if there
    are any. Where rounds took turns with relinks, all intervals count these. With several
    `finalists` each is judged more strictly, so that the study's level holds for all of them.
    """
    failures = failures_of((*trials, *longer, *relinked))
    failed = failure_findings(failures, record.raced)
    gone = frozenset(each.variant for each in failures)
    record = replace(
        record,
        raced=tuple(name for name in record.raced if name not in gone),
        findings=(*failed, *record.findings),
    )
    trials = tuple(trial.without(gone) for trial in trials)
    longer = tuple(trial.without(gone) for trial in longer)
    metric = study.race.cost
    other = Metric.WALL if metric is Metric.CPU else Metric.CPU
    names = judged_workloads([each.name for each in study.workloads], record.findings)
    variants = (*record.raced, TWIN)
    executions = round_costs(trials, variants, names, metric)
    costs = in_units(executions, record)
    others_costs = in_units(round_costs(trials, variants, names, other), record)
    raced = tuple(
        trial
        for trial in trials
        if trial.round_index in executions.rounds and trial.workload in names
    )
    both = _Both(costs, others_costs, raced)
    # Relinks stand in no order of time.
    correlation = 0.0 if record.relinks else round_correlation(costs)
    rule = replace(suite_rule(study, finalists), first=record.first, correlation=correlation)
    wider = rule.wider(len(costs.rounds))
    baseline, *others = variants
    edges = band_edges(ABOUT_EQUAL if rule.margin is None else rule.margin)
    judged = judge_twin(costs, TWIN, baseline, study.race.level, correlation)
    design = design_of(record.builds, record.raced, record.findings)
    first = trials[0]
    result = StudyResult(
        name=study.name,
        title=study.title or study.name,
        question=study.question,
        baseline=baseline,
        twin=TWIN,
        metric=metric.value,
        margin=rule.margin,
        level=rule.level_each,
        rounds_done=len(executions.rounds),
        rounds_planned=record.rounds_planned,
        racing_s=sum(trial.wall_ns for trial in trials) / 1e9,
        mode=Counter(trial.mode.value for trial in trials).most_common(1)[0][0],
        slice_ns=parse_duration_ns(study.race.slice),
        freezer=first.freezer,
        running_share=sum(trial.running_share for trial in trials) / len(trials),
        builds=record.builds,
        suite=_suite(both, rule),
        workloads=_workloads(both, rule),
        workload_names=names,
        commands=record.commands,
        machine=record.machine,
        findings=(
            *overlap_findings(study),
            *judged.findings,
            *round_findings(executions),
            *noisiest_findings(costs, others, baseline),
            *(() if record.relinks else correlated_rounds(costs, correlation)),
            *reading_findings(trials),
            *taken_findings(trials),
            *slice_length_findings(study, record.raced, trials, longer),
            *record.findings,
            *trial_findings(trials),
        ),
        toolchains=record.toolchains,
        source=record.source,
        version=record.version,
        made_at=record.made_at,
        band_edges=edges,
        bands=tuple(variant_bands(costs, variant, baseline, edges) for variant in others),
        significant=tuple(
            significant_workloads(costs, variant, baseline, rule.level_each, wider)
            for variant in others
        ),
        layouts=layout_facts(study, record, executions, relinked),
        factorial=factorial_reading(costs, others_costs, design, rule),
        expected=record.expected,
        ran=record.ran,
        latency=_latency(trials, record, names, rule),
        failures=failures,
    )
    return without_claims(result)


def _latency(
    trials: Sequence[Trial], record: StudyRecord, names: Sequence[str], rule: SuiteRule
) -> tuple[LatencyComparison, ...]:
    timed = timed_workloads(trials, names)
    if not timed:
        return ()
    variants = (*record.raced, TWIN)
    found: list[LatencyComparison] = []
    for percentile in PERCENTILES:
        costs = in_units(latency_costs(trials, variants, timed, percentile), record)
        means = np.exp(costs.y.mean(axis=-1))
        for index, variant in enumerate(variants[1:], start=1):
            rows = compare_workloads(costs, variant, variants[0], rule)
            found += (
                LatencyComparison(
                    workload, percentile, row, float(means[0, w]), float(means[index, w])
                )
                for w, (workload, row) in enumerate(rows)
            )
    return tuple(found)


def study_costs(study: Study, record: StudyRecord, trials: Sequence[Trial]) -> RoundCosts:
    """The costs of the whole rounds in the study's metric, one column for each of what n counts."""
    names = judged_workloads([each.name for each in study.workloads], record.findings)
    costs = round_costs(trials, (*record.raced, TWIN), names, study.race.cost)
    return in_units(costs, record)


def in_units(executions: RoundCosts, record: StudyRecord) -> RoundCosts:
    """What n counts: relinks where they took turns, else executions."""
    return by_relink(executions, record.relinks) if record.relinks else executions


def suite_rule(study: Study, finalists: int = 1) -> SuiteRule:
    """How the suite is judged: the study's level holds for all finalists, or each variant alone."""
    margin = None if study.race.margin is None else parse_share(study.race.margin)
    return SuiteRule(level=study.race.level, margin=margin, finalists=finalists)


def trial_findings(trials: Sequence[Trial]) -> tuple[Finding, ...]:
    """What trials carry: one finding per code, with how many trials of which workload had it."""
    first: dict[str, Finding] = {}
    places: dict[str, dict[str, int]] = {}
    totals = Counter(trial.workload for trial in trials)
    for trial in trials:
        for finding in {one.code: one for one in reversed(trial.findings)}.values():
            first.setdefault(finding.code, finding)
            counts = places.setdefault(finding.code, {})
            counts[trial.workload] = counts.get(trial.workload, 0) + 1
    return tuple(
        replace(finding, text=f"{finding.said} ({_where(places[code], totals)})", subject="")
        for code, finding in first.items()
    )


def _where(counts: Mapping[str, int], totals: Mapping[str, int]) -> str:
    parts = [f"{workload} {count} of {totals[workload]}" for workload, count in counts.items()]
    return f"executions with it: {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class _Both:
    """The same rounds by the metric of the study, and by the other one."""

    costs: RoundCosts
    others: RoundCosts
    trials: Sequence[Trial]

    @property
    def baseline(self) -> str:
        return self.costs.variants[0]

    def differences(self, variant: str) -> Floats:
        """e[workload, round]: what the two costs say of a pair, one minus the other."""
        mine = self.costs.log_ratios(variant, self.baseline)
        return np.asarray(mine - self.others.log_ratios(variant, self.baseline))

    def shares(
        self, variant: str, workload: str = ""
    ) -> tuple[TimeShares | None, TimeShares | None]:
        """Where the time of baseline and variant went, on one workload or on all."""
        trials = [each for each in self.trials if workload in ("", each.workload)]
        return time_shares(trials, self.baseline), time_shares(trials, variant)


def _suite(both: _Both, rule: SuiteRule) -> tuple[SuiteComparison, ...]:
    found = []
    for variant in both.costs.variants[1:]:
        entry = compare_suite(both.costs, variant, both.baseline, rule)
        other = compare_suite(both.others, variant, both.baseline, rule).comparison
        e = round_geomeans(both.differences(variant)).tolist()
        its = beside(entry.comparison, other, e, rule.pair_rule, both.shares(variant))
        found.append(replace(entry, comparison=replace(entry.comparison, beside=its)))
    return tuple(found)


def _workloads(both: _Both, rule: SuiteRule) -> tuple[WorkloadComparison, ...]:
    of_workload: dict[str, list[Trial]] = {}
    for trial in both.trials:
        of_workload.setdefault(trial.workload, []).append(trial)
    found = []
    for variant in both.costs.variants[1:]:
        e = both.differences(variant)
        mine = compare_workloads(both.costs, variant, both.baseline, rule)
        others = compare_workloads(both.others, variant, both.baseline, rule)
        for w, ((workload, chosen), (_, other)) in enumerate(zip(mine, others, strict=True)):
            shares = both.shares(variant, workload)
            its = beside(chosen, other, e[w].tolist(), rule.pair_rule, shares)
            judged = replace(chosen, beside=its)
            found.append(workload_comparison(of_workload[workload], workload, judged))
    return tuple(found)
