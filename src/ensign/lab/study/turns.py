"""How many connections of a drive send in one slice, where all of them would outlast it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ensign.lab.study.fitting import WorkloadPilot
from ensign.model.finding_kinds.race import CONNECTIONS_BY_TURNS
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.trials import Mode
from ensign.model.units import parse_duration_ns

# A slice lasts for two rounds of requests then, also of a variant that is a quarter slower or a
# third faster: whether it sends once or twice would move what beginning a slice costs per request.
_ROUNDS_PER_SLICE = 1.5


def connections_at_once(study: Study, pilots: Mapping[str, WorkloadPilot]) -> dict[str, int]:
    """Connections that send in one slice of a workload; without those where it is all of them.

    A slice ends when the last reply is there. Where one pipeline of requests on each connection
    takes longer, slices would be as long as that: few, and far in time from the baseline's.
    """
    if study.race.turns is not Mode.DRIVEN or study.race.slice_connections == "all":
        return {}
    slice_ns = parse_duration_ns(study.race.slice)
    fitting = {
        workload.name: _fitting(workload, pilots[workload.name], slice_ns)
        for workload in study.workloads
    }
    return {name: number for name, number in fitting.items() if number is not None}


def turns_findings(at_once: Mapping[str, int]) -> tuple[Finding, ...]:
    """What to say of workloads whose connections send by turns."""
    if not at_once:
        return ()
    fewest, most = min(at_once.values()), max(at_once.values())
    range_ = str(fewest) if fewest == most else f"{fewest} to {most}"
    whose = "1 workload" if len(at_once) == 1 else f"{len(at_once)} workloads"
    text = (
        f"{whose}: {range_} connections send in one slice, by turns, because all "
        'at once would outlast it; race.slice_connections = "all" lets them'
    )
    return (CONNECTIONS_BY_TURNS.found(text),)


def _fitting(workload: Workload, pilot: WorkloadPilot, slice_ns: int) -> int | None:
    drive = workload.drive
    if drive is None or drive.rate_per_s is not None:
        return None
    round_ns = pilot.ns_per_request * drive.pipeline
    number = max(1, round(slice_ns / (_ROUNDS_PER_SLICE * round_ns)))
    return number if number < drive.connections else None
