"""Rounds until the time is used, or the precision is reached that was asked for.

Whether another round is raced depends on the time that rounds take and on the widths of intervals,
never on a ratio: so it says nothing of who is faster (docs/background/statistics/rounds.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass, replace

from ensign.experiment.loop import RaceState, SoFar, race_rounds
from ensign.experiment.study.budget import MOST_ROUNDS, TOLERANCE, is_adaptive
from ensign.experiment.study.layouts import layouts_spread
from ensign.experiment.study.pilots import one_trial
from ensign.experiment.study.repeats import summed
from ensign.experiment.study.result import experiment_of
from ensign.experiment.study.round_plan import (
    RoundPlan,
    RoundProgress,
    race_failed,
    raced_ns,
    write_plan,
)
from ensign.experiment.study.variants import VariantSet
from ensign.host.clock import Clock
from ensign.meter.client import Meter
from ensign.model.errors import CommandFailed
from ensign.model.finding_kinds.race import BUDGET_ENDED, DEALT, PRECISION_OUT_OF_REACH
from ensign.model.findings import Finding
from ensign.model.results import Stopped
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.trials import TWIN, Trial, failed_variants
from ensign.model.units import format_duration, parse_duration_ns, parse_share
from ensign.stats.expected import (
    dealt_executions,
    expected_precision,
    log_ratios_of,
    rounds_for,
)
from ensign.stats.layouts import by_relink
from ensign.stats.looks import is_look
from ensign.stats.named_scores import judged_tests
from ensign.stats.rounds import RoundCosts, round_costs
from ensign.stats.stopping import round_correlation
from ensign.stats.suite import SuiteRule, widest_half_width
from ensign.store.folder import StudyFolder

_FEWEST_ROUNDS = 3
_DEALT = 0.9  # of the time that is left: the machine may get slower
_RACED_AGAIN = 4  # so many relinks tell what an execution adds, roughly


@dataclass(frozen=True, slots=True)
class RaceContext:
    """Context of rounds: the listeners for plans, trials and findings."""

    meter: Meter
    clock: Clock
    folder: StudyFolder
    on_plan: Callable[[RoundPlan], None]
    on_trial: Callable[[RoundProgress], None]
    on_finding: Callable[[Finding], None]


@dataclass(frozen=True, slots=True)
class _FolderStore:
    """Trials of one plan in the study's folder, read once; slices do not remain in memory."""

    folder: StudyFolder
    key: str
    there: tuple[Trial, ...]

    def stored(self) -> Sequence[Trial]:
        return self.there

    def add(self, trial: Trial) -> Trial:
        self.folder.write_trial(self.key, trial)
        return replace(trial, slices=())


def race_plan(
    context: RaceContext, study: Study, variants: VariantSet, plan: RoundPlan
) -> tuple[RoundPlan, tuple[Trial, ...]]:
    """Races what the plan's rule asks for and the store lacks; the plan as it was closed.

    The trials, those of earlier calls too, are without their slices.

    What fails in one trial takes no part in later ones. RaceFailed where the baseline fails;
    KeyboardInterrupt passes. Finished trials and the plan are stored, and the same call goes on.
    """
    rounds = _StudyRounds(context, study, variants, plan)
    there = context.folder.trials(plan.key)
    store = _FolderStore(context.folder, plan.key, there)
    used_ns = 0 if plan.closed else raced_ns(there, plan.overhead_ns)
    clock_ns = context.clock.monotonic_ns
    rounds.warm_up()
    state, _ = race_rounds(rounds, store, clock_ns, rounds.tell, used_ns)
    trials = tuple(sorted(state.trials, key=lambda trial: (trial.round_index, trial.workload)))
    return plan if plan.closed else rounds.closed(state), trials


