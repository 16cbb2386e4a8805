"""What trials say about each command against the baseline. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ensign.lab.compare.failures import ignored_findings
from ensign.lab.compare.options import CommandVariant
from ensign.model.comparisons import Comparison, Direction, OtherMetric
from ensign.model.errors import InputError
from ensign.model.findings import Finding
from ensign.model.results import Stopped
from ensign.model.trials import TWIN, Metric, Trial, failed_variants
from ensign.stats.both_metrics import beside, time_shares
from ensign.stats.disturbed import taken_findings
from ensign.stats.pair import PairNames, PairRule, Rule, compare
from ensign.stats.readings import reading_findings
from ensign.stats.stopping import few_executions_decide, pair_findings, race_may_stop
from ensign.stats.trials import log_ratios
from ensign.stats.twin import twin_findings


@dataclass(frozen=True, slots=True)
class Judge:
    """How this race is judged, fixed before it: commands (baseline first), metric and rule.

    `doubt` is why nothing is claimed, whatever the race gives; empty where there is no such reason.
    """

    commands: tuple[CommandVariant, ...]
    metric: Metric
    rule: PairRule
    doubt: str = ""

    def without(self, variants: Collection[str]) -> Judge:
        """The judge of a race from which these commands are out."""
        return replace(self, commands=tuple(e for e in self.commands if e.variant not in variants))

    def at_the_end(self, executions: int) -> Judge:
        """The judge of a race that ended: one t interval if it ended before its first look.

        Nothing was looked at then, so nothing has to be paid for looking.
        """
        if executions >= self.rule.first_look:
            return self
        return replace(self, rule=replace(self.rule, rule=Rule.T))

    @property
    def baseline(self) -> CommandVariant:
        """The first command."""
        return self.commands[0]

    def so_far(self, trials: Sequence[Trial]) -> tuple[Comparison, ...]:
        """Every other command against the baseline, by the chosen metric alone."""
        return tuple(
            self._compare(trials, command.variant, command.name, self.metric)
            for command in self.without(failed_variants(trials)).commands[1:]
        )

    def comparisons(self, trials: Sequence[Trial]) -> tuple[Comparison, ...]:
        """Every other command against the baseline: the one judgement that all lines show."""
        left = self.without(failed_variants(trials)).commands[1:]
        return tuple(self._judged(trials, command.variant, command.name) for command in left)

    def twin(self, trials: Sequence[Trial]) -> Comparison:
        """The baseline's copy against the baseline."""
        return self._judged(trials, TWIN, f"{self.baseline.name} (twin)")

    def log_ratios(self, trials: Sequence[Trial], variant: str) -> tuple[float, ...]:
        """D of each execution: ln cost of the variant minus ln cost of the baseline."""
        return log_ratios(trials, variant, self.baseline.variant, self.metric)

    def may_end(self, trials: Sequence[Trial]) -> Stopped | None:
        """Why the race may end at this look, or None."""
        left = self.without(failed_variants(trials))
        pairs = [self.log_ratios(trials, command.variant) for command in left.commands[1:]]
        return race_may_stop(pairs, self.rule)

    def findings(self, trials: Sequence[Trial]) -> tuple[Finding, ...]:
        """Doubts about the pairs, about the twin, and those that the trials carry (once each)."""
        found: list[Finding] = []
        gone = failed_variants(trials)
        left = self.without(gone).commands
        trials = [trial.without(gone) for trial in trials]
        names = {command.variant: command.name for command in self.commands}
        names[TWIN] = f"{self.baseline.name} (twin)"
        for command in left[1:]:
            found += pair_findings(
                self.log_ratios(trials, command.variant), self.rule, command.name
            )
        found += ignored_findings(trials, left)
        found += twin_findings(self.twin(trials))
        found += reading_findings(trials)
        pair = self.log_ratios(trials, left[1].variant) if left[1:] else ()
        found += taken_findings(trials, pair)
        seen: dict[tuple[str, str], Finding] = {}
        for trial in trials:
            for finding in trial.findings:
                subject = names.get(finding.subject, finding.subject)
                seen.setdefault(
                    (finding.code, subject),
                    replace(finding, subject=subject),
                )
        return (*found, *seen.values())

    def _judged(self, trials: Sequence[Trial], variant: str, name: str) -> Comparison:
        chosen = self._compare(trials, variant, name, self.metric)
        claims = chosen.direction is not Direction.UNCLEAR
        if self.doubt and variant != TWIN:
            chosen = chosen.without_claim(self.doubt)
        elif (
            claims
            and variant != TWIN
            and few_executions_decide(self.log_ratios(trials, variant), self.rule)
        ):
            chosen = chosen.without_claim(
                f"by its interval it is {chosen.direction.value}, by the ranks of "
                f"{chosen.executions} executions that may be chance, so a few of them decide; "
                "a longer --budget tells"
            )
        return replace(chosen, beside=self._beside(trials, variant, chosen))

    def _beside(
        self, trials: Sequence[Trial], variant: str, chosen: Comparison
    ) -> OtherMetric | None:
        """The same by the other cost; None where a variant used none of it, or a score is compared.

        What says a score of itself mostly runs for a fixed time, and costs what that is.
        """
        if self.metric is Metric.SCORE:
            return None
        metric = Metric.WALL if self.metric is Metric.CPU else Metric.CPU
        try:
            other = self._compare(trials, variant, chosen.variant, metric)
        except InputError:
            return None
        pairs = zip(
            self.log_ratios(trials, variant),
            log_ratios(trials, variant, self.baseline.variant, metric),
            strict=True,
        )
        shares = (time_shares(trials, self.baseline.variant), time_shares(trials, variant))
        return beside(chosen, other, [mine - its for mine, its in pairs], self.rule, shares)

    def _compare(
        self, trials: Sequence[Trial], variant: str, name: str, metric: Metric
    ) -> Comparison:
        ratios = log_ratios(trials, variant, self.baseline.variant, metric)
        return compare(PairNames(name, self.baseline.name, metric), ratios, self.rule)
