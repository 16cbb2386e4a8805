"""From trials to what each variant used on each workload. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from statistics import fmean, stdev

from ensign.experiment.failures import failing_runs
from ensign.model.results import Spread, VariantFacts
from ensign.model.traced_execution import MappedFile
from ensign.model.trials import TWIN, Trial
from ensign.stats.rounds import RoundCosts
from ensign.stats.trials import mean_cost_ns


@dataclass(frozen=True, slots=True)
class SeenRunning:
    """What one traced execution of a variant mapped for execution, and what it did not see."""

    mapped: tuple[MappedFile, ...] = ()
    not_judged: str = ""


@dataclass(frozen=True, slots=True)
class Measuring:
    """What is asked of the trials: variants (baseline first) and workloads of these costs."""

    costs: RoundCosts
    seen: Mapping[str, SeenRunning] = field(default_factory=dict)

    def facts(self, trials: Sequence[Trial]) -> tuple[VariantFacts, ...]:
        """One for each variant and workload of the whole rounds."""
        return tuple(
            self._of([each for each in trials if each.workload == workload], variant, workload)
            for workload in self.costs.workloads
            for variant in self.costs.variants
        )

    def _of(self, trials: Sequence[Trial], variant: str, workload: str) -> VariantFacts:
        totals = [trial.variant(variant) for trial in trials]
        baseline = self.costs.variants[0]
        seen = self.seen.get(baseline if variant == TWIN else variant, SeenRunning())
        scores = [one.score for one in totals if one.score is not None]
        return VariantFacts(
            variant=variant,
            workload=workload,
            user_s=fmean(one.user_ns for one in totals) / 1e9,
            system_s=fmean(one.system_ns for one in totals) / 1e9,
            wall=spread_of([one.wall_ns / 1e9 for one in totals]),
            peak_memory_bytes=max(one.peak_memory_bytes for one in totals),
            cost_ns=nan if scores else mean_cost_ns(trials, variant, self.costs.metric),
            operations=fmean(one.operations for one in totals),
            log_ratios=() if variant == baseline else self._log_ratios(variant, workload),
            exits=tuple(None if one.signal else one.exit for one in totals),
            failing_runs=failing_runs(trials, variant),
            ran=seen.mapped,
            not_judged=seen.not_judged,
            score=fmean(scores) if scores else None,
            unit=totals[0].unit,
        )

    def _log_ratios(self, variant: str, workload: str) -> tuple[float, ...]:
        d = self.costs.log_ratios(variant, self.costs.variants[0])
        return tuple(d[self.costs.workloads.index(workload)].tolist())


def spread_of(values: Sequence[float]) -> Spread:
    """Of one value or more."""
    sd = stdev(values) if len(values) > 1 else 0.0
    return Spread(fmean(values), sd, min(values), max(values))
