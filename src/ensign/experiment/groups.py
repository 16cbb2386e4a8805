"""Many variants race in groups, dealt anew in each execution, each with the baseline and its twin.

The more variants take turns, the longer is a round of their slices, and what drifts in that time is
noise. Costs are compared within groups (docs/background/statistics/rounds-and-geomean.md).
"""

from __future__ import annotations

import math
import random
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from ensign.meter.client import Meter
from ensign.meter.racing import race
from ensign.meter.requests import RaceRequest
from ensign.model.finding_kinds.race import RACED_IN_GROUPS
from ensign.model.findings import Finding
from ensign.model.trials import TWIN, SliceRecord, Trial, name_in_group

NO_VARIANT = 2  # the baseline and its twin
FEWEST_VARIANTS = NO_VARIANT + 1
# Variance of an execution that does not depend on how many race, in what one more variant adds.
_CONSTANT_NOISE = 9
_ABOUT_AS_NARROW = 1.02


def group_count(variants: int, most_variants: int) -> int:
    """In how many races so many variants fit beside baseline and twin, which are in each."""
    return max(1, math.ceil(variants / (most_variants - NO_VARIANT)))


def groups_for(variants: int) -> int:
    """In how many groups so many variants (besides the baseline) are raced.

    Memory may force it. Without that it is a matter of precision. Nine variants of Redis' tests had
    a standard deviation of 1.23 % per execution, 25 of them (on another machine) 2.46 %; the
    variance is taken to be as 9 + variants, which is less than that. The time of an execution of V
    variants in G groups is as V + 2G, since each group has the baseline twice. Half-widths for the
    same time are narrowest where the product is least. It hardly changes around there, and groups
    cost comparisons between groups, so the fewest groups whose half-widths are within 2 % of the
    narrowest are taken. Measured side by side they were not narrower
    (docs/background/statistics/rounds-and-geomean.md): commands do not use the rule.
    """

    def variance(groups: int) -> float:
        together = variants / groups + NO_VARIANT
        return (_CONSTANT_NOISE + together) * (variants + NO_VARIANT * groups)

    counts = range(1, max(variants, 1) + 1)
    limit = min(map(variance, counts)) * _ABOUT_AS_NARROW**2
    return next(groups for groups in counts if variance(groups) <= limit)


def variants_together(variants: int, group_size: int | str) -> int | None:
    """Number of variants that race at a time by `group_size`; None: all of them."""
    size = group_size
    if size == "auto":
        size = math.ceil(variants / groups_for(variants))
    if not isinstance(size, int) or size >= variants:
        return None
    return size + NO_VARIANT


def groups_finding(together: int) -> Finding:
    """Finding where variants race in groups by choice."""
    text = (
        f"raced in groups of up to {together - NO_VARIANT} variants, dealt anew in each execution, "
        "each with the baseline and its twin"
    )
    return RACED_IN_GROUPS.found(text)


def memory_finding(most: int, workload: str = "") -> Finding:
    """Finding where no more than so many variants fit into memory."""
    text = (
        f"no more than {most} variants fit into memory: raced in groups, each with the baseline "
        "and its twin"
    )
    return RACED_IN_GROUPS.found(text, workload)


def groups_in(request: RaceRequest, most_variants: int | None) -> int:
    """In how many races of at most so many variants it is; one without a twin, too."""
    if most_variants is None or request.variants[-1].name != TWIN:
        return 1
    return group_count(len(request.variants) - NO_VARIANT, most_variants)


def in_groups(request: RaceRequest, most_variants: int | None) -> tuple[RaceRequest, ...]:
    """Races of at most so many variants, each with the baseline, the first, and its twin, the last.

    The request's seed deals the others into groups.
    """
    count = groups_in(request, most_variants)
    if count == 1:
        return (request,)
    first, *others, twin = request.variants
    random.Random(request.seed).shuffle(others)  # noqa: S311  # not for secrets
    parts = (others[start::count] for start in range(count))
    return tuple(replace(request, variants=(first, *part, twin)) for part in parts)


def race_in_groups(
    meter: Meter,
    request: RaceRequest,
    most_variants: int | None,
    *,
    workload: str = "",
    first_round: int = 0,
    names: Mapping[str, str] | None = None,
) -> Generator[Trial, None, None]:
    """Trials as `race`; in groups each execution is dealt by a seed of its own."""
    if groups_in(request, most_variants) == 1:
        yield from race(meter, request, workload=workload, first_round=first_round, names=names)
        return
    for number in range(request.executions):
        once = replace(request, executions=1, seed=request.seed + number)
        place = first_round + number
        trials: list[Trial] = []
        for group in in_groups(once, most_variants):
            raced = race(meter, group, workload=workload, first_round=place, names=names)
            with closing(raced) as raced_trials:
                trials += raced_trials
        yield merged(trials, request.variants[0].name)


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
    shares = (trial.running_share * span for trial, span in zip(named, span_ns, strict=True))
    return replace(
        named[0],
        wall_ns=sum(trial.wall_ns for trial in named),
        running_share=sum(shares) / sum(span_ns),
        variants=tuple(totals for trial in named for totals in trial.variants),
        slices=one_after_the_other(named),
        findings=tuple(finding for trial in named for finding in trial.findings),
        failures=tuple(failure for trial in named for failure in trial.failures),
        groups=tuple(
            (name, *(totals.variant for totals in trial.variants if totals.variant != name))
            for name, trial in zip(first, named, strict=True)
        ),
        steal_ns=sum(trial.steal_ns for trial in named),
    )


def _in_group(trial: Trial, baseline: str, number: int) -> Trial:
    def name(variant: str) -> str:
        return name_in_group(variant, number) if variant in (baseline, TWIN) else variant

    return replace(
        trial,
        variants=tuple(replace(totals, variant=name(totals.variant)) for totals in trial.variants),
        slices=tuple(replace(record, variant=name(record.variant)) for record in trial.slices),
    )


def one_after_the_other(trials: Sequence[Trial]) -> tuple[SliceRecord, ...]:
    """Slices of all trials, as if there had been one race."""
    slices: list[SliceRecord] = []
    start_ns = 0
    for trial in trials:
        slices += (replace(record, start_ns=record.start_ns + start_ns) for record in trial.slices)
        start_ns = max((record.start_ns + record.wall_ns for record in slices), default=0)
    return tuple(slices)
