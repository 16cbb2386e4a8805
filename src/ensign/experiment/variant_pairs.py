"""Every variant against the baseline, overall and by workload, with what both metrics say. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ensign.experiment.record import Record
from ensign.model.comparisons import Comparison, Direction, OtherMetric, TimeShares
from ensign.model.experiment import Experiment
from ensign.model.results import SuiteComparison, WorkloadComparison
from ensign.model.trials import TWIN, Trial
from ensign.stats.both_metrics import beside, time_shares
from ensign.stats.rounds import RoundCosts
from ensign.stats.stopping import few_executions_decide
from ensign.stats.suite import (
    SuiteRule,
    compare_suite,
    compare_workloads,
    round_geomeans,
    workload_comparison,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class VariantPairs:
    """Every variant against the baseline, by the metric compared and by the other one."""

    experiment: Experiment
    record: Record
    rule: SuiteRule
    costs: RoundCosts
    others: RoundCosts
    trials: Sequence[Trial]

    @property
    def baseline(self) -> str:
        """The variant that all others are compared with."""
        return self.costs.variants[0]

    def of_rounds(self, variant: str) -> list[float]:
        """The log ratio of each round's geometric mean."""
        d = self.costs.log_ratios(variant, self.baseline)
        return [float(each) for each in round_geomeans(d)]

    def suite(self) -> tuple[SuiteComparison, ...]:
        """Over all workloads."""
        found = []
        for variant in self.costs.variants[1:]:
            compared = compare_suite(self.costs, variant, self.baseline, self.rule)
            judged = self._claimed(variant, compared.comparison, self.of_rounds(variant))
            other = None
            if self._has_other(variant):
                its = compare_suite(self.others, variant, self.baseline, self.rule).comparison
                e = round_geomeans(self._differences(variant)).tolist()
                other = self._beside(compared.comparison, its, e, self.trials)
            found.append(replace(compared, comparison=replace(judged, beside=other)))
        return tuple(found)

    def workloads(self) -> tuple[WorkloadComparison, ...]:
        """Workload by workload."""
        of_workload: dict[str, list[Trial]] = {}
        for trial in self.trials:
            of_workload.setdefault(trial.workload, []).append(trial)
        found = []
        for variant in self.costs.variants[1:]:
            d = self.costs.log_ratios(variant, self.baseline)
            rows = compare_workloads(self.costs, variant, self.baseline, self.rule)
            others = self._other_rows(variant)
            for w, (workload, chosen) in enumerate(rows):
                mine, other = of_workload[workload], None
                if others:
                    e = self._differences(variant)[w].tolist()
                    other = self._beside(chosen, others[w], e, mine)
                judged = self._claimed(variant, chosen, d[w].tolist())
                judged = replace(judged, beside=other)
                found.append(workload_comparison(mine, workload, judged))
        return tuple(found)

    def _other_rows(self, variant: str) -> list[Comparison]:
        if not self._has_other(variant):
            return []
        rows = compare_workloads(self.others, variant, self.baseline, self.rule)
        return [row for _, row in rows]

    def _has_other(self, variant: str) -> bool:
        return bool(np.isfinite(self.others.log_ratios(variant, self.baseline)).all())

    def _differences(self, variant: str) -> Floats:
        """e[workload, round]: what the two costs say of a pair, one minus the other."""
        mine = self.costs.log_ratios(variant, self.baseline)
        return np.asarray(mine - self.others.log_ratios(variant, self.baseline))

    def _beside(
        self, chosen: Comparison, other: Comparison, e: Sequence[float], trials: Sequence[Trial]
    ) -> OtherMetric:
        shares: tuple[TimeShares | None, TimeShares | None] = (
            time_shares(trials, self.baseline),
            time_shares(trials, chosen.variant),
        )
        return beside(chosen, other, e, self.rule.pair_rule, shares)

    def _claimed(self, variant: str, found: Comparison, log_ratios: Sequence[float]) -> Comparison:
        """The comparison, of which nothing is claimed where something speaks against that."""
        if variant == TWIN:
            return found
        if self.record.doubt:
            return found.without_claim(self.record.doubt)
        claims = found.direction is not Direction.UNCLEAR and self.experiment.by_ranks
        if claims and few_executions_decide(log_ratios, self.rule.pair_rule):
            return found.without_claim(
                f"by its interval it is {found.direction.value}, by the ranks of "
                f"{found.executions} executions that may be chance, so a few of them decide; "
                "a longer --budget would tell"
            )
        return found
