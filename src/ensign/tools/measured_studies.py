"""Studies that were measured apart: what they have in common, and whether they may be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from ensign.experiment.judge import experiment_costs, suite_rule
from ensign.experiment.record import Record
from ensign.experiment.study.result import experiment_of
from ensign.experiment.study.stored import stored_rounds
from ensign.model.errors import InputError
from ensign.model.study import Study
from ensign.model.trials import Trial
from ensign.stats.rounds import RoundCosts
from ensign.tools.bundles import opened


@dataclass(frozen=True, slots=True)
class MeasuredStudy:
    """A study with what was measured of it, and what the user calls that."""

    label: str
    study: Study
    record: Record
    trials: tuple[Trial, ...]

    def costs(self, workloads: Sequence[str]) -> RoundCosts:
        """The costs of these workloads."""
        by_name = {workload.name: workload for workload in self.study.workloads}
        chosen = self.study.model_copy(update={"workloads": [by_name[name] for name in workloads]})
        return experiment_costs(experiment_of(chosen), self.record, self.trials)


def measured(path: Path) -> MeasuredStudy:
    """What is in a study file's folder, or in a bundle. InputError where nothing is measured."""
    with opened(path) as evidence:
        return MeasuredStudy(str(path), *stored_rounds(evidence.file))


def common_workloads(studies: Sequence[MeasuredStudy]) -> list[str]:
    """Workloads that all have, in the order of the first."""
    known = [
        {workload.name for workload in measured_study.study.workloads} for measured_study in studies
    ]
    names = [workload.name for workload in studies[0].study.workloads]
    return [name for name in names if all(name in those for those in known)]


def common_variants(studies: Sequence[MeasuredStudy]) -> list[str]:
    """Variants but the baseline that were raced in all."""
    names = studies[0].record.raced[1:]
    return [
        name
        for name in names
        if all(name in measured_study.record.raced for measured_study in studies)
    ]


def require_comparable(studies: Sequence[MeasuredStudy], workloads: Sequence[str]) -> None:
    """InputError where two are one measurement, or cannot be compared on these workloads."""
    for a, b in combinations(studies, 2):
        both = f"{a.label} and {b.label}"
        started = {trial.started_unix_s for trial in a.trials}
        if started.intersection(trial.started_unix_s for trial in b.trials):
            raise InputError(f"{both} have trials in common: they are the same measurement")
        if a.study.race.cost is not b.study.race.cost:
            metrics = f"{a.study.race.cost.value} and {b.study.race.cost.value}"
            raise InputError(f"{both} compare by different metrics ({metrics})")
        if a.record.raced[0] != b.record.raced[0]:
            baselines = f"{a.record.raced[0]} and {b.record.raced[0]}"
            raise InputError(f"{both} have different baselines ({baselines})")
    if not workloads:
        labels = " and ".join(measured_study.label for measured_study in studies)
        raise InputError(f"{labels} have no workload in common")


def strictest(studies: Sequence[MeasuredStudy]) -> tuple[float, float | None]:
    """The strictest level and margin; no margin where one study has none."""
    rules = [suite_rule(experiment_of(measured_study.study)) for measured_study in studies]
    margins = [rule.margin for rule in rules if rule.margin is not None]
    margin = min(margins) if len(margins) == len(rules) else None
    return max(rule.level for rule in rules), margin
