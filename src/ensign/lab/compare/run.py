"""From options to a judged race: set up, pilot, race, clean up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ensign.host.signals import heed_signals_again
from ensign.lab.compare.before_race import Piloting, Planned
from ensign.lab.compare.failures import Ended, ended, failure_of, require_rest, way_out_of
from ensign.lab.compare.judge import Judge
from ensign.lab.compare.options import DEFAULT_BUDGET_NS, CommandVariant, Options
from ensign.lab.compare.own_files import for_variant, lasting_tmp
from ensign.lab.compare.pilot import CommandPilot, run_unmeasured
from ensign.lab.compare.plan import RacePlan, budget_ns, failure_findings, pair_rule
from ensign.lab.compare.race import RaceLimits, RaceOutcome, run_race
from ensign.lab.compare.self_timed import withheld_text
from ensign.lab.compare.tracing import Traces, raced_findings
from ensign.lab.compare.variants import (
    unhurried_process,
)
from ensign.lab.cpu_plan import CpuPlan
from ensign.lab.ports import Ports
from ensign.meter.requests import ProcessSpec
from ensign.model.comparisons import Comparison
from ensign.model.errors import DeadlineMet, EnsignError, Interrupted
from ensign.model.finding_kinds.builds import SAME_BYTES
from ensign.model.finding_kinds.race import LONGER_WOULD_TELL
from ensign.model.findings import Finding
from ensign.model.results import Stopped
from ensign.model.trials import TWIN, Trial, VariantFailure
from ensign.model.units import duration_option
from ensign.stats.longer import longer_race
from ensign.stats.pair import Rule

Failure = TypeVar("Failure", bound=BaseException)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a race is: executions, its time (ns) and the comparisons so far.

    These are computed for who shows them alone: over thousands of executions it takes a while, in
    which the next one runs already.
    """

    executions: int
    elapsed_ns: int
    budget_ns: int
    comparisons: Callable[[], tuple[Comparison, ...]]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a race will take (ns): one execution of all variants, and all of it at most.

    `asked` is False where the user left it open and it takes longer than it usually would.
    """

    execution_ns: int
    left_ns: int
    asked: bool


@dataclass(frozen=True, slots=True)
class Withheld:
    """Why nothing may be said of which is faster, and what is known of the commands by variant."""

    text: str
    pilots: Mapping[str, CommandPilot]


@dataclass(frozen=True, slots=True)
class Compared:
    """A finished race with its judge. `stopped` says why there are no more executions.

    `error` is what failed and ended it, where some was measured before; `failed` has the commands
    that are out of it, of which the `judge` no longer has those that never were in it.
    """

    judge: Judge
    plan: RacePlan
    trials: tuple[Trial, ...]
    stopped: Stopped
    budget_ns: int
    spent_ns: int
    findings: tuple[Finding, ...]
    error: EnsignError | None = None
    failed: tuple[Ended, ...] = ()
    traces: Traces = field(default_factory=Traces)
    withheld: Withheld | None = None


@dataclass(frozen=True, slots=True)
class Raced:
    """A race that ended, not judged yet.

    `early` has the commands that failed before it, `traces` what was seen of one execution of each;
    `failure` is what a clean-up command did wrong, `withheld` why nothing may be said.
    """

    judge: Judge
    plan: RacePlan
    outcome: RaceOutcome
    budget_ns: int
    spent_ns: int
    early: tuple[Ended, ...] = ()
    traces: Traces = field(default_factory=Traces)
    failure: EnsignError | None = None
    shared: tuple[Finding, ...] = ()
    withheld: Withheld | None = None

    def judged(self) -> Compared:
        """What the race says. Pure; takes a moment, in which a signal should wait."""
        trials, error = self.outcome.trials, self.outcome.error
        judge = self.judge.at_the_end(len(trials))
        late = [self._told(failure) for trial in trials for failure in trial.failures]
        failed = (*self.early, *ended(judge.commands, late))
        return Compared(
            judge=judge,
            plan=self.plan,
            trials=trials,
            stopped=self.outcome.stopped,
            budget_ns=self.budget_ns,
            spent_ns=self.spent_ns,
            findings=(
                *failure_findings(error),
                *self.shared,
                *(each.finding for each in failed),
                *self.plan.findings,
                *self.traces.findings,
                *(() if self.withheld else judge.findings(trials)),
                *self._longer(judge),
            ),
            error=error or (failure_of(failed) if failed else self.failure),
            failed=failed,
            traces=self.traces,
            withheld=self.withheld,
        )

    def _longer(self, judge: Judge) -> tuple[Finding, ...]:
        """What it would take to decide what is open, where nothing else is wrong with it."""
        trials = self.outcome.trials
        if judge.doubt or not trials:
            return ()
        same = {f.subject for f in self.traces.findings if f.is_a(SAME_BYTES)}
        each = (one for one in judge.so_far(trials) if one.variant not in same)
        longer = longer_race(each, judge.rule.margin)
        if longer is None:
            return ()
        racing_ns = sum(trial.wall_ns for trial in trials)
        whole_ns = self.spent_ns - racing_ns + longer.times * racing_ns
        text = (
            f"to find a difference of {longer.difference * 100:g} % here in 4 of 5 races "
            f"takes about --budget {duration_option(whole_ns)}"
        )
        return (LONGER_WOULD_TELL.found(text),)

    def _told(self, failure: VariantFailure) -> VariantFailure:
        if failure.code != "deadline" or self.plan.deadline_ns is None:
            return failure
        return replace(failure, text=f"{failure.text}; {way_out_of(self.plan.deadline_ns)}")


@dataclass(frozen=True, slots=True)
class Comparing:
    """One call of `compare`: what to race, where, and whom to tell."""

    options: Options
    commands: tuple[CommandVariant, ...]
    cpus: CpuPlan
    ports: Ports
    on_progress: Callable[[Progress], None]
    on_plan: Callable[[Expected], None] = lambda _: None

    def run(self) -> Raced:
        """Races the commands; the clean-up commands run whatever happens.

        Interrupted, or what failed, if nothing was measured until then; what a clean-up command
        then did wrong is a note of it.
        """
        with lasting_tmp(self.options, self.commands) as (options, commands):
            return replace(self, options=options, commands=commands).run_in_place()

    def run_in_place(self) -> Raced:
        """As `run`, with `{tmp}` as it stands."""
        try:
            self._set_up()
            # The wait for other races is outside the budget.
            with self.ports.race_lock.held() as shared:
                raced = replace(self._race(), shared=shared)
        except KeyboardInterrupt:
            interrupted = Interrupted("interrupted before anything was measured")
            raise _both(interrupted, self._clean_up()) from None
        except BaseException as error:
            _both(error, self._clean_up())
            raise
        failure = self._clean_up()
        if raced.outcome.error is not None:
            _both(raced.outcome.error, failure)
        return replace(raced, failure=failure)

    def _set_up(self) -> None:
        for process in self._unhurried("setup"):
            run_unmeasured(self.ports.meter, f"--setup {' '.join(process.argv)}", process)

    def _clean_up(self) -> EnsignError | None:
        """Runs all clean-up commands; what the first one that fails says. Ctrl-C skips the rest."""
        failure: EnsignError | None = None
        processes = self._unhurried("cleanup")
        try:
            if processes:
                heed_signals_again()
            for process in processes:
                try:
                    what = f"--cleanup {' '.join(process.argv)}"
                    run_unmeasured(self.ports.meter, what, process)
                except EnsignError as error:
                    failure = failure or error
        except KeyboardInterrupt:
            return failure or Interrupted("interrupted while cleaning up")
        return failure

    def _unhurried(self, part: str) -> tuple[ProcessSpec, ...]:
        """These commands, equal ones once; with `{variant}` one per variant, the twin's too."""
        variants = [(command.variant, getattr(command, part)) for command in self.commands]
        variants.append((TWIN, variants[0][1]))
        processes = [
            for_variant(unhurried_process(argv, self.options), variant)
            for variant, argv in variants
            if argv is not None
        ]
        return tuple(dict.fromkeys(processes))

    def _race(self) -> Raced:
        start_ns = self.ports.clock.monotonic_ns()
        piloting = Piloting(
            self.options, self.commands, self.cpus, self.ports, self._names(), start_ns
        )
        planned = piloting.plan()
        plan, failures = planned.plan, planned.failures
        require_rest(self.commands, failures)
        if planned.self_timed:
            return self._withheld(planned, start_ns)
        request = piloting.request(plan, failures)
        if self.options.warmup:
            spent_ns = self.ports.clock.monotonic_ns() - start_ns
            # A budget that is too small is to be refused before the minutes that this may take.
            warming_ns = self.options.warmup * plan.execution_ns
            budget_ns(self.options, plan.execution_ns, spent_ns + warming_ns)
            trials = piloting.drain(replace(request, executions=self.options.warmup))
            failures += (each for trial in trials for each in trial.failures)
            require_rest(self.commands, failures)
            request = request.without({each.variant for each in failures})
        spent_ns = self.ports.clock.monotonic_ns() - start_ns
        budget = budget_ns(self.options, plan.execution_ns, spent_ns)
        asked = self.options.budget_ns is not None or budget <= DEFAULT_BUDGET_NS
        self.on_plan(Expected(plan.execution_ns, budget - spent_ns, asked))
        fitting = (budget - spent_ns) // max(plan.execution_ns, 1)
        doubt = planned.doubt_of_the_clock(loaded=bool(self.options.load))
        judge = Judge(self.commands, plan.metric, pair_rule(self.options, fitting), doubt)
        judge = judge.without({each.variant for each in failures})

        def report(trials: Sequence[Trial]) -> None:
            elapsed_ns = self.ports.clock.monotonic_ns() - start_ns
            withheld = planned.seen_in(trials)
            if withheld is not None:
                raise _EndsByTheClock(withheld)
            # Not copied: there may be thousands, and the next execution runs already.
            self.on_progress(
                Progress(len(trials), elapsed_ns, budget, lambda: judge.so_far(trials))
            )

        looked = judge.rule.rule is Rule.SEQUENTIAL
        limits = RaceLimits(
            start_ns + budget, looked, judge.may_end, self._names(), plan.execution_ns
        )
        clock_ns = self.ports.clock.monotonic_ns
        try:
            outcome = run_race(self.ports.meter, request, limits, clock_ns, report)
        except _EndsByTheClock as seen:
            return self._withheld(seen.planned, start_ns)
        except EnsignError as error:
            # There will be no report to say it.
            for shared in planned.traces.shared:
                error.add_note(shared.text)
            raise _with_way_out(error, plan) from None
        if outcome.error is not None:
            _with_way_out(outcome.error, plan)
        if not outcome.trials:
            raise Interrupted("interrupted before the first execution ended; nothing was measured")
        spent_ns = self.ports.clock.monotonic_ns() - start_ns
        early = self._early(failures)
        names, baseline = self._names(), self.commands[0].variant
        traces = planned.traces
        found = raced_findings(traces, outcome.trials, names, baseline)
        traces = replace(traces, findings=(*traces.findings, *found))
        return Raced(judge, plan, outcome, budget, spent_ns, early, traces)

    def _names(self) -> dict[str, str]:
        names = {command.variant: command.name for command in self.commands}
        return names | {TWIN: f"{self.commands[0].name} (twin)"}

    def _early(self, failures: Sequence[VariantFailure]) -> tuple[Ended, ...]:
        """The commands that failed before the race, so in none of its executions."""
        return ended(self.commands, [replace(each, round_index=None) for each in failures])

    def _withheld(self, planned: Planned, start_ns: int) -> Raced:
        """Nothing is raced of what ends by the clock."""
        gone = {each.variant for each in planned.failures}
        judge = Judge(self.commands, planned.plan.metric, pair_rule(self.options, 1)).without(gone)
        spent_ns = self.ports.clock.monotonic_ns() - start_ns
        budget = self.options.budget_ns or DEFAULT_BUDGET_NS
        early = self._early(planned.failures)
        withheld = Withheld(withheld_text(planned.self_timed), planned.pilots)
        outcome = RaceOutcome((), Stopped.WITHHELD)
        return Raced(
            judge,
            planned.plan,
            outcome,
            budget,
            spent_ns,
            early,
            planned.traces,
            withheld=withheld,
        )


class _EndsByTheClock(Exception):  # nothing failed
    """The first executions showed that there is nothing to judge."""

    def __init__(self, planned: Planned) -> None:
        super().__init__()
        self.planned = planned


def _with_way_out(error: EnsignError, plan: RacePlan) -> EnsignError:
    if isinstance(error, DeadlineMet) and plan.deadline_ns is not None:
        error.add_note(way_out_of(plan.deadline_ns))
    return error


def _both(error: Failure, cleaning: EnsignError | None) -> Failure:
    if cleaning is not None:
        error.add_note(f"cleaning up failed, too: {cleaning}")
    return error
