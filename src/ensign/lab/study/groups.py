"""Arms that do not all fit into memory race in groups, each with baseline and twin. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensign.model.findings import Finding, Severity
from ensign.model.trials import TWIN, SliceRecord, Trial

# More requests than the pilot's may make a server grow.
_ROOM = 1.5
_FEWEST_ARMS = 3


def most_arms_of(peak_bytes: int, memory_bytes: int | None, arms: int) -> int:
    """How many of the arms fit into memory together, by the pilot's peak; at least 3."""
    if memory_bytes is None or peak_bytes <= 0:
        return arms
    return max(_FEWEST_ARMS, min(arms, int(memory_bytes / (peak_bytes * _ROOM))))


def merged(trials: Sequence[Trial], baseline: str) -> Trial:
    """The trials of all groups of one execution as one.

    The baseline and the twin of later groups get names of their own; `groups` says who raced with
    whom. Slices follow each other as if there had been one race.
    """
    if len(trials) == 1:
        return trials[0]
    named = [_in_group(trial, baseline, number) for number, trial in enumerate(trials, start=1)]
    first = [_name(baseline, number) for number in range(1, len(trials) + 1)]
    span_ns = [sum(totals.wall_ns for totals in trial.arms) or 1 for trial in named]
    slices: list[SliceRecord] = []
    start_ns = 0
    for trial in named:
        slices += (replace(each, start_ns=each.start_ns + start_ns) for each in trial.slices)
        start_ns = max((each.start_ns + each.wall_ns for each in slices), default=0)
    shares = (trial.running_share * span for trial, span in zip(named, span_ns, strict=True))
    return replace(
        named[0],
        wall_ns=sum(trial.wall_ns for trial in named),
        running_share=sum(shares) / sum(span_ns),
        arms=tuple(totals for trial in named for totals in trial.arms),
        slices=tuple(slices),
        findings=tuple(finding for trial in named for finding in trial.findings),
        groups=tuple(
            (name, *(totals.arm for totals in trial.arms if totals.arm != name))
            for name, trial in zip(first, named, strict=True)
        ),
    )


def group_finding(workload: str, most: int) -> Finding:
    """What to say of a workload whose arms are raced in groups."""
    text = (
        f"no more than {most} arms fit into memory together: raced in groups, each with the "
        "baseline and its twin"
    )
    return Finding("raced-in-groups", Severity.NOTE, text, workload)


def _name(arm: str, number: int) -> str:
    return arm if number == 1 else f"{arm} (group {number})"


def _in_group(trial: Trial, baseline: str, number: int) -> Trial:
    def name(arm: str) -> str:
        return _name(arm, number) if arm in (baseline, TWIN) else arm

    return replace(
        trial,
        arms=tuple(replace(totals, arm=name(totals.arm)) for totals in trial.arms),
        slices=tuple(replace(each, arm=name(each.arm)) for each in trial.slices),
    )
