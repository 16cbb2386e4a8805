"""Is any place among the variants favored? Seven copies of one Redis race each other.

All variants are the same file, so every true ratio is 1. A copy's number is its place in the
request (the twin of a study is the last one); which copy gets the first slice is drawn anew for
each trial.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ensign.experiment.loop import trial_seed
from ensign.experiment.machine import cpus_of_study
from ensign.experiment.ports import Ports
from ensign.experiment.study.opened import open_study
from ensign.experiment.study.variants import VariantSet, race_request
from ensign.meter.racing import race
from ensign.meter.requests import VariantSpec
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.trials import TWIN, Metric, Trial
from studied_programs import built_programs

STUDY = Path(__file__).parents[1] / "studies" / "redis" / "quick.toml"
PROGRAM = "gcc-12-O2"
COPIES = 7
TARGET_NS = 60_000_000

Floats = NDArray[np.float64]


def measure(rounds: int) -> list[dict[str, object]]:
    """Log cost by place, over the mean of all copies, in percent, with its standard error.

    All copies run all workloads of the quick study, `rounds` times; a round is one observation.
    """
    programs, tools = built_programs(STUDY, (PROGRAM,))
    study = open_study(STUDY).study
    cpus, _ = cpus_of_study(study.cpus)
    copies = tuple((f"copy-{n}", programs[PROGRAM]) for n in range(COPIES - 1))
    variants = VariantSet(copies, tools, cpus)
    sizes = {each.name: _size(study, variants, each) for each in study.workloads}
    by_number, by_start = [], []
    for round_index in range(rounds):
        trials = [
            _trial(study, variants, each, sizes[each.name], round_index) for each in study.workloads
        ]
        costs = np.array([_costs(trial) for trial in trials])
        order = np.array([_first_slices(trial) for trial in trials])
        by_number.append(costs.mean(axis=0))
        by_start.append(np.take_along_axis(costs, order, axis=1).mean(axis=0))
        sys.stdout.write(f"twins: round {round_index + 1} of {rounds}\n")
        sys.stdout.flush()
    return [
        *_effects("place in the request", np.array(by_number)),
        *_effects("order of first slices", np.array(by_start)),
    ]


def _size(study: Study, variants: VariantSet, workload: Workload) -> int:
    number = 50 * workload.rounding
    trial = _trial(study, variants.only_baseline(), workload, number, 0)
    per_request = trial.variants[0].wall_ns / number
    return max(1, round(TARGET_NS / per_request / workload.rounding)) * workload.rounding


def _trial(
    study: Study, variants: VariantSet, workload: Workload, requests: int, round_index: int
) -> Trial:
    seed = trial_seed(study.race.seed, round_index, workload.name)
    request = race_request(study, variants, workload, requests, seed=seed)
    request = replace(request, variants=tuple(_named(request.variants)))
    with closing(race(Ports().meter, request, workload=workload.name)) as trials:
        return next(trials)


def _named(variants: tuple[VariantSpec, ...]) -> Iterator[VariantSpec]:
    last = len(variants) - 1
    yield from (
        replace(variant, name=f"copy-{last}") if variant.name == TWIN else variant
        for variant in variants
    )


def _costs(trial: Trial) -> Floats:
    copies = [trial.variant(f"copy-{number}") for number in range(COPIES)]
    logs = np.array([math.log(copy.cost(Metric.CPU)) for copy in copies])
    return np.asarray(logs - logs.mean())


def _first_slices(trial: Trial) -> list[int]:
    names = list(dict.fromkeys(each.variant for each in trial.slices))
    return [int(name.removeprefix("copy-")) for name in names]


def _effects(by: str, rows: Floats) -> Iterator[dict[str, object]]:
    error = stats.sem(rows, axis=0)
    for place, (mean, sem) in enumerate(zip(rows.mean(axis=0), error, strict=True)):
        yield {
            "by": by,
            "place": place + 1,
            "percent": round(100 * mean, 4),
            "error": round(100 * sem, 4),
        }
