"""The steps of a comparison of commands: set up, look, race, judge, clean up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from ensign.experiment.compare.commands import (
    CommandVariant,
    FailedCommand,
    deadline_hint,
    failed_commands,
    require_rest,
)
from ensign.experiment.compare.options import DEFAULT_BUDGET_NS, Options
from ensign.experiment.compare.plan import RacedWorkloads, budget_ns, experiment_of
from ensign.experiment.compare.planning import Piloting
from ensign.experiment.compare.race import RaceLimits, RaceOutcome, race_commands
from ensign.experiment.compare.result import FinishedRace, compare_evidence
from ensign.experiment.compare.variants import lasting_tmp, setup_process
from ensign.experiment.compare.workloads import CommandWorkload, PlannedWorkloads, workloads_of
from ensign.experiment.exclusions import same_programs
from ensign.experiment.loop import SoFar, trial_seed
from ensign.experiment.machine import CpuPlan, MachineState, cpus_of_options, machine_state
from ensign.experiment.pilots import CommandsAround, for_variant
from ensign.experiment.ports import Ports
from ensign.experiment.steps import ExperimentOutcome
from ensign.meter.requests import ProcessSpec, RaceRequest
from ensign.model.comparisons import Comparison
from ensign.model.errors import DeadlineMet, EnsignError, Interrupted
from ensign.model.experiment import Experiment
from ensign.model.findings import Finding
from ensign.model.results import Stopped
from ensign.model.trials import TWIN, Trial, VariantFailure


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a race: rounds, its time (ns) and the comparisons so far.

    These are computed for who shows them alone: over thousands of executions it takes a while, in
    which the next one runs already.
    """

    rounds: int
    elapsed_ns: int
    budget_ns: int
    comparisons: Callable[[], tuple[Comparison, ...]]


@dataclass(frozen=True, slots=True)
class Expected:
    """Time that a race will take (ns): one round of all variants, and all of it at most.

    `asked` is False where the user left it open and it takes longer than it usually would.
    """

    execution_ns: int
    left_ns: int
    asked: bool


@dataclass(frozen=True, slots=True)
class PlannedRace:
    """Observations before the race, and the requests by workload, of those that did not fail.

    Nothing is raced where there are none. The budget counts from `start_ns`; `before` is the
    machine as it was, `findings` what there is to say of its CPUs. Variants that run the `same`
    program as an earlier one are not raced. It is raced `again` where somebody only seemed to end
    by the clock.
    """

    workloads: PlannedWorkloads
    requests: Mapping[str, RaceRequest]
    failures: tuple[VariantFailure, ...]
    start_ns: int
    budget_ns: int
    before: MachineState
    findings: tuple[Finding, ...] = ()
    same: frozenset[str] = frozenset()
    again: bool = False

    @property
    def out(self) -> frozenset[str]:
        """The variants that take no part."""
        return self.same | {failure.variant for failure in self.failures}


@dataclass(frozen=True, slots=True)
class CompareRaces:
    """A race as planned, and the race of the best one that confirms it, if there is one.

    `error` is what kept that from being raced.
    """

    planned: PlannedRace
    first: FinishedRace
    second: FinishedRace | None = None
    error: EnsignError | None = None


