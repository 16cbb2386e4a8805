"""Results of studies that were never raced: their truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import report_data as data
from ensign.experiment.record import Record
from ensign.meter.records import TrialPlace, trials
from ensign.model.results import MachineFacts
from ensign.model.study import Study
from ensign.model.trials import Trial
from races import execution

START = {"type": "start", "schema": 1, "freezer": "cgroup", "mode": "interleaved"}
VARIANTS = ("gcc-O2", "gcc-O3", "twin")


def a_study(workloads: str = "ab", **race: object) -> Study:
    return Study.model_validate(
        {
            "name": "s",
            "layouts": "natural",
            "source": {"kind": "path", "path": "x"},
            "build": {"commands": [["make"]], "artifact": "program"},
            "axes": {"compiler": ["gcc-12"], "optimization": ["-O2", "-O3"]},
            "baseline": {"compiler": "gcc-12", "optimization": "-O2"},
            "race": race,
            "workloads": [{"name": name, "command": ["{artifact}", name]} for name in workloads],
        }
    )


def a_record(**changes: object) -> Record:
    fields: dict[str, object] = {
        "key": "k", "raced": VARIANTS[:2], "rounds_planned": 8,
        "builds": (data.build("gcc-O2"), data.build("gcc-O3")),
        "machine": MachineFacts((("CPU", "Xeon"), ("kernel", "6.1"), ("load average", "0.10"))),
        "findings": (), "commands": (("a", "program a"), ("b", "program b")), "toolchains": (),
        "source": (), "version": "0.1.0", "made_at": "then", "complete": True,
    }  # fmt: skip
    return Record(**{**fields, **changes})  # type: ignore[arg-type]


def swept(seed: int, ratios: tuple[float, ...], workloads: str = "ab", sd: float = 0.002):  # type: ignore[no-untyped-def]  # noqa: ANN201
    """Eight rounds; the cost ratio of gcc-O3 for each workload."""
    rng = np.random.default_rng(seed)
    done: list[Trial] = []
    for workload, ratio in zip(workloads, ratios, strict=True):
        for round_index in range(8):
            true = dict(zip(VARIANTS, (1, ratio, 1), strict=True))
            costs = {
                variant: int(1e9 * r * np.exp(rng.normal(0, sd))) for variant, r in true.items()
            }
            at = [float(seed * 1000 + len(done))]
            one = trials(
                [START, *execution(0, costs)], TrialPlace(workload, round_index, 1, 5_000_000)
            )
            done += [replace(trial, started_unix_s=at[0]) for trial in one]
    return tuple(done)
