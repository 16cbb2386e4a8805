"""Every variant against the baseline, overall and by workload, with what both metrics say. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ensign.experiment.exclusions import (
    as_far_as_shown,
    failure_findings,
    failures_of,
    ignored_findings,
    judged_workloads,
    without_claims,
)
from ensign.experiment.record import Measuring, Record
from ensign.model.comparisons import Comparison, Direction, OtherMetric, TimeShares
from ensign.model.errors import InputError
from ensign.model.experiment import Experiment
from ensign.model.findings import Finding
from ensign.model.results import LatencyComparison, Result, SuiteComparison, WorkloadComparison
from ensign.model.trials import TWIN, Metric, Mode, Trial
from ensign.stats.both_metrics import beside, time_shares
from ensign.stats.disturbed import noisiest_findings, taken_findings
from ensign.stats.holm import significant_workloads
from ensign.stats.layouts import by_relink
from ensign.stats.named_scores import judged_tests
from ensign.stats.pair import Rule
from ensign.stats.readings import reading_findings
from ensign.stats.rounds import (
    PERCENTILES,
    RoundCosts,
    latency_costs,
    round_costs,
    round_findings,
    timed_workloads,
)
from ensign.stats.stopping import (
    correlated_rounds,
    few_executions_decide,
    pair_findings,
    round_correlation,
)
from ensign.stats.suite import (
    ABOUT_EQUAL,
    SuiteRule,
    band_edges,
    compare_suite,
    compare_workloads,
    round_geomeans,
    variant_bands,
    workload_comparison,
)
from ensign.stats.trials import log_cost
from ensign.stats.twin import judge_twin

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class VariantPairs:
    """Every variant against the baseline, by the metric compared and by the other one."""

    experiment: Experiment
    record: Record
    rule: SuiteRule
    costs: RoundCosts
    others: RoundCosts
    trials: Sequence[Trial]

    @property
    def baseline(self) -> str:
        """The variant that all others are compared with."""
        return self.costs.variants[0]

    def of_rounds(self, variant: str) -> list[float]:
        """The log ratio of each round's geometric mean."""
        d = self.costs.log_ratios(variant, self.baseline)
        return [float(ratio) for ratio in round_geomeans(d)]

    def suite(self) -> tuple[SuiteComparison, ...]:
        """Over all workloads."""
        comparisons = []
        for variant in self.costs.variants[1:]:
            compared = compare_suite(self.costs, variant, self.baseline, self.rule)
            judged = self._claimed(variant, compared.comparison, self.of_rounds(variant))
            other = None
            if self._has_other(variant):
                its = compare_suite(self.others, variant, self.baseline, self.rule).comparison
                e = round_geomeans(self._differences(variant)).tolist()
                other = self._beside(compared.comparison, its, e, self.trials)
            comparisons.append(replace(compared, comparison=replace(judged, beside=other)))
        return tuple(comparisons)

    def workloads(self) -> tuple[WorkloadComparison, ...]:
        """Workload by workload."""
        of_workload: dict[str, list[Trial]] = {}
        for trial in self.trials:
            of_workload.setdefault(trial.workload, []).append(trial)
        comparisons = []
        for variant in self.costs.variants[1:]:
            d = self.costs.log_ratios(variant, self.baseline)
            rows = compare_workloads(self.costs, variant, self.baseline, self.rule)
            others = self._other_rows(variant)
            for w, (workload, chosen) in enumerate(rows):
                mine, other = of_workload[workload], None
                if others:
                    e = self._differences(variant)[w].tolist()
                    other = self._beside(chosen, others[w], e, mine)
                judged = self._claimed(variant, chosen, d[w].tolist())
                judged = replace(judged, beside=other)
                comparisons.append(workload_comparison(mine, workload, judged))
        return tuple(comparisons)

    def _other_rows(self, variant: str) -> list[Comparison]:
        if not self._has_other(variant):
            return []
        rows = compare_workloads(self.others, variant, self.baseline, self.rule)
        return [row for _, row in rows]

    def _has_other(self, variant: str) -> bool:
        return bool(np.isfinite(self.others.log_ratios(variant, self.baseline)).all())

    def _differences(self, variant: str) -> Floats:
        """e[workload, round]: what the two costs say of a pair, one minus the other."""
        mine = self.costs.log_ratios(variant, self.baseline)
        return np.asarray(mine - self.others.log_ratios(variant, self.baseline))

    def _beside(
        self, chosen: Comparison, other: Comparison, e: Sequence[float], trials: Sequence[Trial]
    ) -> OtherMetric:
        shares: tuple[TimeShares | None, TimeShares | None] = (
            time_shares(trials, self.baseline),
            time_shares(trials, chosen.variant),
        )
        return beside(chosen, other, e, self.rule.pair_rule, shares)

    def _claimed(
        self, variant: str, comparison: Comparison, log_ratios: Sequence[float]
    ) -> Comparison:
        """The comparison, of which nothing is claimed where something speaks against that."""
        if variant == TWIN:
            return comparison
        if self.record.doubt:
            return comparison.without_claim(self.record.doubt)
        claims = comparison.direction is not Direction.UNCLEAR and self.experiment.by_ranks
        if claims and few_executions_decide(log_ratios, self.rule.pair_rule):
            return comparison.without_claim(
                f"by its interval it is {comparison.direction.value}, by the ranks of "
                f"{comparison.executions} executions that may be chance, so a few of them decide; "
                "a longer --budget would tell"
            )
        return comparison


