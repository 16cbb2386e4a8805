"""Several executions of one workload in one round, as one trial. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

from ensign.experiment.groups import one_after_the_other
from ensign.model.trials import TaskActivity, Trial, VariantTotals

_ADDED = (
    "wall_ns", "cpu_ns", "user_ns", "system_ns", "load_cpu_ns", "operations", "voluntary_switches",
    "involuntary_switches", "slices", "page_faults",
)  # fmt: skip
_GREATEST_ACTIVITY = frozenset(("most_tasks",))


def summed(trials: Sequence[Trial]) -> Trial:
    """One trial of all these executions: its costs are their sum, per operation their mean.

    Variants that failed in any of them are out of it. Scores and percentiles are those of the
    first: who has them is not to be executed several times.
    """
    first, *others = trials
    if not others:
        return first
    failures = tuple(failure for trial in trials for failure in trial.failures)
    gone = {failure.variant for failure in failures}
    whole = [trial.without(gone) for trial in trials]
    by_name = [{totals.variant: totals for totals in trial.variants} for trial in whole]
    span_ns = [max(trial.wall_ns, 1) for trial in whole]
    shares = (trial.running_share * span for trial, span in zip(whole, span_ns, strict=True))
    return replace(
        whole[0],
        wall_ns=sum(trial.wall_ns for trial in whole),
        running_share=sum(shares) / sum(span_ns),
        variants=tuple(
            _added([those[totals.variant] for those in by_name]) for totals in whole[0].variants
        ),
        slices=one_after_the_other(whole),
        findings=tuple(dict.fromkeys(finding for trial in whole for finding in trial.findings)),
        failures=failures,
        steal_ns=sum(trial.steal_ns for trial in whole),
    )


def _added(totals: Sequence[VariantTotals]) -> VariantTotals:
    first = totals[0]
    sums = {name: sum(getattr(total, name) for total in totals) for name in _ADDED}
    waits = [total.cpu_wait_ns for total in totals if total.cpu_wait_ns is not None]
    counters = [dict(total.counters) for total in totals]
    return replace(
        first,
        **sums,
        peak_memory_bytes=max(total.peak_memory_bytes for total in totals),
        cpu_wait_ns=sum(waits) if len(waits) == len(totals) else None,
        counters=tuple(
            (name, sum(counter[name] for counter in counters))
            for name in counters[0]
            if all(name in counter for counter in counters)
        ),
        activity=_activity(totals, lambda total: total.activity),
        load_activity=_activity(totals, lambda total: total.load_activity),
        mapped=tuple(dict.fromkeys(file for total in totals for file in total.mapped)),
    )


def _activity(
    totals: Sequence[VariantTotals], of: Callable[[VariantTotals], TaskActivity | None]
) -> TaskActivity | None:
    known = [activity for total in totals if (activity := of(total)) is not None]
    if len(known) < len(totals):
        return None
    sums: dict[str, int] = {}
    for field in fields(TaskActivity):
        values = [getattr(one, field.name) for one in known]
        if field.name in _GREATEST_ACTIVITY:
            sums[field.name] = max(values)
        elif field.name != "waits":
            sums[field.name] = sum(values)
    return replace(known[0], **sums, waits=tuple(wait for one in known for wait in one.waits))