@dataclass(frozen=True, slots=True)
class CompareSteps:
    """Steps of an experiment for commands: what to race, where, and whom to tell.

    `redo` is the command line, `bundle` a file for all raw data; `shared` is what there is to say
    beforehand, of other races on this machine too; `cleaned` gets what a clean-up command did
    wrong.
    """

    options: Options
    commands: tuple[CommandVariant, ...]
    ports: Ports
    on_progress: Callable[[Progress], None]
    on_plan: Callable[[Expected], None] = lambda _: None
    redo: str = ""
    bundle: Path | None = None
    shared: tuple[Finding, ...] = ()
    cleaned: list[EnsignError] = field(default_factory=list)

    @contextmanager
    def held(self) -> Iterator[CompareSteps]:
        """No other race, folders for `{tmp}`; the clean-up commands run whatever happens.

        Interrupted, or what failed, if nothing was measured until then; what a clean-up command
        then did wrong is a note of it.
        """
        with (
            self.ports.race_lock.held() as shared,
            lasting_tmp(self.options, self.commands) as (options, commands),
        ):
            known = (*self.shared, *shared)
            steps = replace(self, options=options, commands=commands, shared=known)
            with steps.around.cleaned_up(self.cleaned):
                try:
                    yield steps
                except KeyboardInterrupt:
                    raise Interrupted("interrupted before anything was measured") from None

    def prepare(self) -> MachineState:
        """Runs the set-up commands; the machine as it was before."""
        before = machine_state()
        self.around.set_up()
        return before

    def plan(self, prepared: MachineState) -> PlannedRace:
        """Looks at each command by itself. CommandFailed where nothing is left to compare."""
        start_ns = self.ports.clock.monotonic_ns()
        cpus, cpu_findings = cpus_of_options(self.options.cpus, servers=self.options.serves)
        pilotings = self._pilotings(cpus, start_ns)
        planned = PlannedWorkloads({name: piloting.plan() for name, piloting in pilotings.items()})
        planned = planned.by_one_metric()
        require_rest(self.commands, planned.failures)
        same = frozenset() if self.options.race_same else planned.same
        requests: dict[str, RaceRequest] = {}
        out = same | {failure.variant for failure in planned.failures}
        if any(command.variant not in out for command in self.commands[1:]):
            requests = {
                name: pilotings[name].request(seen.plan, planned.failures).without(same)
                for name, seen in planned.judged.items()
            }
        failures = [*planned.failures]
        if self.options.warmup and requests:
            requests = self._warmed(pilotings, planned, requests, failures, start_ns)
        spent_ns = self.ports.clock.monotonic_ns() - start_ns
        budget = self.options.budget_ns or DEFAULT_BUDGET_NS
        if requests:
            budget = budget_ns(self.options, planned.round_ns, spent_ns)
            asked = self.options.budget_ns is not None or budget <= DEFAULT_BUDGET_NS
            self.on_plan(Expected(planned.round_ns, budget - spent_ns, asked))
        known = (prepared, cpu_findings, same)
        return PlannedRace(planned, requests, tuple(failures), start_ns, budget, *known)

    def race(self, planned: PlannedRace) -> CompareRaces:
        """The race, in half of the time where another is to confirm it."""
        if not self.options.confirm:
            return CompareRaces(planned, self.raced(planned))
        spent_ns = self.ports.clock.monotonic_ns() - planned.start_ns
        half = replace(planned, budget_ns=(planned.budget_ns + spent_ns) // 2)
        return CompareRaces(planned, self.raced(half))

    def raced(self, planned: PlannedRace) -> FinishedRace:
        """Races until the answer is sure enough, or the budget is spent."""
        start_ns, budget, workloads = planned.start_ns, planned.budget_ns, planned.workloads
        if not planned.requests:
            return self._ended(planned, workloads, _NOTHING)
        spent_ns = self.ports.clock.monotonic_ns() - start_ns
        fitting = (budget - spent_ns) // max(workloads.round_ns, 1)
        experiment = self._experiment(workloads, fitting, budget)
        so_far = self._so_far(experiment).without(planned.out)

        def report(trials: Sequence[Trial]) -> None:
            elapsed_ns = self.ports.clock.monotonic_ns() - start_ns
            seen = workloads.seen_in(trials)
            if seen is not None and not seen.judged:
                raise _EndsByTheClock(tuple(trials))
            # Not copied: there may be thousands, and the next execution runs already.
            rounds = len(trials) // len(planned.requests)
            self.on_progress(
                Progress(rounds, elapsed_ns, budget, lambda: so_far.comparisons(trials))
            )

        names = self._names()
        limits = RaceLimits(
            start_ns + (budget if self._bounded else _NO_END_NS),
            so_far.looks,
            so_far.may_end,
            names,
            workloads.round_ns,
            self.options.least_runs,
            self.options.most_runs,
            workloads.together,
        )
        clock_ns = self.ports.clock.monotonic_ns
        try:
            outcome = race_commands(self.ports.meter, planned.requests, limits, clock_ns, report)
        except _EndsByTheClock as stopped:
            return self._asked_again(planned, stopped.trials, experiment)
        except EnsignError as error:
            # There will be no report to say it.
            for shared in workloads.traces.shared:
                error.add_note(shared.text)
            raise _with_way_out(error, workloads) from None
        if outcome.error is not None:
            _with_way_out(outcome.error, workloads)
        if not outcome.trials:
            raise Interrupted("interrupted before the first execution ended; nothing was measured")
        return self._measured(planned, outcome, experiment)

    def _asked_again(
        self, planned: PlannedRace, trials: tuple[Trial, ...], experiment: Experiment
    ) -> FinishedRace:
        """Nothing, where its only workload runs for a fixed time; else it is raced again."""
        workloads = self._beside_runs_after(planned.workloads, trials)
        seen = workloads.seen_in(trials)
        if seen is not None:
            return self._ended(planned, seen, _NOTHING)
        left_ns = planned.start_ns + planned.budget_ns - self.ports.clock.monotonic_ns()
        if not planned.again and left_ns > len(trials) * workloads.round_ns:
            return self.raced(replace(planned, workloads=workloads, again=True))
        enough = RaceOutcome(trials, Stopped.BUDGET)
        return self._measured(replace(planned, workloads=workloads), enough, experiment)

    def _measured(
        self, planned: PlannedRace, outcome: RaceOutcome, experiment: Experiment
    ) -> FinishedRace:
        workloads = self._beside_runs_after(planned.workloads, outcome.trials)
        baseline = self.commands[0].variant
        seen = workloads.after_race(outcome.trials, self._names(), baseline)
        return self._ended(planned, seen, outcome, experiment)

    def _beside_runs_after(
        self, workloads: PlannedWorkloads, trials: Sequence[Trial]
    ) -> PlannedWorkloads:
        """Commands that seem to run for a fixed time, seen beside runs alone after the race, too.

        On a machine that became faster meanwhile, fixed work uses less in the race than before it.
        """
        doubted = workloads.doubted(trials)
        pilotings = self._pilotings(CpuPlan(), self.ports.clock.monotonic_ns()) if doubted else {}
        for name in doubted:
            again = pilotings[name].alone_again(workloads.by_name[name].pilots)
            workloads = workloads.with_pilots(name, again)
        return workloads

    @property
    def _bounded(self) -> bool:
        """True if time ends the race, and not a number of runs that was asked for alone."""
        return self.options.budget_ns is not None or not self.options.least_runs

    def confirm(self, raced: CompareRaces) -> CompareRaces:
        """The best command against the baseline anew, in the time that is left."""
        first, planned = raced.first, raced.planned
        best = compare_evidence(self.options, first).finalist() if self.options.confirm else ""
        if not best:
            return raced
        left = tuple(
            command for command in self.commands if command.name in (self.commands[0].name, best)
        )
        out = {command.variant for command in self.commands} - {command.variant for command in left}
        seed = trial_seed(self.options.seed, 0, "confirm")
        requests = {
            name: replace(request.without(out), seed=seed)
            for name, request in planned.requests.items()
        }
        start_ns = self.ports.clock.monotonic_ns()
        left_ns = planned.start_ns + planned.budget_ns - start_ns
        anew = replace(planned, requests=requests, start_ns=start_ns, budget_ns=left_ns)
        steps = replace(self, commands=left, options=replace(self.options, seed=seed))
        try:
            return replace(raced, second=steps.raced(anew))
        except (KeyboardInterrupt, Interrupted):
            error: EnsignError = Interrupted("interrupted before the best was raced anew")
        except EnsignError as failed:
            error = failed
        # What was explored is told all the same.
        return replace(raced, error=error)

    def judge(self, raced: CompareRaces) -> ExperimentOutcome:
        """The result; what failed, also where some was measured."""
        errors = [race.error for race in (raced.first, raced.second, raced) if race is not None]
        failed = next(filter(None, (*errors, *self.cleaned)), None)
        evidence = compare_evidence(self.options, raced.first, self.redo)
        if self.options.confirm:
            anew = raced.second
            second = None if anew is None else compare_evidence(self.options, anew)
            evidence = replace(evidence, explores=True, second=second)
        if self.options.sampled:
            from ensign.experiment.compare import functions  # noqa: PLC0415

            costs = functions.compared_functions(raced.first)
            findings = (*evidence.record.findings, *functions.same_code_findings(costs))
            record = replace(evidence.record, functions=costs, findings=findings)
            evidence = replace(evidence, record=record)
        if self.bundle is not None:
            evidence.write_bundle(self.bundle)
        return ExperimentOutcome(evidence.result(), failed)

    @property
    def around(self) -> CommandsAround:
        """The commands around all executions, each with the name that errors call it by."""
        return CommandsAround(self.ports.meter, self._named("setup"), self._named("cleanup"))

    def _named(self, part: str) -> dict[ProcessSpec, str]:
        """These commands; with `{variant}` there is one per variant, the twin's too."""
        processes: dict[ProcessSpec, str] = {}
        for workload in self._workloads():
            variants = [(command.variant, command) for command in workload.commands]
            variants += [(TWIN, workload.commands[0])] if self.options.twin else []
            for variant, command_variant in variants:
                if (argv := getattr(command_variant, part)) is not None:
                    process = for_variant(setup_process(argv, workload.options), variant)
                    processes.setdefault(process, f"--{part} {' '.join(process.argv)}")
        return processes

    def _pilotings(self, cpus: CpuPlan, start_ns: int) -> dict[str, Piloting]:
        names = self._names()
        return {
            workload.name: Piloting(
                workload.options, workload.commands, cpus, self.ports, names, start_ns
            )
            for workload in self._workloads()
        }

    def _workloads(self) -> tuple[CommandWorkload, ...]:
        return workloads_of(self.options, self.commands)

    def _warmed(
        self,
        pilotings: Mapping[str, Piloting],
        planned: PlannedWorkloads,
        requests: Mapping[str, RaceRequest],
        failures: list[VariantFailure],
        start_ns: int,
    ) -> dict[str, RaceRequest]:
        """The requests without those that failed in unmeasured executions."""
        spent_ns = self.ports.clock.monotonic_ns() - start_ns
        # A budget that is too small is to be refused before the minutes that this may take.
        warming_ns = self.options.warmup * planned.round_ns
        budget_ns(self.options, planned.round_ns, spent_ns + warming_ns)
        for name, request in requests.items():
            warming = replace(request, executions=self.options.warmup)
            trials = pilotings[name].drain(warming, planned.by_name[name].plan.together)
            failures += (replace(e, workload=name) for trial in trials for e in trial.failures)
        require_rest(self.commands, failures)
        gone = {failure.variant for failure in failures}
        return {name: request.without(gone) for name, request in requests.items()}

    def _experiment(self, planned: PlannedWorkloads, rounds: int, budget: int) -> Experiment:
        raced = RacedWorkloads(tuple(planned.judged or planned.by_name), planned.metric)
        names = [command.name for command in self.commands]
        return experiment_of(self.options, names, raced, rounds, budget)

    def _so_far(self, experiment: Experiment) -> SoFar:
        names = self._names()
        variants = tuple(command.variant for command in self.commands)
        return SoFar(experiment, variants, has_twin=self.options.twin, names=names)

    def _names(self) -> dict[str, str]:
        names = {command.variant: command.name for command in self.commands}
        twin = {TWIN: f"{self.commands[0].name} (twin)"} if self.options.twin else {}
        return names | twin

    def _early(self, failures: Sequence[VariantFailure]) -> tuple[FailedCommand, ...]:
        """The commands that failed before the race, so in none of its executions."""
        return failed_commands(
            self.commands, [replace(failure, round_index=None) for failure in failures]
        )

    def _ended(
        self,
        planned: PlannedRace,
        seen: PlannedWorkloads,
        outcome: RaceOutcome,
        experiment: Experiment | None = None,
    ) -> FinishedRace:
        """The finished race; without `experiment` nothing was raced: it runs for a fixed time."""
        after, spent_ns = machine_state(), self.ports.clock.monotonic_ns() - planned.start_ns
        rule = experiment or self._experiment(seen, 1, planned.budget_ns)
        return FinishedRace(
            rule,
            self.commands,
            self._so_far(rule).without(planned.out),
            seen,
            outcome,
            spent_ns,
            early=self._early(planned.failures),
            shared=self.shared,
            machine=after.facts_since(planned.before),
            machine_findings=(
                ()
                if planned.same and experiment is None
                else (*planned.findings, *planned.before.findings_until(after))
            ),
            made_at=datetime.now(tz=UTC).isoformat(timespec="seconds"),
            withheld="" if experiment else self._withheld(planned, seen),
            same=planned.same,
            confinement=self.ports.confinement,
        )

    def _withheld(self, planned: PlannedRace, seen: PlannedWorkloads) -> str:
        if not planned.same:
            return seen.withheld
        names = [command.name for command in self.commands if command.variant in planned.same]
        return same_programs([self.commands[0].name, *names])


# A number of executions that was asked for takes as long as it takes.
_NO_END_NS = 10**9 * 3600 * 24 * 365
# Of what runs for a fixed time nothing is raced.
_NOTHING = RaceOutcome((), Stopped.WITHHELD)


class _EndsByTheClock(Exception):  # nothing failed
    """The first executions seem to show that there is nothing to judge."""

    def __init__(self, trials: tuple[Trial, ...]) -> None:
        super().__init__()
        self.trials = trials


def _with_way_out(error: EnsignError, planned: PlannedWorkloads) -> EnsignError:
    deadline_ns = planned.deadline_ns
    if isinstance(error, DeadlineMet) and deadline_ns is not None:
        error.add_note(deadline_hint(deadline_ns))
    return error