@dataclass(frozen=True, slots=True)
class JudgedRounds:
    """A result, and the costs that it follows from: of whole rounds, and in what n counts.

    `others` are the same by the other cost; what has none of it is not a number there.
    """

    result: Result
    rule: SuiteRule
    executions: RoundCosts
    costs: RoundCosts
    others: RoundCosts
    trials: tuple[Trial, ...]


def judge(
    experiment: Experiment, record: Record, trials: Sequence[Trial], *, finalists: int = 1
) -> JudgedRounds:
    """The result of the whole rounds. InputError without a single one.

    Where rounds took turns with relinks, all intervals count these. With several `finalists` each
    is judged more strictly, so that the level holds for all of them.
    """
    failures = failures_of(
        (*record.early, *(failure for trial in trials for failure in trial.failures))
    )
    gone = frozenset(failure.variant for failure in failures)
    raced = tuple(name for name in record.raced if name not in gone)
    trials = tuple(trial.without(gone) for trial in trials)
    tests = judged_tests(judged_workloads(experiment.workloads, record.findings), trials)
    names = tests.names
    variants = (*raced, TWIN) if record.has_twin else raced
    executions = round_costs(tests.trials, variants, names, experiment.metric)
    costs = in_units(executions, record)
    others = in_units(_others(tests.trials, variants, names, experiment.metric), record)
    rule = _rule(experiment, record, costs, finalists)
    whole = tuple(
        trial
        for trial in tests.trials
        if trial.round_index in executions.rounds and trial.workload in names
    )
    pairs = VariantPairs(experiment, record, rule, costs, others, whole)
    result = replace(
        result_of_record(experiment, record),
        baseline=variants[0],
        twin=TWIN if record.has_twin else "",
        level=rule.level_each,
        rounds_done=len(executions.rounds),
        racing_s=sum(trial.wall_ns for trial in trials) / 1e9,
        mode=Mode(Counter(trial.mode.value for trial in trials).most_common(1)[0][0]),
        freezer=trials[0].freezer,
        running_share=sum(trial.running_share for trial in trials) / len(trials),
        suite=tuple(as_far_as_shown(compared, tests) for compared in pairs.suite()),
        workloads=pairs.workloads(),
        workload_names=names,
        measured=Measuring(executions, record.seen).facts(whole),
        band_edges=_edges(rule),
        bands=tuple(
            variant_bands(costs, variant, raced[0], _edges(rule)) for variant in variants[1:]
        ),
        significant=tuple(
            significant_workloads(costs, variant, raced[0], rule) for variant in variants[1:]
        ),
        latency=_latency(whole, variants, record, names, rule),
        failures=failures,
    )
    findings = (
        *failure_findings(failures, record.raced),
        *_of_rounds(pairs, raced),
        *record.findings,
        *tests.findings,
        *trial_findings(trials),
    )
    result = without_claims(replace(result, findings=tuple(dict.fromkeys(findings))))
    return JudgedRounds(result, rule, executions, costs, others, whole)


