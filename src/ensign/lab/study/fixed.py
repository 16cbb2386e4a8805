"""The plan that is written down before the first sweep, and taken up again on resumption."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ensign.host.meter import Meter
from ensign.lab.study.arms import Field
from ensign.lab.study.calibrate import Pilot, expected_racing_ns, pilot, requests_per_workload
from ensign.lab.study.sweeps import SweepPlan
from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.model.study import Study
from ensign.model.units import format_duration, parse_duration_ns
from ensign.store.folder import StudyFolder

_KEY_CHARACTERS = 16


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
    said = study.model_dump(
        mode="json",
        include={"server", "cpus", "race"},
        exclude={"race": {"margin", "slice_check", "confirm"}},
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
        stored = _new_plan(meter, study, field, on_pilot)
        folder.write_json(f"plans/{key}", stored)
    requests = stored.get("requests")
    expected_ns = stored.get("expected_ns")
    if not isinstance(requests, dict) or not isinstance(expected_ns, int):
        raise InputError(f"plan {key} in {folder.root} is damaged; delete it and run again")
    plan = SweepPlan(key, study.race.sweeps, requests, expected_ns)
    return FixedPlan(plan, _budget_findings(study, expected_ns))


def _new_plan(
    meter: Meter, study: Study, field: Field, on_pilot: Callable[[str], None]
) -> dict[str, object]:
    pilots: dict[str, Pilot] = {}
    spent_ns = 0
    for workload in study.workloads:
        on_pilot(workload.name)
        pilots[workload.name], trials = pilot(meter, study, field, workload)
        spent_ns += sum(trial.wall_ns for trial in trials)
    arms = len(field.artefacts) + 1
    requests = requests_per_workload(study, pilots, arms, spent_ns)
    return {
        "requests": requests,
        "expected_ns": expected_racing_ns(study, pilots, requests, arms),
        "arms": [name for name, _ in field.artefacts],
    }


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
