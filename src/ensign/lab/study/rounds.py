"""Rounds until the time is used, or the precision is reached that was asked for.

Whether another round is raced depends on the time that rounds take and on the widths of intervals,
never on a ratio: so it says nothing of who is faster (docs/background/statistics/rounds.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ensign.host.clock import Clock
from ensign.lab.round_order import order_of
from ensign.lab.so_far import SoFar
from ensign.lab.study.calibrate import one_trial
from ensign.lab.study.fitting import MOST_ROUNDS, TOLERANCE
from ensign.lab.study.fixed import raced_ns, write_plan
from ensign.lab.study.judging import experiment_of
from ensign.lab.study.racing import RoundPlan, RoundProgress, race_failed
from ensign.lab.study.spread import layouts_spread
from ensign.lab.study.variants import RacedVariants
from ensign.meter.client import Meter
from ensign.model.errors import CommandFailed
from ensign.model.finding_kinds.race import BUDGET_ENDED, PRECISION_OUT_OF_REACH
from ensign.model.findings import Finding
from ensign.model.results import Stopped
from ensign.model.study import Study
from ensign.model.study_workload import Workload
from ensign.model.trials import TWIN, Trial, failed_variants
from ensign.model.units import format_duration, parse_duration_ns, parse_share
from ensign.stats.expected import expected_precision, log_ratios_of, rounds_for
from ensign.stats.layouts import by_relink
from ensign.stats.looks import is_look
from ensign.stats.named_scores import judged_tests
from ensign.stats.rounds import RoundCosts, round_costs
from ensign.stats.stopping import round_correlation
from ensign.stats.suite import SuiteRule, widest_half_width
from ensign.store.folder import StudyFolder

_FEWEST_ROUNDS = 3
_RACED_AGAIN = 4  # so many relinks tell what an execution adds, roughly


@dataclass(frozen=True, slots=True)
class RaceContext:
    """Where rounds are raced, and who is told of plans, trials and findings."""

    meter: Meter
    clock: Clock
    folder: StudyFolder
    on_plan: Callable[[RoundPlan], None]
    on_trial: Callable[[RoundProgress], None]
    on_finding: Callable[[Finding], None]


@dataclass(slots=True)
class _State:
    """What was raced so far: whole rounds, their trials without slices, who failed."""

    plan: RoundPlan
    used_ns: int = 0
    last_ns: int = 0
    rounds: int = 0
    trials: list[Trial] = field(default_factory=list)
    gone: frozenset[str] = frozenset()
    spread_told: bool = False

    @property
    def round_ns(self) -> float:
        return self.used_ns / self.rounds if self.rounds else self.plan.round_ns

    @property
    def next_ns(self) -> float:
        """As on average, or as the last one, where the machine got slower."""
        return max(self.round_ns, self.last_ns)


def race_rounds(
    context: RaceContext, study: Study, variants: RacedVariants, plan: RoundPlan
) -> tuple[RoundPlan, tuple[Trial, ...]]:
    """Races what the plan's rule asks for and the store lacks; the plan as it was closed.

    The trials, those of earlier calls too, are without their slices.

    What fails in one trial takes no part in later ones. RaceFailed where the baseline fails;
    KeyboardInterrupt passes. Finished trials and the plan are stored, and the same call goes on.
    """
    stored = context.folder.trials(plan.key)
    used_ns = 0 if plan.closed else raced_ns(stored, plan.overhead_ns)
    state = _State(plan, used_ns, gone=failed_variants(stored))
    there = {(trial.round_index, trial.workload): trial for trial in stored}
    while True:
        workloads = order_of(study.workloads, study.race.seed, state.rounds)
        waiting = [each for each in workloads if (state.rounds, each.name) not in there]
        if len(waiting) == len(workloads) and (
            _ends(state, study) or _is_decided(study, variants, state)
        ):
            break
        began_ns = context.clock.monotonic_ns()
        for workload in waiting:
            if variants.has_failed(state.gone):
                return _closed(context, study, variants, state), _in_order(there)
            raced = _trial(context, study, variants, state, workload)
            there[state.rounds, workload.name] = replace(raced, slices=())
            context.on_trial(_progress(state, study, workload.name, raced, len(there)))
        state.last_ns = context.clock.monotonic_ns() - began_ns
        state.used_ns += state.last_ns
        state.trials += (there[state.rounds, each.name] for each in study.workloads)
        state.rounds += 1
        if not plan.closed:
            _consider(context, study, variants, state)
    closed = state.plan if plan.closed else _closed(context, study, variants, state)
    return closed, _in_order(there)


def _in_order(there: Mapping[tuple[int, str], Trial]) -> tuple[Trial, ...]:
    return tuple(there[key] for key in sorted(there))


def _trial(
    context: RaceContext, study: Study, variants: RacedVariants, state: _State, workload: Workload
) -> Trial:
    plan = state.plan
    placed = plan.placed(variants.without(state.gone), workload.name)
    # A look at each slice's end takes time: not before there is something to explain.
    placed = replace(placed, sampled=state.spread_told)
    requests = plan.requests[workload.name]
    try:
        raced = one_trial(
            context.meter, study, placed, workload, requests, round_index=state.rounds
        )
    except CommandFailed as error:
        raise race_failed(error, study, placed, workload) from None
    context.folder.write_trial(plan.key, raced)
    state.gone |= failed_variants([raced])
    return raced


def round_findings(study: Study, plan: RoundPlan) -> tuple[Finding, ...]:
    """What there is to say of rounds that have ended. Pure."""
    found = []
    asked = study.race.rounds
    if plan.exact and asked is not None and plan.rounds < asked:
        text = (
            f"the budget of {study.race.budget} ended after {plan.rounds} of {asked} rounds: they "
            "took longer than the pilots said"
        )
        found.append(BUDGET_ENDED.found(text))
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
            found.append(PRECISION_OUT_OF_REACH.found(text))
    return tuple(found)


def _ends(state: _State, study: Study) -> bool:
    """Whether no further round is begun."""
    plan = state.plan
    if plan.closed or plan.exact or plan.first:
        if state.rounds >= plan.rounds:
            return True
        if plan.closed:
            return False
    if state.rounds >= MOST_ROUNDS:
        return True
    if state.rounds < _FEWEST_ROUNDS or plan.allowed_ns is None:
        return False
    over_ns = parse_duration_ns(study.race.budget) * TOLERANCE if plan.exact else 0
    return state.used_ns + state.next_ns > plan.allowed_ns + over_ns


def _is_decided(study: Study, variants: RacedVariants, state: _State) -> bool:
    """Whether rounds that are looked at as they come may end at this look."""
    plan, names = state.plan, [name for name, _ in variants.without(state.gone).artifacts]
    if not _is_sequential(study) or plan.closed or not is_look(state.rounds):
        return False
    so_far = SoFar(experiment_of(study), tuple(names))
    reason = so_far.may_end(state.trials)
    state.plan = replace(plan, stopped=reason)
    return reason is not None


def _consider(context: RaceContext, study: Study, variants: RacedVariants, state: _State) -> None:
    """Tells what precision to expect, and sets how many rounds the one asked for needs."""
    plan, asked = state.plan, study.race.precision
    if state.rounds == plan.pilots and plan.precision is None:
        state.plan = plan = _told(study, variants, state)
        write_plan(context.folder, plan)
        context.on_plan(plan)
    if variants.rotation:
        _tell_spread(context, study, variants, state)
    if asked is None or not plan.first or state.rounds < plan.rounds or _is_sequential(study):
        return
    reached = _reached(study, variants, state)
    if reached > parse_share(asked):
        needed = math.ceil(state.rounds * min((reached / parse_share(asked)) ** 2, MOST_ROUNDS))
        rounds = min(max(state.rounds + 1, needed), MOST_ROUNDS)
        state.plan = replace(plan, rounds=rounds)
        write_plan(context.folder, state.plan)


def _tell_spread(
    context: RaceContext, study: Study, variants: RacedVariants, state: _State
) -> None:
    """Tells once that relinks differ by more than the margin, as soon as it shows."""
    relinks = variants.rotation
    looks = (state.plan.pilots, relinks + _RACED_AGAIN, 2 * relinks)
    if state.spread_told or state.rounds not in looks:
        return
    for found in layouts_spread(study, _executions(study, variants, state), relinks):
        context.on_finding(found)
        state.spread_told = True


def _told(study: Study, variants: RacedVariants, state: _State) -> RoundPlan:
    plan, level = state.plan, study.race.level
    d = log_ratios_of(_costs(study, variants, state))
    fits = plan.rounds
    if not plan.exact and plan.allowed_ns is not None:
        fits = min(MOST_ROUNDS, max(int(plan.allowed_ns / state.round_ns), state.rounds))
    rounds = fits
    if study.race.precision is not None and not plan.exact:
        wanted = parse_share(study.race.precision)
        fewest_rounds = max(study.race.rounds or 0, state.rounds)
        rounds = max(rounds_for(d, wanted, fits, level), fewest_rounds)
    units = min(rounds, variants.rotation) if variants.rotation else rounds
    precision = expected_precision(d, max(units, 2), level) if d.shape[2] > 1 else None
    by_width = study.race.precision is not None and not _is_sequential(study)
    first = rounds if by_width and not plan.exact else 0
    return replace(plan, rounds=rounds, precision=precision, first=first)


def _reached(study: Study, variants: RacedVariants, state: _State) -> float:
    """Half-width of the widest geometric mean of a variant, of log ratios."""
    costs = _costs(study, variants, state)
    rule = SuiteRule(study.race.level, finalists=state.plan.finalists)
    if not variants.rotation:
        rule = replace(rule, first=state.plan.first, correlation=round_correlation(costs))
    return widest_half_width(costs, rule)


def _is_sequential(study: Study) -> bool:
    return study.race.stopping == "sequential"


def _costs(study: Study, variants: RacedVariants, state: _State) -> RoundCosts:
    """Of the variants that did not fail, in what n counts."""
    costs = _executions(study, variants, state)
    if not variants.rotation:
        return costs
    return by_relink(costs, variants.rotation, twin_apart=variants.twin_apart)


def _executions(study: Study, variants: RacedVariants, state: _State) -> RoundCosts:
    names = [*(name for name, _ in variants.without(state.gone).artifacts), TWIN]
    trials = (trial.without(state.gone) for trial in state.trials)
    tests = judged_tests([each.name for each in study.workloads], trials)
    return round_costs(tests.trials, names, tests.names, study.race.cost)


def _closed(
    context: RaceContext, study: Study, variants: RacedVariants, state: _State
) -> RoundPlan:
    reached = None
    if study.race.precision is not None and state.rounds > 1:
        reached = _reached(study, variants, state)
    plan = replace(state.plan, rounds=state.rounds, closed=True, reached=reached)
    if _is_sequential(study) and plan.stopped is None:
        plan = replace(plan, stopped=Stopped.BUDGET)
    plan = replace(plan, used_ns=round(state.used_ns))
    write_plan(context.folder, plan)
    return plan


def _progress(state: _State, study: Study, workload: str, trial: Trial, done: int) -> RoundProgress:
    total = max(state.plan.rounds, state.rounds + 1) * len(study.workloads)
    return RoundProgress(done, total, state.rounds, workload, trial)