def result_of_record(experiment: Experiment, record: Record) -> Result:
    """Facts known without a single trial: who took part in what, and where."""
    return Result(
        name=experiment.name,
        title=experiment.title,
        question=experiment.question,
        baseline=record.raced[0],
        twin="",
        metric=experiment.metric,
        margin=experiment.margin,
        level=experiment.level,
        rounds_done=0,
        rounds_planned=record.rounds_planned,
        racing_s=0.0,
        mode=record.mode,
        slice_ns=experiment.slice_ns,
        freezer="",
        running_share=math.nan,
        builds=record.builds,
        suite=(),
        workloads=(),
        workload_names=experiment.workloads,
        commands=record.commands,
        machine=record.machine,
        findings=record.findings,
        toolchains=record.toolchains,
        source=record.source,
        version=record.version,
        made_at=record.made_at,
        measured=record.measured,
        expected=record.expected,
        precision=experiment.precision,
        failures=record.early,
        ran=record.ran,
        stopped=record.stopped,
        withheld=record.withheld,
        score_unit=experiment.score_unit,
        time_unit=experiment.time_unit,
        budget_s=None if experiment.budget_ns is None else experiment.budget_ns / 1e9,
        used_s=record.used_s,
        seed=experiment.seed,
        confinement=record.confinement,
        functions=record.functions,
    )


def in_units(executions: RoundCosts, record: Record) -> RoundCosts:
    """Unit that n counts: relinks where these took turns, else executions."""
    if not record.relinks:
        return executions
    return by_relink(executions, record.relinks, twin_apart=record.twin_apart)


def experiment_costs(experiment: Experiment, record: Record, trials: Sequence[Trial]) -> RoundCosts:
    """The costs of the whole rounds, one column for each of what n counts."""
    tests = judged_tests(judged_workloads(experiment.workloads, record.findings), trials)
    variants = (*record.raced, TWIN) if record.has_twin else record.raced
    costs = round_costs(tests.trials, variants, tests.names, experiment.metric)
    return in_units(costs, record)


def suite_rule(experiment: Experiment, finalists: int = 1) -> SuiteRule:
    """Rule for the suite: the level holds for all finalists, or each variant alone."""
    return SuiteRule(
        level=experiment.level,
        margin=experiment.margin,
        finalists=finalists,
        rule=Rule.SEQUENTIAL if experiment.sequential else Rule.T,
        precision=experiment.precision,
    )


def explored_only(explored: Result) -> Result:
    """An exploration, of which nothing is claimed."""
    suite = tuple(replace(compared, non_inferior=None, not_shown=()) for compared in explored.suite)
    return replace(explored, suite=suite, significant=())


def trial_findings(trials: Sequence[Trial]) -> tuple[Finding, ...]:
    """Findings of trials: one per code, with how many trials of which workload had it.

    Where there is one workload alone, one for each variant that it is about.
    """
    totals = Counter(trial.workload for trial in trials)
    alone = len(totals) == 1
    first: dict[tuple[str, str], Finding] = {}
    places: dict[tuple[str, str], Counter[str]] = {}
    for trial in trials:
        keys = {(each.code, each.subject if alone else ""): each for each in trial.findings[::-1]}
        for key, finding in keys.items():
            first.setdefault(key, finding)
            places.setdefault(key, Counter())[trial.workload] += 1
    return tuple(
        replace(
            finding,
            text=f"{_said(finding, alone=alone)} ({_where(places[key], totals)})",
            subject=key[1],
        )
        for key, finding in first.items()
    )


