"""What trials say about each candidate against the baseline. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from ensign.lab.compare.failures import ignored_findings
from ensign.lab.compare.options import Candidate
from ensign.model.comparisons import Beside, Comparison, Direction
from ensign.model.errors import InputError
from ensign.model.findings import Finding
from ensign.model.trials import TWIN, Metric, Trial, failed_arms
from ensign.stats.both_metrics import beside, time_shares
from ensign.stats.disturbed import taken_findings
from ensign.stats.pair import PairNames, PairRule, Rule, compare
from ensign.stats.readings import reading_findings
from ensign.stats.stopping import few_executions_decide, pair_findings, race_may_stop
from ensign.stats.trials import log_ratios
from ensign.stats.twin import twin_findings


@dataclass(frozen=True, slots=True)
class Judge:
    """How this race is judged, fixed before it: candidates (baseline first), metric and rule.

    `doubt` is why nothing is claimed, whatever the race gives; empty where there is no such reason.
    """

    entries: tuple[Candidate, ...]
    metric: Metric
    rule: PairRule
    doubt: str = ""

    def without(self, arms: Collection[str]) -> Judge:
        """The judge of a race from which these commands are out."""
        return replace(self, entries=tuple(e for e in self.entries if e.arm not in arms))

    def at_the_end(self, executions: int) -> Judge:
        """The judge of a race that ended: one t interval if it ended before its first look.

        Nothing was looked at then, so nothing has to be paid for looking.
        """
        if executions >= self.rule.first_look:
            return self
        return replace(self, rule=replace(self.rule, rule=Rule.T))

    @property
    def baseline(self) -> Candidate:
        """The first command."""
        return self.entries[0]

    def so_far(self, trials: Sequence[Trial]) -> tuple[Comparison, ...]:
        """Every other command against the baseline, by the chosen metric alone."""
        return tuple(
            self._compare(trials, entry.arm, entry.name, self.metric)
            for entry in self.without(failed_arms(trials)).entries[1:]
        )

    def comparisons(self, trials: Sequence[Trial]) -> tuple[Comparison, ...]:
        """Every other command against the baseline: the one judgement that all lines show."""
        left = self.without(failed_arms(trials)).entries[1:]
        return tuple(self._judged(trials, entry.arm, entry.name) for entry in left)

    def twin(self, trials: Sequence[Trial]) -> Comparison:
        """The baseline's copy against the baseline."""
        return self._judged(trials, TWIN, f"{self.baseline.name} (twin)")

    def log_ratios(self, trials: Sequence[Trial], arm: str) -> tuple[float, ...]:
        """D of each execution: ln cost of the arm minus ln cost of the baseline."""
        return log_ratios(trials, arm, self.baseline.arm, self.metric)

    def may_end(self, trials: Sequence[Trial]) -> str | None:
        """Why the race may end at this look, or None."""
        left = self.without(failed_arms(trials))
        pairs = [self.log_ratios(trials, entry.arm) for entry in left.entries[1:]]
        reasons = race_may_stop(pairs, self.rule)
        return None if reasons is None else " and ".join(dict.fromkeys(map(str, reasons)))

    def findings(self, trials: Sequence[Trial]) -> tuple[Finding, ...]:
        """Doubts about the pairs, about the twin, and those that the trials carry (once each)."""
        found: list[Finding] = []
        gone = failed_arms(trials)
        left = self.without(gone).entries
        trials = [trial.without(gone) for trial in trials]
        names = {entry.arm: entry.name for entry in self.entries}
        names[TWIN] = f"{self.baseline.name} (twin)"
        for entry in left[1:]:
            found += pair_findings(self.log_ratios(trials, entry.arm), self.rule, entry.name)
        found += ignored_findings(trials, left)
        found += twin_findings(self.twin(trials))
        found += reading_findings(trials)
        pair = self.log_ratios(trials, left[1].arm) if left[1:] else ()
        found += taken_findings(trials, pair)
        seen: dict[tuple[str, str], Finding] = {}
        for trial in trials:
            for finding in trial.findings:
                subject = names.get(finding.subject, finding.subject)
                seen.setdefault(
                    (finding.code, subject),
                    Finding(finding.code, finding.severity, finding.text, subject),
                )
        return (*found, *seen.values())

    def _judged(self, trials: Sequence[Trial], arm: str, name: str) -> Comparison:
        chosen = self._compare(trials, arm, name, self.metric)
        claims = chosen.direction is not Direction.UNCLEAR
        if self.doubt and arm != TWIN:
            chosen = chosen.without_claim(self.doubt)
        elif (
            claims
            and arm != TWIN
            and few_executions_decide(self.log_ratios(trials, arm), self.rule)
        ):
            chosen = chosen.without_claim(
                f"by its interval it is {chosen.direction.value}, by the ranks of "
                f"{chosen.executions} executions that may be chance, so a few of them decide; "
                "a longer --budget tells"
            )
        return replace(chosen, beside=self._beside(trials, arm, chosen))

    def _beside(self, trials: Sequence[Trial], arm: str, chosen: Comparison) -> Beside | None:
        """The same by the other cost; None where an arm used none of it, or a score is compared.

        What says a score of itself mostly runs for a fixed time, and costs what that is.
        """
        if self.metric is Metric.SCORE:
            return None
        metric = Metric.WALL if self.metric is Metric.CPU else Metric.CPU
        try:
            other = self._compare(trials, arm, chosen.arm, metric)
        except InputError:
            return None
        pairs = zip(
            self.log_ratios(trials, arm),
            log_ratios(trials, arm, self.baseline.arm, metric),
            strict=True,
        )
        shares = (time_shares(trials, self.baseline.arm), time_shares(trials, arm))
        return beside(chosen, other, [mine - its for mine, its in pairs], self.rule, shares)

    def _compare(self, trials: Sequence[Trial], arm: str, name: str, metric: Metric) -> Comparison:
        ratios = log_ratios(trials, arm, self.baseline.arm, metric)
        return compare(PairNames(name, self.baseline.name, metric), ratios, self.rule)
