"""A finished race, dressed for a report. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

from ensign import __version__
from ensign.lab.compare.failures import failing_runs
from ensign.lab.compare.options import CommandVariant, Options
from ensign.lab.compare.run import Compared
from ensign.model.findings import Finding
from ensign.model.results import CompareResult, MachineFacts, Stopped, VariantFacts
from ensign.model.trials import TWIN, Trial, failed_variants
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
    gone = failed_variants(compared.trials)
    compared = replace(compared, judge=compared.judge.without(gone))
    judge, trials = compared.judge, [trial.without(gone) for trial in compared.trials]
    first = judge.baseline
    commands = (*judge.commands, *(each.command for each in compared.failed))
    names = {command.variant: command.name for command in commands} | {TWIN: f"{first.name} (twin)"}
    return CompareResult(
        variants=tuple(
            _facts(compared, command, command.variant, command.name) for command in judge.commands
        ),
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
        stopped=compared.stopped,
        findings=(*compared.findings, *findings),
        machine=machine,
        trials=tuple(_named(trial, names) for trial in compared.trials),
        seed=options.seed,
        version=__version__,
        made_at=made_at,
        failed=tuple(each.variant for each in compared.failed),
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
        variants=tuple(
            VariantFacts(
                name=command.name,
                command=command.text,
                user_s=median(run.user_ns for run in pilots[command.variant].runs) / 1e9,
                system_s=median(run.system_ns for run in pilots[command.variant].runs) / 1e9,
                wall_s=pilots[command.variant].wall_ns / 1e9,
                peak_memory_bytes=pilots[command.variant].peak_memory_bytes,
                cost_ns=float(pilots[command.variant].cpu_ns),
            )
            for command in judge.commands
            if command.variant in pilots
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
        failed=tuple(each.variant for each in compared.failed),
        withheld="" if compared.withheld is None else compared.withheld.text,
    )


def _facts(compared: Compared, command: CommandVariant, variant: str, name: str) -> VariantFacts:
    trials = compared.trials
    totals = [trial.variant(variant) for trial in trials]
    count = len(totals)
    seen = compared.traces.of(command.variant)
    scores = [one.score for one in totals if one.score is not None]
    is_baseline = variant == compared.judge.baseline.variant
    return VariantFacts(
        name=name,
        command=command.text,
        user_s=sum(one.user_ns for one in totals) / count / 1e9,
        system_s=sum(one.system_ns for one in totals) / count / 1e9,
        wall_s=sum(one.wall_ns for one in totals) / count / 1e9,
        peak_memory_bytes=max(one.peak_memory_bytes for one in totals),
        cost_ns=mean_cost_ns(trials, variant, compared.judge.metric),
        operations=sum(one.operations for one in totals) / count,
        log_ratios=() if is_baseline else compared.judge.log_ratios(trials, variant),
        failing_runs=failing_runs(trials, variant),
        ran=seen.mapped,
        not_judged=seen.not_judged,
        score=fmean(scores) if scores else None,
    )


def _named(trial: Trial, names: Mapping[str, str]) -> Trial:
    # Variants race under short names that are safe in paths; readers know them by their own.
    return replace(
        trial,
        variants=tuple(
            replace(variant, variant=names[variant.variant]) for variant in trial.variants
        ),
        slices=tuple(replace(part, variant=names[part.variant]) for part in trial.slices),
        failures=tuple(replace(each, variant=names[each.variant]) for each in trial.failures),
    )
