"""From options to a judged race: set up, pilot, race, clean up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ensign.host.signals import heed_signals_again
from ensign.lab.compare.arms import (
    CpuPlan,
    arm_specs,
    plain_process,
    program_process,
    unhurried_process,
)
from ensign.lab.compare.failures import Ended, ended, failure_of, require_rest
from ensign.lab.compare.judge import Judge
from ensign.lab.compare.options import DEFAULT_BUDGET_NS, Candidate, Options
from ensign.lab.compare.own_files import for_arm, lasting_tmp, passing_tmp
from ensign.lab.compare.pilot import PilotRun, RunFailed, pilot_run, run_unmeasured, usage_findings
from ensign.lab.compare.plan import (
    RacePlan,
    budget_ns,
    cut_short,
    differing_outputs,
    failure_findings,
    longest_pilot_ns,
    output_findings,
    pair_rule,
    plan_race,
    require_budget,
)
from ensign.lab.compare.race import Limits, RaceOutcome, run_race
from ensign.lab.compare.tracing import Traces, Tracing
from ensign.lab.ports import Ports
from ensign.measure.perform import race
from ensign.model.comparisons import Comparison
from ensign.model.errors import CommandFailed, EnsignError, Interrupted
from ensign.model.findings import Finding
from ensign.model.requests import ProcessSpec, RaceRequest
from ensign.model.trials import TWIN, ArmFailure, Metric, Mode, Trial
from ensign.stats.pair import Rule

Failure = TypeVar("Failure", bound=BaseException)

_PILOTS = 3
_PILOTS_SHARE = 0.05


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
class Compared:
    """A finished race with its judge. `stopped` says why there are no more executions.

    `error` is what failed and ended it, where some was measured before; `failed` has the commands
    that are out of it, of which the `judge` no longer has those that never were in it.
    """

    judge: Judge
    plan: RacePlan
    trials: tuple[Trial, ...]
    stopped: str
    budget_ns: int
    spent_ns: int
    findings: tuple[Finding, ...]
    error: EnsignError | None = None
    failed: tuple[Ended, ...] = ()
    traces: Traces = field(default_factory=Traces)


@dataclass(frozen=True, slots=True)
class Raced:
    """A race that ended, not judged yet.

    `early` has the commands that failed before it, `traces` what was seen of one execution of each;
    `failure` is what a clean-up command did wrong.
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

    def judged(self) -> Compared:
        """What the race says. Pure; takes a moment, in which a signal should wait."""
        trials, error = self.outcome.trials, self.outcome.error
        judge = self.judge.at_the_end(len(trials))
        late = [failure for trial in trials for failure in trial.failures]
        failed = (*self.early, *ended(judge.entries, late))
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
                *judge.findings(trials),
            ),
            error=error or (failure_of(failed) if failed else self.failure),
            failed=failed,
            traces=self.traces,
        )


