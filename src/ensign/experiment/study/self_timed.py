"""Workloads of a study that run for a fixed time: found in the pilots, and not judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ensign.experiment.compare.pilot import CommandPilot
from ensign.experiment.compare.self_timed import (
    CLOCK_RATE,
    NOTEWORTHY_NS,
    asks_for_cpu_time,
    by_both,
    by_median,
    by_the_cpu_clock,
    by_the_wall_clock,
)
from ensign.experiment.loop import trial_seed
from ensign.experiment.metric_and_mode import FEWEST_RUNS
from ensign.experiment.study.pilots import looked_at, one_trial
from ensign.experiment.study.round_plan import RoundPlan
from ensign.experiment.study.tracing import NO_TIME
from ensign.experiment.study.variants import VariantSet, mode_of, race_request
from ensign.experiment.tracing import MeterTracer, TraceOptions
from ensign.meter.client import Meter
from ensign.model.errors import CommandFailed
from ensign.model.finding_kinds.race import CLOCK_UNKNOWN, SELF_TIMED
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.traced_execution import TracedExecution
from ensign.model.trials import Mode, Trial
from ensign.workloads.registry import may_end_by_the_clock

_TO_BE_SURE = 2
# Beside the twin.
_CROWD = 3
_REMEDY = (
    "what it costs says nothing of its speed; give the workload `score = { pattern, unit, better }`"
    " (a number that it prints), or `operations`"
)


@dataclass(frozen=True, slots=True)
class ClockTrial:
    """One workload of which is to be known whether it ends by a clock.

    `alone` are executions of the baseline by itself, `traced` is one that was followed (None: none
    was asked for). `affordable`: there is time for executions on purpose.
    """

    study: Study
    variants: VariantSet
    workload: Workload
    requests: int | None
    alone: CommandPilot
    traced: TracedExecution | None
    affordable: bool


def ends_by_the_clock(meter: Meter, tried: ClockTrial) -> str | None:
    """How it showed that the workload ends by a clock; "" where it does not, or where it counts.

    None where that is not known: finding out would take too long.
    """
    if not may_end_by_the_clock(tried.workload):
        return ""
    try:
        by_wall = _by_wall(meter, tried)
        by_cpu = "" if by_wall else _by_cpu(meter, tried)
    except CommandFailed:
        # What fails so is told by the race itself.
        return ""
    known = by_wall is not None and by_cpu is not None
    return by_wall or by_cpu or ("" if known else None)


def shown_by_the_race(
    study: Study, alone: Mapping[str, CommandPilot], trials: Sequence[Trial]
) -> dict[str, str]:
    """How executions in slices show which workloads end by the wall clock. Pure.

    The first two, or the medians of all: on a busy machine single ones say little.
    """
    found: dict[str, str] = {}
    asked = [each.name for each in study.workloads if may_end_by_the_clock(each)]
    for name in asked:
        pilot = alone.get(name)
        if pilot is None:
            continue
        raced = sorted(
            (each for each in trials if each.workload == name and each.mode is Mode.INTERLEAVED),
            key=lambda trial: trial.round_index,
        )
        if len(raced) < _TO_BE_SURE:
            continue
        pilots = {raced[0].variants[0].variant: pilot}
        said = by_both(*(by_the_wall_clock(pilots, each) for each in raced[:_TO_BE_SURE]))
        if said := said or by_median(pilots, raced):
            found[name] = said[0].how
    return found


def _by_wall(meter: Meter, tried: ClockTrial) -> str | None:
    """By copies of the baseline that take turns in slices, beside executions of it alone.

    The more take turns, the less each gets between its start and its end; there are no more of them
    than the race will have. A race in slices shows it by itself, where there is no time for that.
    """
    study, variants, workload = tried.study, tried.variants, tried.workload
    if workload.name in variants.apart or tried.alone.least_cpu_ns < NOTEWORTHY_NS:
        return ""
    if not tried.affordable:
        return "" if mode_of(study, variants, workload) is Mode.INTERLEAVED else None
    alone = replace(variants.only_baseline(), alternating=False)
    race = study.race.model_copy(update={"mode": Mode.INTERLEAVED.value, "metric": "cpu"})
    raced = study.model_copy(update={"race": race})
    baseline, path = variants.artifacts[0]
    copies = ((f"copy-{number}", path) for number in range(1, min(_CROWD, len(variants.artifacts))))
    crowd = replace(alone, artifacts=(*alone.artifacts, *copies))
    pilots = {baseline: tried.alone}

    def sliced(round_index: int) -> Trial:
        return one_trial(meter, raced, crowd, workload, tried.requests, round_index=round_index)

    found = by_the_wall_clock(pilots, sliced(1))
    if not found:
        return ""
    trial = sliced(2)
    found = by_both(found, by_the_wall_clock(pilots, trial))
    if found:
        again = _alone_again(meter, study, variants, workload, tried.requests, tried.alone)
        found = by_both(found, by_the_wall_clock({baseline: again}, trial))
    return found[0].how if found else ""


def shown_again(
    meter: Meter,
    study: Study,
    variants: VariantSet,
    rounds: RoundPlan,
    found: Mapping[str, str],
    trials: Sequence[Trial],
) -> dict[str, str]:
    """What of `found` in the race shows beside executions alone after it, too.

    On a machine that became faster meanwhile, fixed work uses less in the race than before it.
    """
    after = {}
    for workload in study.workloads:
        name = workload.name
        if name in found:
            known = (workload, rounds.requests.get(name), rounds.alone[name])
            after[name] = _alone_again(meter, study, variants, *known)
    return shown_by_the_race(study, after, trials)


def _alone_again(
    meter: Meter,
    study: Study,
    variants: VariantSet,
    workload: Workload,
    requests: int | None,
    before: CommandPilot,
) -> CommandPilot:
    """Some executions alone as those `before`; those, where these fail."""
    runs = min(len(before.runs), FEWEST_RUNS)
    again = looked_at(meter, study, variants, workload, requests, runs=runs)
    return before if again is None else again.looked


def _by_cpu(meter: Meter, tried: ClockTrial) -> str | None:
    """By a CPU clock that runs faster, where the program asks for its CPU time again and again."""
    if tried.workload.command is None:
        return ""
    seed = trial_seed(tried.study.race.seed, 0, tried.workload.name)
    alone = tried.variants.only_baseline()
    variant = race_request(tried.study, alone, tried.workload, tried.requests, seed=seed).variants[
        0
    ]
    tracer, wish = MeterTracer(meter), TraceOptions(tried.study.race.ports)
    usual, usually = tried.traced, partial(tracer.trace, variant, wish)
    if usual is None or is_cut_short(usual):
        if not tried.affordable:
            return None
    elif asks_for_cpu_time(usual):
        usually = partial(_as_it_was, usual)
    else:
        return ""
    hurried = tracer.trace(variant, replace(wish, cpu_clock_rate=CLOCK_RATE))
    found = by_the_cpu_clock(tried.workload.name, hurried, usually, tried.alone.cpu_ns)
    return "" if found is None else found.how


def _as_it_was(seen: TracedExecution) -> TracedExecution:
    return seen


def is_cut_short(seen: TracedExecution) -> bool:
    """Whether there was no time to follow the execution to its end."""
    return seen.not_judged == NO_TIME or (seen.followed and seen.cpu_ns <= 0)


def self_timed_findings(how: Mapping[str, str], unknown: Sequence[str] = ()) -> tuple[Finding, ...]:
    """One per workload that runs for a fixed time, and per workload that was not asked. Pure."""
    found = [
        SELF_TIMED.found(f"runs for a fixed time: {said}; {_REMEDY}", workload)
        for workload, said in how.items()
    ]
    text = (
        "not judged: to find out whether it runs for a fixed time would take too much of the "
        "budget; a larger budget tells, or `operations` or `score` of the workload"
    )
    found += (CLOCK_UNKNOWN.found(text, workload) for workload in unknown)
    return tuple(found)
