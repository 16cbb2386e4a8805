"""What a race that goes on says so far, and whether it may end. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ensign.experiment.judge import suite_rule
from ensign.model.comparisons import Comparison
from ensign.model.experiment import Experiment
from ensign.model.results import Stopped
from ensign.model.trials import TWIN, Trial, failed_variants
from ensign.stats.named_scores import judged_tests
from ensign.stats.pair import PairRule, Rule
from ensign.stats.rounds import RoundCosts, round_costs
from ensign.stats.stopping import race_may_stop
from ensign.stats.suite import compare_suite, round_geomeans


@dataclass(frozen=True, slots=True)
class SoFar:
    """Who is compared (the baseline first), by which rule; `names` are those for people."""

    experiment: Experiment
    variants: tuple[str, ...]
    has_twin: bool = True
    names: Mapping[str, str] = field(default_factory=dict)

    def without(self, variants: Collection[str]) -> SoFar:
        """The same, of those that are left."""
        return replace(self, variants=tuple(e for e in self.variants if e not in variants))

    @property
    def rule(self) -> PairRule:
        """How each variant's geometric mean is judged."""
        return suite_rule(self.experiment).pair_rule

    @property
    def looks(self) -> bool:
        """Whether the race may end before its time."""
        return self.rule.rule is Rule.SEQUENTIAL

    def comparisons(self, trials: Sequence[Trial]) -> tuple[Comparison, ...]:
        """Every variant against the baseline, over all workloads, by the metric alone."""
        left = self.without(failed_variants(trials))
        costs, rule = left.costs(trials), suite_rule(self.experiment)
        found = (compare_suite(costs, each, left.variants[0], rule) for each in left.variants[1:])
        return tuple(
            replace(each.comparison, variant=self._name(each.comparison.variant)) for each in found
        )

    def may_end(self, trials: Sequence[Trial]) -> Stopped | None:
        """Why the race may end at this look, or None."""
        left = self.without(failed_variants(trials))
        costs = left.costs(trials)
        pairs = (costs.log_ratios(each, left.variants[0]) for each in left.variants[1:])
        return race_may_stop((round_geomeans(each).tolist() for each in pairs), self.rule)

    def costs(self, trials: Sequence[Trial]) -> RoundCosts:
        """Of whole rounds, without those that failed."""
        variants = (*self.variants, TWIN) if self.has_twin else self.variants
        gone = failed_variants(trials)
        tests = judged_tests(self.experiment.workloads, (trial.without(gone) for trial in trials))
        return round_costs(tests.trials, variants, tests.names, self.experiment.metric)

    def _name(self, variant: str) -> str:
        return self.names.get(variant, variant)
