"""The number of relinks of a study: what its rounds can use, by a pilot of its layouts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ensign.builders.build_results import BuildResult
from ensign.experiment.groups import variants_together
from ensign.experiment.study.budget import Demand, fitted
from ensign.experiment.study.layouts import beside_natural, over_natural
from ensign.experiment.study.pilots import Pilots, PlanContext, one_trial
from ensign.experiment.study.variants import VariantSet
from ensign.model.errors import CommandFailed
from ensign.model.study import Study
from ensign.model.study_axes import FIRST_RELINKS, MOST_RELINKS
from ensign.model.trials import Trial
from ensign.model.units import parse_duration_ns
from ensign.stats.layouts import blocked_split, relinks_worth
from ensign.stats.suite import round_geomeans
from ensign.store.folder import StudyFolder

# Relinks of the baseline that the pilot races, and how often; in so much of the racing time.
_PILOTED, _EXECUTIONS, _PILOTS_SHARE = 6, (3, 10), 0.1


@dataclass(frozen=True, slots=True)
class RelinkCount:
    """Number of relinks that each variant is to have, and the time to find out (ns)."""

    relinks: int
    spent_ns: int = 0


def stored_count(folder: StudyFolder, key: str) -> int | None:
    """Count chosen when the programs of that key were to race; None where nothing was."""
    stored = folder.read_json(_name(key))
    count = None if stored is None else stored.get("relinks")
    return count if isinstance(count, int) else None


def chosen_count(
    context: PlanContext,
    study: Study,
    variants: VariantSet,
    results: Sequence[BuildResult],
    found: Pilots,
) -> RelinkCount:
    """As many relinks as the rounds are worth, within what their builds may take.

    Those that there are suffice where the study says how many, or rounds are few.
    """
    there = RelinkCount(variants.rotation)
    if study.layouts.count is not None or variants.rotation < FIRST_RELINKS:
        return there
    compared = len(variants.artifacts) - 1
    pilots = found.by_workload
    demand = Demand(study, pilots, compared, variants_together(compared, study.race.group_size))
    fit = fitted(demand, found.spent_ns)
    if fit.rounds <= there.relinks:
        return there
    most = min(fit.rounds, _affordable(study, results), MOST_RELINKS)
    if most <= there.relinks:
        return there
    lengths = {
        name: (requests or 1) * pilots[name].ns_per_request
        for name, requests in fit.requests.items()
    }
    allowed_ns = _PILOTS_SHARE * parse_duration_ns(study.race.budget)
    executions = min(int(allowed_ns / demand.round_ns(lengths, _PILOTED)), _EXECUTIONS[1])
    share, spent_ns = 1.0, 0
    if executions >= _EXECUTIONS[0]:
        began_ns = context.clock.monotonic_ns()
        pilot = _LayoutPilot(context, study, found, fit.requests, executions)
        share = pilot.layout_part(variants)
        spent_ns = context.clock.monotonic_ns() - began_ns
    worth = relinks_worth(share, fit.rounds, study.race.level)
    return RelinkCount(max(there.relinks, min(worth, most)), spent_ns)


def store_count(folder: StudyFolder, key: str, relinks: int) -> None:
    """Keeps it, so that the same command goes on with the same programs."""
    folder.write_json(_name(key), {"relinks": relinks})


def _name(key: str) -> str:
    return f"relinks/{key}"


def _affordable(study: Study, results: Sequence[BuildResult]) -> int:
    """Number of relinks that builds, done again, make in as long as the race takes."""
    allowed_s = parse_duration_ns(study.race.budget) / 1e9 * len(os.sched_getaffinity(0))
    relinked = [result for result in results if result.layouts]
    one_s = sum(result.relink_s for result in relinked) / FIRST_RELINKS
    build_s = sum(result.facts.build_s for result in relinked)
    return int((allowed_s - build_s) / one_s) if one_s > 0 else MOST_RELINKS


@dataclass(frozen=True, slots=True)
class _LayoutPilot:
    """Executions of the baseline's relinks, as the rounds will be."""

    context: PlanContext
    study: Study
    found: Pilots
    requests: Mapping[str, int | None]
    executions: int

    def layout_part(self, variants: VariantSet) -> float:
        """The layouts' part of the variance of a round; 1 where it is not known."""
        paths = variants.relinks[variants.artifacts[0][0]][:_PILOTED]
        raced = beside_natural(replace(variants, relinks={}, rotation=0, twin=None), paths)
        try:
            trials = tuple(self._trials(raced))
        except CommandFailed:
            return 1.0
        spread = over_natural(self.study, trials, len(paths), self.found.decided.metric)
        if spread is None:
            return 1.0
        d = round_geomeans(spread[1])
        split = blocked_split(d, self.study.race.level)
        if split is None or not split.layout_sd:
            return 0.0
        return split.layout_sd**2 / (split.layout_sd**2 + split.execution_sd**2)

    def _trials(self, raced: VariantSet) -> Iterator[Trial]:
        decided = self.found.decided
        for round_index in range(self.executions):
            for workload in self.study.workloads:
                name = workload.name
                self.context.on_pilot(f"{name}, relinks")
                cpus = raced.cpus.widened() if name in decided.wide else raced.cpus
                placed = replace(raced, cpus=cpus, alternating=name in decided.alternating)
                run = (self.context.meter, self.study, placed, workload, self.requests[name])
                yield one_trial(*run, round_index=round_index)
