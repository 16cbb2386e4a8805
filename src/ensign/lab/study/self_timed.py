"""Workloads of a study that end by the clock: found in the pilots, and not judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from ensign.host.meter import Meter
from ensign.lab.compare.pilot import Pilot, run_of_totals
from ensign.lab.compare.self_timed import (
    CLOCK_RATE,
    by_both,
    by_the_cpu_clock,
    by_the_wall_clock,
)
from ensign.lab.study.arms import Field, race_request
from ensign.lab.study.calibrate import one_trial, trial_seed
from ensign.lab.traced import MeterTracer, TraceWish
from ensign.model.errors import CommandFailed
from ensign.model.findings import Finding, Severity
from ensign.model.results import StudyResult
from ensign.model.study import Study, Workload
from ensign.model.trials import Mode, Trial

CODE = "self-timed"
_FEW = 5
# Beside the twin.
_CROWD = 3
_REMEDY = (
    "what it costs says nothing of its speed; give the workload `score = { pattern, unit, better }`"
    " (a number that it prints), or `operations`"
)


def ends_by_the_clock(
    meter: Meter, study: Study, field: Field, workload: Workload, requests: int | None
) -> str:
    """How it showed that the workload ends by a clock; "" where it does not, or where it counts."""
    if not workload.may_end_by_the_clock or workload.name in field.apart:
        return ""
    try:
        return _by_wall(meter, study, field, workload, requests) or _by_cpu(
            meter, study, field.only_baseline(), workload, requests
        )
    except CommandFailed:
        # What fails so is told by the race itself.
        return ""


def _by_wall(
    meter: Meter, study: Study, field: Field, workload: Workload, requests: int | None
) -> str:
    """By executions of copies of the baseline: each alone, and taking turns in slices.

    The more take turns, the less each gets between its start and its end; there are no more of them
    than the race will have.
    """
    alone = field.only_baseline()

    def trial(mode: Mode, sweep: int, field: Field) -> Trial:
        race = study.race.model_copy(update={"mode": mode.value, "metric": "cpu"})
        raced = study.model_copy(update={"race": race})
        return one_trial(meter, raced, field, workload, requests, sweep=sweep)

    whole = trial(Mode.WHOLE, 0, alone)
    baseline, path = field.artefacts[0]
    copies = ((f"copy-{number}", path) for number in range(1, min(_CROWD, len(field.artefacts))))
    crowd = replace(alone, artefacts=(*alone.artefacts, *copies))
    runs = tuple(run_of_totals(totals) for totals in whole.arms)
    pilots = {baseline: Pilot(workload.name, runs)}
    found = by_the_wall_clock(pilots, trial(Mode.GATED, 1, crowd))
    if found:
        found = by_both(found, by_the_wall_clock(pilots, trial(Mode.GATED, 2, crowd)))
    return found[0].how if found else ""


def _by_cpu(
    meter: Meter, study: Study, field: Field, workload: Workload, requests: int | None
) -> str:
    if workload.command is None:
        return ""
    seed = trial_seed(study.race.seed, 0, workload.name)
    arm = race_request(study, field, workload, requests, seed=seed).arms[0]
    tracer, wish = MeterTracer(meter), TraceWish(study.race.ports)
    hurried = tracer.trace(arm, replace(wish, cpu_clock_rate=CLOCK_RATE))
    found = by_the_cpu_clock(workload.name, hurried, partial(tracer.trace, arm, wish))
    return "" if found is None else found.how


def self_timed_findings(how: Mapping[str, str], unknown: Sequence[str] = ()) -> tuple[Finding, ...]:
    """One per workload that ends by the clock, and one of those that were not asked. Pure."""
    found = [
        Finding(CODE, Severity.ERROR, f"ends by the clock: {said}; {_REMEDY}", workload)
        for workload, said in how.items()
    ]
    if unknown:
        text = (
            f"not judged: whether {_listed(unknown)} ends by the clock: finding out would take too "
            "much of the budget"
        )
        found.append(Finding("clock-unknown", Severity.NOTE, text))
    return tuple(found)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _FEW
    shown = ", ".join(names[:_FEW])
    return f"{shown} and {more} more" if more > 0 else shown


def judged_workloads(names: Sequence[str], findings: Sequence[Finding]) -> tuple[str, ...]:
    """The workloads whose cost means something; all, where none does. Pure."""
    timed = {finding.subject for finding in findings if finding.code == CODE}
    return tuple(name for name in names if name not in timed) or tuple(names)


def without_claims(result: StudyResult) -> StudyResult:
    """The result of a study whose workloads all end by the clock: nothing is claimed. Pure."""
    timed = {finding.subject for finding in result.findings if finding.code == CODE}
    if not timed or not timed.issuperset(result.workload_names):
        return result
    why = "its workloads end by the clock, so their costs say nothing of its speed"
    return replace(
        result,
        suite=tuple(
            replace(each, comparison=each.comparison.without_claim(why), no_slower=None)
            for each in result.suite
        ),
        workloads=tuple(
            replace(each, comparison=each.comparison.without_claim(why))
            for each in result.workloads
        ),
        named=(),
        bands=(),
    )
