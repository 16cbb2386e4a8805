"""How the variants of each workload will take turns, and why, before anything ran. Pure."""

from __future__ import annotations

from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.trials import Metric, Mode


def planned_mode(study: Study, workload: Workload) -> str:
    """By what the study says; the rest is for pilots to see. See `lab.study.variants.mode_of`."""
    race, whole = study.race, "alternating (whole executions in turn)"
    if workload.by_turns:
        what = "its own speed" if workload.scored else "how much it did"
        return f"{whole}: it says {what}, which time in which it stood would change"
    if race.turns is Mode.DRIVEN:
        return f"driven: ensign's own load generator sends for {race.slice} to one at a time"
    if race.turns is Mode.ALTERNATING:
        return f"{whole}: 'race.mode' says so; the meter measures"
    sliced = f"interleaved (stopped and continued in slices of {race.slice}); the meter measures"
    if race.mode is not None:
        return f"{sliced}: 'race.mode' says so"
    if workload.load is not None and race.cost is Metric.WALL:
        return f"{whole}: wall time of slices has no queues; the meter measures"
    return f"{sliced}. If a pilot shows that it waits, or needs several CPUs: alternating"
