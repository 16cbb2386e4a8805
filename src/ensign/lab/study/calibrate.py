"""How many requests one execution of each workload takes, so that the sweeps fit the budget."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from ensign.host.meter import Meter
from ensign.lab.study.arms import Field, group_count, race_request
from ensign.lab.study.groups import merged
from ensign.measure.perform import race
from ensign.model.errors import InternalError
from ensign.model.requests import RaceRequest
from ensign.model.study import Study, Workload
from ensign.model.trials import TWIN, Trial
from ensign.model.units import parse_duration_ns

# A pilot shorter than this is mostly start-up of the load generator.
_LONG_ENOUGH_NS = 60_000_000
_GROWTH = 8
# A drive has no start-up of its own, so it may begin with few of what may be slow commands.
_FIRST_OF_LOAD, _FIRST_OF_DRIVE = 5000, 200
# Sweeps are promised before the first one: leave room for a machine that gets slower.
_SHARE_OF_BUDGET = 0.92
_NO_VARIANT = 2  # the baseline and its twin
_SHORTEST_NS = 40_000_000
LONGER_EXECUTIONS = 6
BAND_EXECUTIONS = 3
# Executions of baseline and twin alone from which a study's precision is expected, and the most of
# the racing that they may take where nobody asks for a precision.
_EXPECTING_EXECUTIONS = 3
_MOST_FOR_EXPECTING = 0.1


@dataclass(frozen=True, slots=True)
class Pilot:
    """What the baseline needs: running time per request, and start-up per arm (both ns); memory.

    `most_arms` fit into memory together; None: all of them.
    """

    requests: int | None
    running_ns: int
    startup_ns: int
    peak_memory_bytes: int = 0
    most_arms: int | None = None

    @property
    def ns_per_request(self) -> float:
        """Running time of one request."""
        return self.running_ns / (self.requests or 1)


def pilot(
    meter: Meter, study: Study, field: Field, workload: Workload
) -> tuple[Pilot, tuple[Trial, ...]]:
    """Races the baseline against its twin, with more requests until the run is long enough."""
    tried: list[Trial] = []
    requests = workload.fixed_requests
    if requests is None and workload.sends_requests:
        first = _FIRST_OF_LOAD if workload.drive is None else _FIRST_OF_DRIVE
        requests = workload.rounding * max(1, first // workload.rounding)
    while True:
        trial = one_trial(meter, study, field.only_baseline(), workload, requests, sweep=0)
        tried.append(trial)
        measured = _pilot_of(trial, requests)
        fixed = workload.fixed_requests is not None or workload.command is not None
        if fixed or measured.running_ns >= _LONG_ENOUGH_NS or requests is None:
            return measured, tuple(tried)
        requests *= _GROWTH


def one_trial(
    meter: Meter,
    study: Study,
    field: Field,
    workload: Workload,
    requests: int | None,
    *,
    sweep: int,
) -> Trial:
    """One execution of one workload, as the trial of that sweep; in groups where the field is."""
    field = field.in_sweep(sweep)
    seed = trial_seed(study.race.seed, sweep, workload.name)
    groups = field.in_groups(seed)
    requested = (race_request(study, each, workload, requests, seed=seed) for each in groups)
    trials = [_raced(meter, request, workload, sweep) for request in requested]
    return merged(trials, field.artefacts[0][0])


def _raced(meter: Meter, request: RaceRequest, workload: Workload, sweep: int) -> Trial:
    names = {TWIN: f"{request.arms[0].name} (twin)"}
    with closing(
        race(meter, request, workload=workload.name, first_sweep=sweep, names=names)
    ) as trials:
        for trial in trials:
            return trial
    raise InternalError(f"{workload.name}: the meter gave no execution")


def trial_seed(study_seed: int, sweep: int, workload: str) -> int:
    """Each trial has its own orders, the same on every resumption.

    An arm's place in the order moves its cost: of seven equal arms the first one took 0.24 ± 0.05 %
    more than their mean (docs/calibration.md). With one order for all workloads of a sweep that
    would not average out over the workloads: the sweep's geometric mean would have all of it.
    """
    trial = random.Random(f"{study_seed} {sweep} {workload}")  # noqa: S311  # not for secrets
    return trial.getrandbits(32)


def requests_per_workload(
    study: Study, pilots: Mapping[str, Pilot], arms: int, spent_ns: int
) -> dict[str, int | None]:
    """Requests per arm and execution. Pure. `arms` counts the twin; `spent_ns` of the budget.

    Each execution gets the same running time: what is left of the budget after every start-up,
    divided by all runs of all arms; at least 40 ms.
    """
    budget_ns = parse_duration_ns(study.race.budget) * _SHARE_OF_BUDGET - spent_ns
    runs = {name: arm_runs(study, name, arms, each.most_arms) for name, each in pilots.items()}
    startups_ns = sum(pilots[name].startup_ns * n for name, n in runs.items())
    target_ns = (budget_ns - startups_ns) / sum(runs.values())
    target_ns = max(target_ns, _SHORTEST_NS)
    return {
        workload.name: _requests(workload, pilots[workload.name], target_ns)
        for workload in study.workloads
    }


def expected_racing_ns(
    study: Study, pilots: Mapping[str, Pilot], requests: Mapping[str, int | None], arms: int
) -> int:
    """Racing time of all sweeps, of the check at longer slices, and of the relinks. Pure."""
    return round(
        sum(
            arm_runs(study, name, arms, measured.most_arms)
            * (measured.startup_ns + measured.ns_per_request * (requests[name] or 1))
            for name, measured in pilots.items()
        )
    )


def expecting_executions(study: Study, arms: int) -> int:
    """Executions of baseline and twin before the sweeps, to know what precision to expect. Pure."""
    share = _EXPECTING_EXECUTIONS * _NO_VARIANT / (study.race.sweeps * arms)
    wanted = study.race.precision is not None or share <= _MOST_FOR_EXPECTING
    return _EXPECTING_EXECUTIONS if wanted else 0


def arm_runs(study: Study, workload: str, arms: int, most_arms: int | None = None) -> int:
    """Runs of single arms of a workload. Pure.

    Executions times arms, those before them, the relinks' own race, and a confirmation of all
    finalists there may be.
    """

    def together(racing: int) -> int:
        """Runs of one execution of so many arms, with baseline and twin in each group."""
        groups = 1 if most_arms is None else group_count(racing - _NO_VARIANT, most_arms)
        return racing + (groups - 1) * _NO_VARIANT

    runs = executions_of(study, workload) * together(arms)
    runs += expecting_executions(study, arms) * _NO_VARIANT
    if band_arms(study):
        runs += BAND_EXECUTIONS * together(band_arms(study))
    confirm = study.race.confirm
    if confirm is not None and arms > _NO_VARIANT:
        finalists = min(confirm.finalists, arms - _NO_VARIANT)
        runs += confirm.sweeps_for(finalists) * together(finalists + _NO_VARIANT)
    return runs


def band_arms(study: Study) -> int:
    """Arms of the race of the baseline's relinks; 0 where there is none. Pure."""
    layouts = study.layouts
    if layouts is None or layouts.variants != "baseline":
        return 0
    return layouts.count + _NO_VARIANT


def executions_of(study: Study, workload: str) -> int:
    """Executions of a workload: one per sweep, and those at longer slices. Pure."""
    extra = LONGER_EXECUTIONS if workload in study.race.slice_check else 0
    return study.race.sweeps + extra


def _requests(workload: Workload, measured: Pilot, target_ns: float) -> int | None:
    if workload.fixed_requests is not None or measured.requests is None:
        return workload.fixed_requests
    wanted = target_ns / measured.ns_per_request
    return max(1, round(wanted / workload.rounding)) * workload.rounding


def _pilot_of(trial: Trial, requests: int | None) -> Pilot:
    running_ns = sum(arm.wall_ns for arm in trial.arms)
    return Pilot(
        requests=requests,
        # The quicker of baseline and twin: what disturbs a pilot only ever makes it slower.
        running_ns=min(arm.wall_ns for arm in trial.arms),
        startup_ns=max(trial.wall_ns - running_ns, 0) // len(trial.arms),
        peak_memory_bytes=max(arm.peak_memory_bytes for arm in trial.arms),
    )