@dataclass(slots=True)
class _StudyRounds:
    """One execution of each workload, by a plan that becomes more exact on the way."""

    context: RaceContext
    study: Study
    variants: VariantSet
    plan: RoundPlan
    spread_told: bool = False

    @property
    def workloads(self) -> tuple[str, ...]:
        return tuple(workload.name for workload in self.study.workloads)

    @property
    def seed(self) -> int:
        return self.study.race.seed

    def nobody_left(self, gone: Collection[str]) -> bool:
        return self.variants.has_failed(gone)

    def ends(self, state: RaceState) -> Stopped | None:
        if self._ends(state):
            return Stopped.BUDGET
        return self._decided(state)

    def trials(self, workload: str, state: RaceState) -> Generator[Trial, None, None]:
        study, plan = self.study, self.plan
        raced = next(one for one in study.workloads if one.name == workload)
        placed = plan.placed(self.variants.without(state.gone), workload)
        # A look at each slice's end takes time: not before there is something to explain.
        placed = replace(placed, sampled=self.spread_told or study.race.samples)
        requests, count = plan.requests[workload], plan.executions_of(workload, state.rounds)
        if requests is not None and is_adaptive(raced):
            requests, count = requests * count, 1
        try:
            yield self._executed(placed, raced, requests, state.rounds, count)
        except CommandFailed as error:
            raise race_failed(error, study, placed, raced) from None

    def _executed(
        self,
        variants: VariantSet,
        raced: Workload,
        requests: int | None,
        round_index: int,
        count: int,
    ) -> Trial:
        """The trial of a round; what fails in one execution takes no part in the next."""
        trials: list[Trial] = []
        for execution in range(count):
            left = variants.without(failed_variants(trials))
            if variants.has_failed(failed_variants(trials)):
                break
            done = one_trial(
                self.context.meter,
                self.study,
                left,
                raced,
                requests,
                round_index=round_index,
                execution=execution,
            )
            trials.append(done)
        return summed(trials)

    def warm_up(self) -> None:
        """Races executions that do not count; their time is set apart in the budget."""
        for _ in range(0 if self.plan.closed else self.study.race.warmup):
            for name in self.workloads:
                for _trial in self.trials(name, RaceState()):
                    pass

    def tell(self, state: RaceState, trial: Trial) -> None:
        """Tells the listener of a trial."""
        workloads = len(self.study.workloads)
        total = max(self.plan.rounds, state.rounds + 1) * workloads
        done = len(state.trials)
        progress = RoundProgress(done, total, state.rounds, trial.workload, trial)
        self.context.on_trial(progress)

    def after(self, state: RaceState) -> None:
        """Tells what precision to expect, and sets how many rounds the one asked for needs."""
        plan, asked = self.plan, self.study.race.precision
        if plan.closed:
            return
        if state.rounds == plan.pilots and plan.precision is None:
            self.plan = plan = self._dealt(self._told(state), state)
            write_plan(self.context.folder, plan)
            self.context.on_plan(plan)
        if self.variants.rotation:
            self._tell_spread(state)
        if asked is None or not plan.first or state.rounds < plan.rounds or self._sequential:
            return
        reached, wanted = self._reached(state), parse_share(asked)
        if reached > wanted:
            needed = math.ceil(state.rounds * min((reached / wanted) ** 2, MOST_ROUNDS))
            rounds = min(max(state.rounds + 1, needed), MOST_ROUNDS)
            self.plan = replace(plan, rounds=rounds)
            write_plan(self.context.folder, self.plan)

    def closed(self, state: RaceState) -> RoundPlan:
        """The plan with what came of it, stored."""
        asked = self.study.race.precision is not None and state.rounds > 1
        reached = self._reached(state) if asked else None
        stopped = self.plan.stopped
        if self._sequential and stopped is None:
            stopped = Stopped.BUDGET
        plan = replace(
            self.plan,
            rounds=state.rounds,
            closed=True,
            reached=reached,
            stopped=stopped,
            used_ns=round(state.used_ns),
        )
        write_plan(self.context.folder, plan)
        return plan

    @property
    def _sequential(self) -> bool:
        return self.study.race.stopping == "sequential"

    def _ends(self, state: RaceState) -> bool:
        plan = self.plan
        if plan.closed or plan.exact or plan.first:
            if state.rounds >= plan.rounds:
                return True
            if plan.closed:
                return False
        if state.rounds >= MOST_ROUNDS:
            return True
        if state.rounds < _FEWEST_ROUNDS or plan.allowed_ns is None:
            return False
        over_ns = parse_duration_ns(self.study.race.budget) * TOLERANCE if plan.exact else 0
        # As on average, or as the last one, where the machine got slower.
        next_ns = max(self._round_ns(state), state.racing_ns[-1] + state.starting_ns)
        return state.used_ns + next_ns > plan.allowed_ns + over_ns

    def _round_ns(self, state: RaceState) -> float:
        return state.used_ns / state.rounds if state.rounds else self.plan.round_ns

    def _decided(self, state: RaceState) -> Stopped | None:
        """Why rounds that are looked at as they come may end at this look, or None."""
        plan, names = self.plan, [name for name, _ in self.variants.without(state.gone).artifacts]
        if not self._sequential or plan.closed or not is_look(state.rounds):
            return None
        reason = SoFar(experiment_of(self.study), tuple(names)).may_end(state.trials)
        self.plan = replace(plan, stopped=reason)
        return reason

    def _tell_spread(self, state: RaceState) -> None:
        """Tells once that relinks differ by more than the margin, as soon as it shows."""
        relinks = self.variants.rotation
        looks = (self.plan.pilots, relinks + _RACED_AGAIN, 2 * relinks)
        if self.spread_told or state.rounds not in looks:
            return
        for finding in layouts_spread(self.study, self._executions(state), relinks):
            self.context.on_finding(finding)
            self.spread_told = True

    def _told(self, state: RaceState) -> RoundPlan:
        plan, race, rotation = self.plan, self.study.race, self.variants.rotation
        d = log_ratios_of(self._costs(state))
        fits = plan.rounds
        if not plan.exact and plan.allowed_ns is not None:
            fits = min(MOST_ROUNDS, max(int(plan.allowed_ns / self._round_ns(state)), state.rounds))
        rounds = fits
        if race.precision is not None and not plan.exact:
            fewest_rounds = max(race.rounds or 0, state.rounds)
            needed = rounds_for(d, parse_share(race.precision), fits, race.level)
            rounds = max(needed, fewest_rounds)
        units = min(rounds, rotation) if rotation else rounds
        precision = expected_precision(d, max(units, 2), race.level) if d.shape[2] > 1 else None
        by_width = race.precision is not None and not self._sequential
        first = rounds if by_width and not plan.exact else 0
        return replace(plan, rounds=rounds, precision=precision, first=first)

    def _dealt(self, plan: RoundPlan, state: RaceState) -> RoundPlan:
        """The plan with several executions a round of what is least sure, where time is left."""
        most = self.study.race.executions or 1
        ahead = plan.rounds - state.rounds
        if most == 1 or not plan.exact or plan.allowed_ns is None or ahead < 1:
            return plan
        costs = self._executions(state)
        names = [name for name in self.workloads if self._may_repeat(name, state)]
        if costs.workloads != self.workloads or not names:
            return plan
        chosen = [self.workloads.index(name) for name in names]
        d = log_ratios_of(costs)[:, chosen]
        took_ns = [self._execution_ns(name, state, plan) for name in names]
        left_ns = plan.allowed_ns - state.used_ns - ahead * self._round_ns(state)
        counts = dealt_executions(d, took_ns, left_ns * _DEALT / ahead, most)
        several = {name: count for name, count in zip(names, counts, strict=True) if count > 1}
        return replace(plan, executions=several, dealt_from=state.rounds)

    def _may_repeat(self, workload: str, state: RaceState) -> bool:
        """True unless it has what cannot be added up: a score, or percentiles of latency."""
        totals = [
            total
            for trial in state.trials
            if trial.workload == workload
            for total in trial.variants
        ]
        return not any(total.score is not None or total.scores or total.latency for total in totals)

    def _execution_ns(self, workload: str, state: RaceState, plan: RoundPlan) -> float:
        own = [trial for trial in state.trials if trial.workload == workload]
        return raced_ns(own, plan.overhead_ns) / len(own)

    def _reached(self, state: RaceState) -> float:
        """Half-width of the widest geometric mean of a variant, of log ratios."""
        costs = self._costs(state)
        rule = SuiteRule(self.study.race.level, finalists=self.plan.finalists)
        if not self.variants.rotation:
            rule = replace(rule, first=self.plan.first, correlation=round_correlation(costs))
        return widest_half_width(costs, rule)

    def _costs(self, state: RaceState) -> RoundCosts:
        """Costs of the variants that did not fail, in what n counts."""
        costs, rotation = self._executions(state), self.variants.rotation
        if not rotation:
            return costs
        return by_relink(costs, rotation, twin_apart=self.variants.twin_apart)

    def _executions(self, state: RaceState) -> RoundCosts:
        names = [*(name for name, _ in self.variants.without(state.gone).artifacts), TWIN]
        whole = (trial for trial in state.trials if trial.round_index < state.rounds)
        trials = (trial.without(state.gone) for trial in whole)
        tests = judged_tests(self.workloads, trials)
        return round_costs(tests.trials, names, tests.names, self.study.race.cost)


