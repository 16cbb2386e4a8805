"""A finished race, dressed for a report. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

from ensign import __version__
from ensign.lab.compare.failures import failing_runs
from ensign.lab.compare.options import Candidate, Options
from ensign.lab.compare.perform import Compared
from ensign.model.findings import Finding
from ensign.model.results import ArmFacts, CompareResult, MachineFacts, Stopped
from ensign.model.trials import TWIN, Trial, failed_arms
from ensign.stats.trials import mean_cost_ns


def compare_result(
    options: Options,
    compared: Compared,
    machine: MachineFacts,
    findings: Sequence[Finding],
    made_at: str,
) -> CompareResult:
    """Everything that the terminal, the exports and the exit status need."""
    if compared.withheld is not None:
        return _withheld(options, compared, machine, findings, made_at)
    gone = failed_arms(compared.trials)
    compared = replace(compared, judge=compared.judge.without(gone))
    judge, trials = compared.judge, [trial.without(gone) for trial in compared.trials]
    first = judge.baseline
    entries = (*judge.entries, *(each.entry for each in compared.failed))
    names = {entry.arm: entry.name for entry in entries} | {TWIN: f"{first.name} (twin)"}
    return CompareResult(
        arms=tuple(_facts(compared, entry, entry.arm, entry.name) for entry in judge.entries),
        twin=_facts(compared, first, TWIN, f"{first.name} (twin)"),
        comparisons=judge.comparisons(trials),
        aa=judge.twin(trials),
        metric=judge.metric,
        mode=compared.plan.mode,
        slice_ns=options.slice_ns,
        freezer=trials[0].freezer,
        level=options.level,
        margin=judge.rule.margin,
        precision=judge.rule.precision,
        executions=len(trials),
        budget_s=compared.budget_ns / 1e9,
        used_s=compared.spent_ns / 1e9,
        running_share=sum(trial.running_share for trial in trials) / len(trials),
        stopped=_stopped_of(compared.stopped),
        findings=(*compared.findings, *findings),
        machine=machine,
        trials=tuple(_named(trial, names) for trial in compared.trials),
        seed=options.seed,
        version=__version__,
        made_at=made_at,
        failed=tuple(each.arm for each in compared.failed),
        score_unit="" if options.score is None else options.score.unit,
    )


def _withheld(
    options: Options,
    compared: Compared,
    machine: MachineFacts,
    findings: Sequence[Finding],
    made_at: str,
) -> CompareResult:
    """What is known where nothing may be compared: the commands, and the findings."""
    pilots = {} if compared.withheld is None else compared.withheld.pilots
    judge = compared.judge
    return CompareResult(
        arms=tuple(
            ArmFacts(
                name=entry.name,
                command=entry.text,
                user_s=median(run.user_ns for run in pilots[entry.arm].runs) / 1e9,
                system_s=median(run.system_ns for run in pilots[entry.arm].runs) / 1e9,
                wall_s=pilots[entry.arm].wall_ns / 1e9,
                peak_memory_bytes=pilots[entry.arm].peak_memory_bytes,
                cost_ns=float(pilots[entry.arm].cpu_ns),
            )
            for entry in judge.entries
            if entry.arm in pilots
        ),
        twin=None,
        comparisons=(),
        aa=None,
        metric=judge.metric,
        mode=compared.plan.mode,
        slice_ns=options.slice_ns,
        freezer="",
        level=options.level,
        margin=judge.rule.margin,
        precision=judge.rule.precision,
        executions=0,
        budget_s=compared.budget_ns / 1e9,
        used_s=compared.spent_ns / 1e9,
        running_share=0.0,
        stopped=Stopped.WITHHELD,
        findings=(*compared.findings, *findings),
        machine=machine,
        trials=(),
        seed=options.seed,
        version=__version__,
        made_at=made_at,
        failed=tuple(each.arm for each in compared.failed),
        withheld="" if compared.withheld is None else compared.withheld.text,
    )


def _facts(compared: Compared, entry: Candidate, arm: str, name: str) -> ArmFacts:
    trials = compared.trials
    totals = [trial.arm(arm) for trial in trials]
    count = len(totals)
    seen = compared.traces.of(entry.arm)
    scores = [one.score for one in totals if one.score is not None]
    is_baseline = arm == compared.judge.baseline.arm
    return ArmFacts(
        name=name,
        command=entry.text,
        user_s=sum(one.user_ns for one in totals) / count / 1e9,
        system_s=sum(one.system_ns for one in totals) / count / 1e9,
        wall_s=sum(one.wall_ns for one in totals) / count / 1e9,
        peak_memory_bytes=max(one.peak_memory_bytes for one in totals),
        cost_ns=mean_cost_ns(trials, arm, compared.judge.metric),
        operations=sum(one.operations for one in totals) / count,
        log_ratios=() if is_baseline else compared.judge.log_ratios(trials, arm),
        failing_runs=failing_runs(trials, arm),
        ran=seen.mapped,
        not_judged=seen.not_judged,
        score=fmean(scores) if scores else None,
    )


def _named(trial: Trial, names: Mapping[str, str]) -> Trial:
    # Arms race under short names that are safe in paths; readers know them by their own.
    return replace(
        trial,
        arms=tuple(replace(arm, arm=names[arm.arm]) for arm in trial.arms),
        slices=tuple(replace(part, arm=names[part.arm]) for part in trial.slices),
        failures=tuple(replace(each, arm=names[each.arm]) for each in trial.failures),
    )


def _stopped_of(reason: str) -> Stopped:
    """Why a race ended, for the reader."""
    return {
        "budget": Stopped.BUDGET,
        "interrupted": Stopped.INTERRUPTED,
        "failed": Stopped.FAILED,
    }.get(reason, Stopped.PRECISION if "precision" in reason else Stopped.DECIDED)
