"""Single executions of a study's workloads, and pilots: what one of them takes."""

from __future__ import annotations

from contextlib import closing

from ensign.experiment.loop import trial_seed
from ensign.experiment.study.budget import WorkloadPilot
from ensign.experiment.study.groups import merged
from ensign.experiment.study.variants import VariantSet, race_request
from ensign.meter.client import Meter
from ensign.meter.racing import race
from ensign.meter.requests import RaceRequest
from ensign.model.errors import InternalError
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.trials import TWIN, Trial

# A pilot shorter than this is mostly start-up of the load generator.
_LONG_ENOUGH_NS = 60_000_000
_GROWTH = 8
# A drive has no start-up of its own, so it may begin with few of what may be slow commands.
_FIRST_OF_LOAD, _FIRST_OF_DRIVE = 1000, 200


def pilot(
    meter: Meter, study: Study, variants: VariantSet, workload: Workload
) -> tuple[WorkloadPilot, tuple[Trial, ...]]:
    """Races the baseline against its twin, with more requests until the run is long enough."""
    tried: list[Trial] = []
    requests = first_requests(workload)
    while True:
        trial = one_trial(meter, study, variants.only_baseline(), workload, requests, round_index=0)
        tried.append(trial)
        measured = _pilot_of(trial, requests)
        fixed = workload.fixed_requests is not None or workload.command is not None
        if fixed or measured.running_ns >= _LONG_ENOUGH_NS or requests is None:
            return measured, tuple(tried)
        requests *= _GROWTH


def first_requests(workload: Workload) -> int | None:
    """Requests of an execution of which nothing is known yet. Pure."""
    if workload.fixed_requests is not None or not workload.sends_requests:
        return workload.fixed_requests
    first = _FIRST_OF_LOAD if workload.drive is None else _FIRST_OF_DRIVE
    return workload.rounding * max(1, first // workload.rounding)


def one_trial(
    meter: Meter,
    study: Study,
    variants: VariantSet,
    workload: Workload,
    requests: int | None,
    *,
    round_index: int,
) -> Trial:
    """One execution of one workload, as the trial of that round; in groups where there are any."""
    variants = variants.in_round(round_index)
    seed = trial_seed(study.race.seed, round_index, workload.name)
    groups = variants.in_groups(seed)
    requested = (race_request(study, each, workload, requests, seed=seed) for each in groups)
    trials = [_raced(meter, request, workload, round_index) for request in requested]
    return variants.check(merged(trials, variants.artifacts[0][0]), variants)


def _raced(meter: Meter, request: RaceRequest, workload: Workload, round_index: int) -> Trial:
    names = {TWIN: f"{request.variants[0].name} (twin)"}
    with closing(
        race(meter, request, workload=workload.name, first_round=round_index, names=names)
    ) as trials:
        for trial in trials:
            return trial
    raise InternalError(f"{workload.name}: the meter returned no execution")


def _pilot_of(trial: Trial, requests: int | None) -> WorkloadPilot:
    running_ns = sum(variant.wall_ns for variant in trial.variants)
    return WorkloadPilot(
        requests=requests,
        # The quicker of baseline and twin: what disturbs a pilot only ever makes it slower.
        running_ns=min(variant.wall_ns for variant in trial.variants),
        startup_ns=max(trial.wall_ns - running_ns, 0) // len(trial.variants),
        peak_memory_bytes=max(variant.peak_memory_bytes for variant in trial.variants),
    )