def _said(finding: Finding, *, alone: bool) -> str:
    return finding.text if alone else finding.said


def _where(counts: Mapping[str, int], totals: Mapping[str, int]) -> str:
    if len(totals) == 1:
        ((workload, count),) = counts.items()
        return f"in {count} of {totals[workload]} executions"
    parts = [f"{workload} {count} of {totals[workload]}" for workload, count in counts.items()]
    return f"executions with it: {', '.join(parts)}"


def _rule(experiment: Experiment, record: Record, costs: RoundCosts, finalists: int) -> SuiteRule:
    rule = suite_rule(experiment, finalists)
    if rule.rule is Rule.SEQUENTIAL:
        if len(costs.rounds) >= rule.pair_rule.first_look:
            return rule
        # Nothing was looked at before its first look, so nothing has to be paid for looking.
        rule = replace(rule, rule=Rule.T)
    # Relinks stand in no order of time.
    correlation = 0.0 if record.relinks else round_correlation(costs)
    return replace(rule, first=record.first, correlation=correlation)


def _edges(rule: SuiteRule) -> tuple[float, ...]:
    return band_edges(ABOUT_EQUAL if rule.margin is None else rule.margin)


def _others(
    trials: Sequence[Trial], variants: Sequence[str], names: Sequence[str], metric: Metric
) -> RoundCosts:
    """The other cost; not a number where a variant used none of it, or where a score is compared.

    What says a score of itself mostly runs for a fixed time, and costs what that is.
    """
    other = metric.other

    def log_of(trial: Trial, variant: str) -> float:
        if metric is Metric.SCORE or trial.variant(variant).score:
            return math.nan
        try:
            return log_cost(trial, variant, other)
        except InputError:
            return math.nan

    return round_costs(trials, variants, names, other, log_of)


def _of_rounds(pairs: VariantPairs, raced: Sequence[str]) -> Iterator[Finding]:
    """Doubts that the rounds themselves raise."""
    costs, rule, trials = pairs.costs, pairs.rule, pairs.trials
    alone = pairs.experiment.by_ranks and len(costs.workloads) == 1
    if alone:
        for variant in raced[1:]:
            yield from pair_findings(pairs.of_rounds(variant), rule.pair_rule, variant)
    yield from ignored_findings(trials, raced)
    if TWIN in costs.variants:
        yield from judge_twin(costs, TWIN, raced[0], rule).findings
    yield from round_findings(costs)
    yield from noisiest_findings(costs, costs.variants[1:], raced[0])
    if not alone and not pairs.record.relinks:
        yield from correlated_rounds(costs, rule.correlation)
    yield from reading_findings(trials)
    pair = pairs.of_rounds(raced[1]) if alone and len(raced) > 1 else ()
    yield from taken_findings(trials, pair)


def _latency(
    trials: Sequence[Trial],
    variants: Sequence[str],
    record: Record,
    names: Sequence[str],
    rule: SuiteRule,
) -> tuple[LatencyComparison, ...]:
    timed = timed_workloads(trials, names)
    if not timed:
        return ()
    comparisons: list[LatencyComparison] = []
    for percentile in PERCENTILES:
        costs = in_units(latency_costs(trials, variants, timed, percentile), record)
        means = np.exp(costs.y.mean(axis=-1))
        for index, variant in enumerate(variants[1:], start=1):
            rows = compare_workloads(costs, variant, variants[0], rule)
            comparisons += (
                LatencyComparison(
                    workload, percentile, row, float(means[0, w]), float(means[index, w])
                )
                for w, (workload, row) in enumerate(rows)
            )
    return tuple(comparisons)
