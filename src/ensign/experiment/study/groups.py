"""Many variants race in groups, each with baseline and twin. Pure.

Memory may force it. Without that it is a matter of precision: the more variants take turns, the
longer is a round of their slices, and what drifts in that time is noise. Nine variants of Redis'
tests had a standard deviation of 1.23 % per execution, 25 of them (on another machine) 2.46 %; the
variance is taken to be as 9 + variants, which is less than that. The time of an execution of V
variants in G groups is as V + 2G, since each group has the baseline twice. Half-widths for the same
time are narrowest where the product is least. It hardly changes around there, and groups cost
comparisons between groups, so the fewest groups whose half-widths are within 2 % of the narrowest
are taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ensign.model.finding_kinds.race import RACED_IN_GROUPS
from ensign.model.findings import Finding
from ensign.model.trials import TWIN, SliceRecord, Trial, name_in_group

# More requests than the pilot's may make a server grow.
_TIME_LEFT = 1.5
_FEWEST_VARIANTS = 3
_NO_VARIANT = 2  # the baseline and its twin
# Variance of an execution that does not depend on how many race, in what one more variant adds.
_CONSTANT_NOISE = 9
_ABOUT_AS_NARROW = 1.02


def groups_for(variants: int) -> int:
    """In how many groups so many variants (besides the baseline) are raced."""

    def variance(groups: int) -> float:
        together = variants / groups + _NO_VARIANT
        return (_CONSTANT_NOISE + together) * (variants + _NO_VARIANT * groups)

    counts = range(1, max(variants, 1) + 1)
    limit = min(map(variance, counts)) * _ABOUT_AS_NARROW**2
    return next(groups for groups in counts if variance(groups) <= limit)


def variants_together(variants: int, group_size: int | str) -> int | None:
    """How many variants race at a time by `race.group_size`; None: all of them."""
    size = group_size
    if size == "auto":
        size = math.ceil(variants / groups_for(variants))
    if not isinstance(size, int) or size >= variants:
        return None
    return size + _NO_VARIANT


def most_variants_of(peak_bytes: int, memory_bytes: int | None, variants: int) -> int:
    """How many of the variants fit into memory together, by the pilot's peak; at least 3."""
    if memory_bytes is None or peak_bytes <= 0:
        return variants
    return max(_FEWEST_VARIANTS, min(variants, int(memory_bytes / (peak_bytes * _TIME_LEFT))))


def merged(trials: Sequence[Trial], baseline: str) -> Trial:
    """The trials of all groups of one execution as one.

    The baseline and the twin of later groups get names of their own; `groups` says who raced with
    whom. Slices follow each other as if there had been one race.
    """
    if len(trials) == 1:
        return trials[0]
    named = [_in_group(trial, baseline, number) for number, trial in enumerate(trials, start=1)]
    first = [name_in_group(baseline, number) for number in range(1, len(trials) + 1)]
    span_ns = [sum(totals.wall_ns for totals in trial.variants) or 1 for trial in named]
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
        variants=tuple(totals for trial in named for totals in trial.variants),
        slices=tuple(slices),
        findings=tuple(finding for trial in named for finding in trial.findings),
        failures=tuple(failure for trial in named for failure in trial.failures),
        groups=tuple(
            (name, *(totals.variant for totals in trial.variants if totals.variant != name))
            for name, trial in zip(first, named, strict=True)
        ),
    )


def fewest(*limits: int | None) -> int | None:
    """The least of those limits that there are."""
    return min((limit for limit in limits if limit is not None), default=None)


def group_findings(together: int | None, most_variants: Mapping[str, int]) -> tuple[Finding, ...]:
    """What to say where variants race in groups: by choice, or because of memory, per workload."""
    found = []
    if together is not None:
        text = (
            f"raced in groups of up to {together - _NO_VARIANT} variants, dealt anew in each "
            "execution, each with the baseline and its twin: intervals are narrower for the same "
            'time; race.group_size = "all" races them together'
        )
        found.append(RACED_IN_GROUPS.found(text))
    for workload, most in sorted(most_variants.items()):
        if together is None or most < together:
            text = (
                f"no more than {most} variants fit into memory: raced in groups, each with "
                "the baseline and its twin"
            )
            found.append(RACED_IN_GROUPS.found(text, workload))
    return tuple(found)


def _in_group(trial: Trial, baseline: str, number: int) -> Trial:
    def name(variant: str) -> str:
        return name_in_group(variant, number) if variant in (baseline, TWIN) else variant

    return replace(
        trial,
        variants=tuple(replace(totals, variant=name(totals.variant)) for totals in trial.variants),
        slices=tuple(replace(each, variant=name(each.variant)) for each in trial.slices),
    )
