"""From options to a judged race: set up, pilot, race, clean up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from ensign.lab.compare.arms import CpuPlan, arm_specs, plain_process, program_process
from ensign.lab.compare.judge import Judge
from ensign.lab.compare.options import Candidate, Options
from ensign.lab.compare.pilot import PilotRun, pilot_run, run_unmeasured, usage_findings
from ensign.lab.compare.plan import RacePlan, budget_ns, output_findings, pair_rule, plan_race
from ensign.lab.compare.race import Limits, run_race
from ensign.lab.ports import Ports
from ensign.measure.perform import race
from ensign.model.comparisons import Comparison
from ensign.model.errors import CommandFailed, Interrupted
from ensign.model.findings import Finding
from ensign.model.requests import RaceRequest
from ensign.model.trials import Mode, Trial
from ensign.stats.pair import Rule


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a race is: executions, its time (ns) and the comparisons so far."""

    executions: int
    elapsed_ns: int
    budget_ns: int
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """A finished race with its judge. `stopped` says why there are no more executions."""

    judge: Judge
    plan: RacePlan
    trials: tuple[Trial, ...]
    stopped: str
    budget_ns: int
    spent_ns: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Comparing:
    """One call of `compare`: what to race, where, and whom to tell."""

    options: Options
    entries: tuple[Candidate, ...]
    cpus: CpuPlan
    ports: Ports
    on_progress: Callable[[Progress], None]

    def run(self) -> Compared:
        """Races the candidates. Interrupted if nothing was measured when Ctrl-C came."""
        try:
            self._each("setup")
            return self._race()
        except KeyboardInterrupt:
            raise Interrupted("interrupted before anything was measured") from None
        finally:
            self._each("cleanup")

    def _each(self, part: str) -> None:
        for entry in self.entries:
            argv = getattr(entry, part)
            if argv is not None:
                process = plain_process(argv, self.options)
                run_unmeasured(self.ports.meter, f"--{part} {' '.join(argv)}", process)

    def _race(self) -> Compared:
        start_ns = self.ports.clock.monotonic_ns()
        plan = self._pilot()
        request = self._request(plan)
        if self.options.warmup:
            self._drain(replace(request, executions=self.options.warmup))
        spent_ns = self.ports.clock.monotonic_ns() - start_ns
        budget = budget_ns(self.options, plan.execution_ns, spent_ns)
        fitting = (budget - spent_ns) // max(plan.execution_ns, 1)
        judge = Judge(self.entries, plan.metric, pair_rule(self.options, fitting))

        def report(trials: Sequence[Trial]) -> None:
            elapsed_ns = self.ports.clock.monotonic_ns() - start_ns
            self.on_progress(Progress(len(trials), elapsed_ns, budget, judge.comparisons(trials)))

        limits = Limits(start_ns + budget, judge.rule.rule is Rule.SEQUENTIAL, judge.may_end)
        outcome = run_race(self.ports.meter, request, limits, self.ports.clock.monotonic_ns, report)
        if not outcome.trials:
            raise Interrupted("interrupted before the first execution ended; nothing was measured")
        return Compared(
            judge=judge,
            plan=plan,
            trials=outcome.trials,
            stopped=outcome.stopped,
            budget_ns=budget,
            spent_ns=self.ports.clock.monotonic_ns() - start_ns,
            findings=(*plan.findings, *judge.findings(outcome.trials)),
        )

    def _request(self, plan: RacePlan) -> RaceRequest:
        free = CpuPlan(self.options.cpus, None, None)
        seats = self.cpus if plan.pinned else free
        return RaceRequest(
            arms=arm_specs(self.entries, self.options, seats, plan.expected_ns),
            mode=plan.mode,
            slice_ns=self.options.slice_ns,
            executions=1,
            seed=self.options.seed,
            meter_cpus=self.cpus.meter,
        )

    def _pilot(self) -> RacePlan:
        if self.options.load:
            return self._pilot_of_servers()
        runs: dict[str, PilotRun] = {}
        for entry in self.entries:
            if entry.prepare is not None:
                process = plain_process(entry.prepare, self.options)
                run_unmeasured(self.ports.meter, f"--prepare {' '.join(entry.prepare)}", process)
            process = program_process(entry, self.options, CpuPlan(self.options.cpus, None, None))
            runs[entry.arm] = pilot_run(self.ports.meter, entry, process)
        pilots = tuple(runs.values())
        findings = output_findings(pilots) + tuple(
            finding for run in pilots for finding in usage_findings(run)
        )
        return plan_race(self.options, runs, findings)

    def _pilot_of_servers(self) -> RacePlan:
        mode = self.options.mode or Mode.GATED
        request = RaceRequest(
            arms=arm_specs(self.entries, self.options, self.cpus, {}),
            mode=mode,
            slice_ns=self.options.slice_ns,
            executions=1,
            seed=self.options.seed,
            meter_cpus=self.cpus.meter,
        )
        (trial,) = self._drain(request)
        runs = {entry.arm: _run_of(trial, entry) for entry in self.entries}
        plan = plan_race(replace(self.options, mode=mode), runs, ())
        return replace(plan, pinned=True, execution_ns=trial.wall_ns)

    def _drain(self, request: RaceRequest) -> tuple[Trial, ...]:
        with closing(race(self.ports.meter, request)) as trials:
            done = tuple(trials)
        if len(done) < request.executions:
            raise CommandFailed("the unmeasured executions before the race did not complete")
        return done


def _run_of(trial: Trial, entry: Candidate) -> PilotRun:
    totals = trial.arm(entry.arm)
    return PilotRun(entry.name, totals.wall_ns, totals.user_ns, totals.system_ns, "")