def round_findings(study: Study, plan: RoundPlan) -> tuple[Finding, ...]:
    """Findings on rounds that have ended. Pure."""
    findings = []
    asked = study.race.rounds
    if plan.exact and asked is not None and plan.rounds < asked:
        text = (
            f"the budget of {study.race.budget} ended after {plan.rounds} of {asked} rounds: they "
            "took longer than the pilots said"
        )
        findings.append(BUDGET_ENDED.found(text))
    if plan.executions:
        several = ", ".join(f"{name} ({count})" for name, count in sorted(plan.executions.items()))
        text = f"executed several times a round, from round {plan.dealt_from + 1} on: {several}"
        findings.append(DEALT.found(text))
    precision, allowed_ns = study.race.precision, plan.allowed_ns
    if precision is not None and plan.reached is not None and allowed_ns is not None:
        asked_for = parse_share(precision)
        if plan.reached > asked_for:
            # Half-widths shrink with the root of the time.
            needed_ns = plan.spent_ns + allowed_ns * (plan.reached / asked_for) ** 2
            text = (
                f"the budget of {study.race.budget} is used up, and the widest geometric mean is "
                f"known within ± {100 * plan.reached:.2g} %, not the ± {precision} asked for: "
                f"about {format_duration(needed_ns)} would do"
            )
            findings.append(PRECISION_OUT_OF_REACH.found(text))
    return tuple(findings)