@dataclass(frozen=True, slots=True)
class Comparing:
    """One call of `compare`: what to race, where, and whom to tell."""

    options: Options
    entries: tuple[Candidate, ...]
    cpus: CpuPlan
    ports: Ports
    on_progress: Callable[[Progress], None]

    def run(self) -> Raced:
        """Races the candidates; the clean-up commands run whatever happens.

        Interrupted, or what failed, if nothing was measured until then; what a clean-up command
        then did wrong is a note of it.
        """
        with lasting_tmp(self.options, self.entries) as (options, entries):
            return replace(self, options=options, entries=entries).run_in_place()

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
        """These commands, equal ones once; with `{arm}` there is one per arm, the twin's too."""
        arms = [(entry.arm, getattr(entry, part)) for entry in self.entries]
        arms.append((TWIN, arms[0][1]))
        processes = [
            for_arm(unhurried_process(argv, self.options), arm)
            for arm, argv in arms
            if argv is not None
        ]
        return tuple(dict.fromkeys(processes))

    def _race(self) -> Raced:
        start_ns = self.ports.clock.monotonic_ns()
        plan, failures, traces = self._look()
        require_rest(self.entries, failures)
        request = self._request(plan, failures, traces)
        if self.options.warmup:
            spent_ns = self.ports.clock.monotonic_ns() - start_ns
            # A budget that is too small is to be refused before the minutes that this may take.
            warming_ns = self.options.warmup * plan.execution_ns
            budget_ns(self.options, plan.execution_ns, spent_ns + warming_ns)
            trials = self._drain(replace(request, executions=self.options.warmup))
            failures += (each for trial in trials for each in trial.failures)
            require_rest(self.entries, failures)
            request = request.without({each.arm for each in failures})
        spent_ns = self.ports.clock.monotonic_ns() - start_ns
        budget = budget_ns(self.options, plan.execution_ns, spent_ns)
        fitting = (budget - spent_ns) // max(plan.execution_ns, 1)
        judge = Judge(self.entries, plan.metric, pair_rule(self.options, fitting))
        judge = judge.without({each.arm for each in failures})

        def report(trials: Sequence[Trial]) -> None:
            elapsed_ns = self.ports.clock.monotonic_ns() - start_ns
            seen = tuple(trials)
            self.on_progress(Progress(len(seen), elapsed_ns, budget, lambda: judge.so_far(seen)))

        looked = judge.rule.rule is Rule.SEQUENTIAL
        limits = Limits(start_ns + budget, looked, judge.may_end, self._names(), plan.execution_ns)
        outcome = run_race(self.ports.meter, request, limits, self.ports.clock.monotonic_ns, report)
        if not outcome.trials:
            raise Interrupted("interrupted before the first execution ended; nothing was measured")
        spent_ns = self.ports.clock.monotonic_ns() - start_ns
        before = [replace(each, sweep=None) for each in failures]
        early = ended(self.entries, before)
        return Raced(judge, plan, outcome, budget, spent_ns, early, traces)

    def _names(self) -> dict[str, str]:
        names = {entry.arm: entry.name for entry in self.entries}
        return names | {TWIN: f"{self.entries[0].name} (twin)"}

    def _look(self) -> tuple[RacePlan, list[ArmFailure], Traces]:
        """Pilots and traced executions: the plan, what failed, and what ran."""
        if self.options.load:
            # All servers are alive in their pilot: it must be known first whether they may be.
            traces = self._tracing(self.entries).trace()
            return *self._pilot_of_servers(apart=traces.apart), traces
        plan, failures = self._pilot()
        out = {each.arm for each in failures}
        left = tuple(entry for entry in self.entries if entry.arm not in out)
        traces = self._tracing(left).trace(plan.expected_ns) if len(left) > 1 else Traces()
        if traces.apart:
            plan = replace(plan, mode=Mode.WHOLE)
        return plan, failures, traces

    def _tracing(self, entries: tuple[Candidate, ...]) -> Tracing:
        tracer = self.ports.tracing(self.ports.meter)
        return Tracing(self.options, entries, tracer, self.ports.clock.monotonic_ns)

    def _request(
        self, plan: RacePlan, failures: Sequence[ArmFailure], traces: Traces
    ) -> RaceRequest:
        free = CpuPlan(self.options.cpus, None, None)
        seats = self.cpus if plan.pinned else free
        return RaceRequest(
            arms=arm_specs(self.entries, self.options, seats, plan.expected_ns),
            mode=plan.mode,
            slice_ns=self.options.slice_ns,
            executions=1,
            seed=self.options.seed,
            meter_cpus=self.cpus.meter,
            ports=self.options.ports,
            apart=traces.apart,
        ).without({each.arm for each in failures})

    def _pilot(self) -> tuple[RacePlan, list[ArmFailure]]:
        """The plan, and what failed already. CommandFailed where nothing is left to compare."""
        runs: dict[str, PilotRun] = {}
        failures: list[ArmFailure] = []
        for entry in self.entries:
            try:
                runs[entry.arm] = self._pilot_of(entry)
                require_budget(self.options, runs, len(self.entries))
            except RunFailed as error:
                if len(failures) + 1 >= len(self.entries) - 1 or not runs:
                    raise
                failures.append(replace(error.failure, arm=entry.arm))
        pilots = tuple(runs.values())
        again = self._run_alone(self.entries[0]) if differing_outputs(pilots) else None
        findings = output_findings(pilots, again) + tuple(
            finding for run in pilots for finding in usage_findings(run)
        )
        return plan_race(self.options, runs, findings), failures

    def _pilot_of(self, entry: Candidate) -> PilotRun:
        """The median of three runs, or one where three would take much of the budget.

        A busy machine can make any short run look asleep, and hide that it keeps several CPUs busy.
        """
        run = self._run_alone(entry)
        budget = self.options.budget_ns or DEFAULT_BUDGET_NS
        if run.wall_ns * _PILOTS > budget * _PILOTS_SHARE:
            return run
        runs = [run, *(self._run_alone(entry) for _ in range(_PILOTS - 1))]
        return sorted(runs, key=lambda each: each.wall_ns)[_PILOTS // 2]

    def _run_alone(self, entry: Candidate) -> PilotRun:
        prepare_ns = 0
        with passing_tmp(*(entry.prepare or ())) as tmp:
            if entry.prepare is not None:
                process = for_arm(plain_process(entry.prepare, self.options), entry.arm, tmp)
                what = f"--prepare {' '.join(entry.prepare)}"
                prepare_ns = run_unmeasured(self.ports.meter, what, process)
            free = CpuPlan(self.options.cpus, None, None)
            process = for_arm(program_process(entry, self.options, free), entry.arm, tmp)
            run = self._within_patience(entry, process)
        return replace(run, prepare_ns=prepare_ns)

    def _within_patience(self, entry: Candidate, process: ProcessSpec) -> PilotRun:
        """The run, ended as soon as it shows that the budget is too small for it: InputError."""
        cut_ns = longest_pilot_ns(self.options)
        if cut_ns is None:
            return pilot_run(self.ports.meter, entry, process)
        try:
            return pilot_run(self.ports.meter, entry, replace(process, deadline_ns=cut_ns))
        except RunFailed as error:
            if error.failure.code == "deadline":
                raise cut_short(self.options, entry.name, len(self.entries), cut_ns) from None
            raise

    def _pilot_of_servers(self, *, apart: bool) -> tuple[RacePlan, list[ArmFailure]]:
        options = replace(
            self.options,
            mode=self.options.mode or (Mode.WHOLE if apart else Mode.GATED),
            metric=self.options.metric or Metric.CPU,
        )
        request = RaceRequest(
            arms=arm_specs(self.entries, self.options, self.cpus, {}),
            mode=options.mode or Mode.GATED,
            slice_ns=self.options.slice_ns,
            executions=1,
            seed=self.options.seed,
            meter_cpus=self.cpus.meter,
            ports=self.options.ports,
            apart=apart,
        )
        (trial,) = self._drain(request)
        failures = list(trial.failures)
        require_rest(self.entries, failures)
        gone = {each.arm for each in failures}
        runs = {entry.arm: _run_of(trial, entry) for entry in self.entries if entry.arm not in gone}
        plan = plan_race(options, runs, ())
        # A server waits for its load generator, which is no reason to doubt the gating.
        return replace(plan, pinned=True, execution_ns=trial.wall_ns, findings=()), failures

    def _drain(self, request: RaceRequest) -> tuple[Trial, ...]:
        with closing(race(self.ports.meter, request, names=self._names())) as trials:
            done = tuple(trials)
        if len(done) < request.executions:
            raise CommandFailed("the unmeasured executions before the race did not complete")
        return done


def _both(error: Failure, cleaning: EnsignError | None) -> Failure:
    if cleaning is not None:
        error.add_note(f"cleaning up failed, too: {cleaning}")
    return error


def _run_of(trial: Trial, entry: Candidate) -> PilotRun:
    totals = trial.arm(entry.arm)
    return PilotRun(entry.name, totals.wall_ns, totals.user_ns, totals.system_ns, "")
