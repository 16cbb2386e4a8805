"""A subset of the workloads, raced again at four times the slice after the rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensign.experiment.study.budget import LONGER_EXECUTIONS
from ensign.experiment.study.round_plan import RoundPlan
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.trials import TWIN, Trial
from ensign.model.units import parse_duration_ns
from ensign.stats.slice_length import change_of_log_ratio, slice_length_finding
from ensign.stats.trials import log_ratios

FACTOR = 4


def with_longer_slices(study: Study, plan: RoundPlan) -> tuple[Study, RoundPlan]:
    """The study and plan of the check; no workloads where the study asks for none. Pure."""
    sliced = set(study.race.slice_check).difference(plan.alternating)
    chosen = [w for w in study.workloads if w.name in sliced]
    slice_ns = parse_duration_ns(study.race.slice) * FACTOR
    race = study.race.model_copy(update={"slice": f"{slice_ns}ns"})
    longer = study.model_copy(update={"workloads": chosen, "race": race})
    # All connections, where only some fit into a usual slice: is it the same with more at a time?
    key = longer_key(plan.key)
    return longer, replace(plan, key=key, rounds=LONGER_EXECUTIONS, at_once={}, closed=True)


def longer_key(key: str) -> str:
    """Where the trials of the check are kept."""
    return f"{key}-longer"


def slice_length_findings(
    study: Study, raced: Sequence[str], usual: Sequence[Trial], longer: Sequence[Trial]
) -> tuple[Finding, ...]:
    """One finding per workload that was raced at both lengths. Pure."""
    metric = study.race.cost
    length_ms = parse_duration_ns(study.race.slice) / 1e6
    found: list[Finding] = []
    for workload in study.race.slice_check:
        short = [trial for trial in usual if trial.workload == workload]
        long = [trial for trial in longer if trial.workload == workload]
        if not long:
            continue
        changes = {
            variant: change_of_log_ratio(
                log_ratios(short, variant, raced[0], metric),
                log_ratios(long, variant, raced[0], metric),
                study.race.level,
            )
            for variant in (*raced[1:], TWIN)
        }
        lengths = (length_ms, length_ms * FACTOR)
        found.append(slice_length_finding(workload, lengths, changes))
    return tuple(found)
