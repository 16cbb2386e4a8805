"""The plan that is written down before the first sweep, and taken up again on resumption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import TypeAdapter, ValidationError

from ensign.host.meter import Meter
from ensign.lab.study.arms import Field
from ensign.lab.study.calibrate import (
    Pilot,
    band_arms,
    expected_racing_ns,
    expecting_executions,
    one_trial,
    pilot,
    requests_per_workload,
)
from ensign.lab.study.groups import arms_together, fewest, group_findings, most_arms_of
from ensign.lab.study.sweeps import SweepPlan
from ensign.lab.study.turns import connections_at_once, turns_findings
from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.model.study import Study
from ensign.model.trials import TWIN, Metric
from ensign.model.units import format_duration, parse_duration_ns, parse_share
from ensign.stats.expected import expected_precision, sweeps_for
from ensign.stats.trials import log_ratios
from ensign.store.folder import StudyFolder

_KEY_CHARACTERS = 16
_PLAN = TypeAdapter(SweepPlan)


@dataclass(frozen=True, slots=True)
class FixedPlan:
    """What was fixed, and what there is to say about it (a budget that cannot hold)."""

    sweeps: SweepPlan
    findings: tuple[Finding, ...]


def plan_key(
    study: Study, hashes: Mapping[str, str], relinks: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Names everything that a trial depends on: programs, workloads, server, race. Pure.

    `hashes` are the loadable bytes per variant, `relinks` those of the relinks that are raced.
    Trials under one key may be compared.
    """
    left_out = {"margin", "slice_check", "confirm"}
    if study.race.precision is None:
        left_out.add("precision")
    said = study.model_dump(
        mode="json", include={"server", "cpus", "race"}, exclude={"race": left_out}
    )
    said["workloads"] = [each.identity for each in study.workloads]
    programs: dict[str, object] = {"study": said, "programs": dict(hashes)}
    if relinks:
        programs["relinks"] = {name: list(each) for name, each in relinks.items()}
    text = json.dumps(programs, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARACTERS]


def fixed_plan(
    meter: Meter,
    study: Study,
    field: Field,
    key: str,
    folder: StudyFolder,
    on_pilot: Callable[[str], None],
) -> FixedPlan:
    """The stored plan of that key, or a new one from pilots, stored before it is used."""
    stored = folder.read_json(f"plans/{key}")
    if stored is None:
        plan = _new_plan(meter, study, field, key, on_pilot)
        folder.write_json(f"plans/{key}", _PLAN.dump_python(plan, mode="json"))
    else:
        try:
            plan = _PLAN.validate_python({"key": key, "sweeps": study.race.sweeps, **stored})
        except ValidationError:
            raise InputError(
                f"plan {key} in {folder.root} is damaged; delete it and run again"
            ) from None
    return FixedPlan(plan, _doubts(study, plan))


def _new_plan(
    meter: Meter, study: Study, field: Field, key: str, on_pilot: Callable[[str], None]
) -> SweepPlan:
    pilots: dict[str, Pilot] = {}
    spent_ns, arms = 0, len(field.artefacts) + 1
    largest = max(arms, band_arms(study))
    together = arms_together(len(field.artefacts) - 1, study.race.group_size)
    for workload in study.workloads:
        on_pilot(workload.name)
        measured, trials = pilot(meter, study, field, workload)
        most = most_arms_of(measured.peak_memory_bytes, field.memory_bytes, largest)
        pilots[workload.name] = replace(
            measured, most_arms=fewest(together, most if most < largest else None)
        )
        spent_ns += sum(trial.wall_ns for trial in trials)
    requests = requests_per_workload(study, pilots, arms, spent_ns)
    grouped = {
        name: each.most_arms
        for name, each in pilots.items()
        if each.most_arms is not None and each.most_arms != together
    }
    at_once = connections_at_once(study, pilots)
    plan = SweepPlan(
        key, study.race.sweeps, requests, 0, together, most_arms=grouped, at_once=at_once
    )
    if expecting_executions(study, arms):
        plan = _with_precision(meter, study, field, plan, on_pilot)
    shorter = study.race.model_copy(update={"sweeps": plan.sweeps})
    raced = study.model_copy(update={"race": shorter})
    return replace(plan, expected_ns=expected_racing_ns(raced, pilots, requests, arms))


def _with_precision(
    meter: Meter, study: Study, field: Field, plan: SweepPlan, on_pilot: Callable[[str], None]
) -> SweepPlan:
    """The plan with the precision to expect, and with no more sweeps than an asked one needs."""
    metric, level = Metric(study.race.metric), study.race.level
    alone = field.only_baseline()
    twin: dict[str, tuple[float, ...]] = {}
    for workload in study.workloads:
        on_pilot(workload.name)
        requests, arms = plan.requests[workload.name], plan.placed(alone, workload.name)
        trials = [
            one_trial(meter, study, arms, workload, requests, sweep=sweep)
            for sweep in range(expecting_executions(study, len(field.artefacts) + 1))
        ]
        twin[workload.name] = log_ratios(trials, TWIN, field.artefacts[0][0], metric)
    sweeps = study.race.sweeps
    if study.race.precision is not None:
        sweeps = sweeps_for(twin, parse_share(study.race.precision), sweeps, level)
    return replace(plan, sweeps=sweeps, precision=expected_precision(twin, sweeps, level))


def _doubts(study: Study, plan: SweepPlan) -> tuple[Finding, ...]:
    grouped = group_findings(plan.together, plan.most_arms)
    budget = _budget_findings(study, plan.expected_ns)
    turns = turns_findings(plan.at_once)
    return (*budget, *_precision_findings(study, plan), *grouped, *turns)


def _budget_findings(study: Study, expected_ns: int) -> tuple[Finding, ...]:
    budget_ns = parse_duration_ns(study.race.budget)
    if expected_ns <= budget_ns:
        return ()
    text = (
        f"racing takes about {format_duration(expected_ns)}, more than the budget of "
        f"{format_duration(budget_ns)}: start-up and preloading alone need that for "
        f"{study.race.sweeps} sweeps; fewer sweeps or workloads would fit"
    )
    return (Finding("over-budget", Severity.WARNING, text),)


def _precision_findings(study: Study, plan: SweepPlan) -> tuple[Finding, ...]:
    asked, expected = study.race.precision, plan.precision
    if asked is None or expected is None or expected.suite <= parse_share(asked):
        return ()
    # Half-widths shrink with the root of the time.
    needed_ns = plan.expected_ns * (expected.suite / parse_share(asked)) ** 2
    text = (
        f"before the sweeps, geometric means were expected within ± {expected.suite:.2%}, not the "
        f"± {asked} asked for: that would take about {format_duration(needed_ns)} of racing"
    )
    return (Finding("precision-out-of-reach", Severity.WARNING, text),)
