"""Unmeasured executions before a race: its plan, and whether it may be judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ensign.experiment.bounds import usage_findings
from ensign.experiment.compare.commands import CommandVariant, require_rest
from ensign.experiment.compare.options import DEFAULT_BUDGET_NS, Options
from ensign.experiment.compare.plan import (
    STARTING_NS,
    RacePlan,
    budget_too_small,
    differing_outputs,
    longest_pilot_ns,
    output_findings,
    plan_race,
    require_budget,
    require_rest_of_budget,
    with_memory,
)
from ensign.experiment.compare.tracing import Traces, Tracing, may_be_same
from ensign.experiment.compare.variants import (
    TURNS_BESIDE_A_SLEEPER,
    beside_a_sleeper,
    passing_tmp,
    plain_process,
    program_process,
    variant_specs,
    with_deadline,
)
from ensign.experiment.groups import race_in_groups
from ensign.experiment.machine import CpuPlan
from ensign.experiment.metric_and_mode import FEWEST_RUNS, runs_to_look_at, runs_to_look_at_again
from ensign.experiment.pilots import (
    CommandPilot,
    PilotRun,
    RunFailed,
    for_variant,
    pilot_run,
    run_of_totals,
    run_unmeasured,
)
from ensign.experiment.ports import Ports
from ensign.experiment.self_timed import (
    FOR_A_MEDIAN,
    NOTEWORTHY_NS,
    TO_BE_SURE,
    SelfTimed,
    by_another,
    by_median,
    by_the_cpu_clock,
    by_the_first,
    by_the_wall_clock,
    clock_slice_ns,
)
from ensign.experiment.tracing import TraceOptions
from ensign.host.files import file_sha256
from ensign.host.machine import read_machine
from ensign.host.topology import allowed_cpus
from ensign.meter.requests import ProcessSpec, RaceRequest
from ensign.model.errors import CommandFailed, InputError
from ensign.model.quoting import visible
from ensign.model.trials import Metric, Mode, Trial, VariantFailure

# Of the budget: for the runs of all commands, and for tracing them.
_PILOTS_SHARE = 0.2
_MORE_SHARE = 0.05
_SLICED_SHARE = 0.05
_ALONE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Planned:
    """Plan of a race, failures so far, and who runs for a fixed time, so that nothing is judged.

    Where no execution was `sliced` to see that, the first measured ones are to show it; where they
    cannot either, it is `unknown`.
    """

    plan: RacePlan
    failures: list[VariantFailure]
    pilots: Mapping[str, CommandPilot]
    traces: Traces
    self_timed: tuple[SelfTimed, ...] = ()
    sliced: bool = True
    unknown: bool = False

    def doubt_of_the_clock(self, *, loaded: bool) -> str:
        """Why CPU time may say nothing of speed here; empty where that was looked at."""
        if loaded or self.plan.metric is not Metric.CPU:
            return ""
        if not self.traces.for_lack_of_time and not self.unknown:
            return ""
        clock = "the clock" if self.unknown else "its CPU clock"
        return (
            f"the budget is too short to see whether a command ends by {clock}; "
            "a longer --budget would tell"
        )

    def seen_in(self, trials: Sequence[Trial]) -> Planned | None:
        """Programs that run for a fixed time, by the first executions of the race.

        The first two, where none was spent on the question before; and some more by their medians,
        which a busy machine does not disturb.
        """
        self_timed: tuple[SelfTimed, ...] = ()
        if len(trials) == TO_BE_SURE and not self.sliced:
            self_timed = by_the_first(self.pilots, trials)
        elif len(trials) == FOR_A_MEDIAN:
            self_timed = by_median(self.pilots, trials)
        if not self_timed:
            return None
        told = tuple(timed.finding(counted=False) for timed in self_timed)
        plan = replace(self.plan, findings=(*told, *self.plan.findings))
        return replace(self, plan=plan, self_timed=self_timed)


@dataclass(frozen=True, slots=True)
class Piloting:
    """The unmeasured executions of one call of `compare`."""

    options: Options
    commands: tuple[CommandVariant, ...]
    cpus: CpuPlan
    ports: Ports
    names: Mapping[str, str]
    start_ns: int

    def plan(self) -> Planned:
        """The plan, and what failed already. CommandFailed where nothing is left to compare."""
        before = self._same_at_once()
        if before is not None and self._all_same(before):
            metric = self.options.metric or Metric.CPU
            mode = self.options.mode or Mode.INTERLEAVED
            return Planned(RacePlan(mode, metric, True, {}, 0, ()), [], {}, before)  # noqa: FBT003
        servers = self.options.serves
        if servers:
            # It must be known first whether they may be there together.
            traces = before or self._tracing(self.commands).trace()
            pilots, failures = self._of_servers()
        else:
            pilots, failures = self._of_programs()
            left = tuple(command for command in self.commands if command.variant in pilots)
            took = {variant: pilot.wall_ns for variant, pilot in pilots.items()}
            if before is not None and left == self.commands:
                traces = before
            else:
                traces = self._tracing(left).trace(took) if len(left) > 1 else Traces()
        ran = tuple(replace(pilot, traced=traces.of(variant)) for variant, pilot in pilots.items())
        cpus = len(self.options.cpus or allowed_cpus())
        used = usage_findings(ran, servers=servers, cpus=cpus)
        # What says how fast it was prints something else each time.
        printed = () if self.options.scored else output_findings(ran, self._printed_again(ran))
        findings = (*printed, *used)
        plan = plan_race(self.options, pilots, findings)
        if traces.apart:
            plan = replace(plan, mode=Mode.ALTERNATING, apart=True)
        plan = with_memory(self.options, plan, pilots, read_machine().memory.available_bytes)
        if self.options.scored or self.options.drive is not None:
            # What is sent is counted: nobody runs for a fixed time.
            return Planned(plan, failures, pilots, traces)
        return self._tested(Planned(plan, failures, pilots, traces))

    def _all_same(self, traces: Traces) -> bool:
        """True if every command runs what the baseline runs, on the same input."""
        return all(command.variant in traces.same for command in self.commands[1:])

    def _same_at_once(self) -> Traces | None:
        """Traces taken before anything else, where programs seem to be the same.

        A command that fails is told by the runs alone that follow.
        """
        options = self.options
        checked = options.expected is not None or options.expected_sha256 is not None
        if options.race_same or checked:
            return None
        tracing = self._tracing(self.commands)
        if not may_be_same(options, self.commands, tracing.identities):
            return None
        traces = tracing.trace()
        ends = [traces.of(command.variant) for command in self.commands]
        well = all(end.exit_status == 0 for end in ends)
        return traces if well or options.ignore_failure or options.serves else None

    def _printed_again(self, pilots: Sequence[CommandPilot]) -> str:
        """The hash of what the baseline prints again, where others print something else."""
        if not differing_outputs(pilots):
            return ""
        if pilots[0].again:
            return pilots[0].again
        return self._run_alone(self.commands[0], digest=True)[1]

    def _tracing(self, commands: tuple[CommandVariant, ...]) -> Tracing:
        tracer = self.ports.tracing(self.ports.meter)
        return Tracing(self.options, commands, tracer, self.ports.clock.monotonic_ns)

    def alone_again(self, before: Mapping[str, CommandPilot]) -> Mapping[str, CommandPilot]:
        """Some unmeasured runs as those `before`; those, where one fails."""
        try:
            if self.options.serves:
                return {**before, **self._of_servers()[0]}
            return {
                command.variant: self._alone_again(command, before[command.variant])
                for command in self.commands
                if command.variant in before
            }
        except CommandFailed:
            return before

    def _alone_again(self, command: CommandVariant, before: CommandPilot) -> CommandPilot:
        count = runs_to_look_at_again(before.wall_ns, len(before.runs))
        runs = (self._run_alone(command, digest=False)[0] for _ in range(count))
        return replace(before, runs=tuple(runs))

    def request(self, plan: RacePlan, failures: Sequence[VariantFailure]) -> RaceRequest:
        """One execution as planned, without those that failed."""
        free = CpuPlan(self.options.cpus or ())
        cpus = self.cpus if plan.pinned else free
        variants = variant_specs(self.commands, self.options, cpus, plan.expected_ns)
        return RaceRequest(
            variants=tuple(with_deadline(variant, plan.deadline_ns) for variant in variants),
            mode=plan.mode,
            slice_ns=self.options.slice_ns,
            executions=1,
            seed=self.options.seed,
            meter_cpus=self.cpus.meter or None,
            ports=self.options.ports,
            apart=plan.apart,
            code_samples=self.options.sampled,
        ).without({failure.variant for failure in failures})

    def drain(self, request: RaceRequest, together: int | None = None) -> tuple[Trial, ...]:
        """Unmeasured executions; CommandFailed where they did not complete."""
        raced = race_in_groups(self.ports.meter, request, together, names=self.names)
        with closing(raced) as trials:
            done = tuple(trials)
        if len(done) < request.executions:
            raise CommandFailed("the unmeasured executions before the race did not complete")
        return done

    @property
    def _budget_ns(self) -> int:
        return self.options.budget_ns or DEFAULT_BUDGET_NS

    def _tested(self, planned: Planned) -> Planned:
        """True if anyone runs for a fixed time."""
        plan, pilots = planned.plan, planned.pilots
        worth = self._worth_slicing(plan, pilots)
        later = worth and self._may_wait(plan)
        unknown = plan.apart and not worth and not self.options.serves and _noteworthy(pilots)
        sliced = self._sliced(planned) if worth and not later else None
        self_timed = () if sliced is None else by_the_wall_clock(pilots, sliced)
        if self_timed:
            self_timed = self._again(planned, self_timed)
        if sliced is not None and self.options.serves and plan.mode is Mode.INTERLEAVED:
            plan = replace(plan, execution_ns=sliced.wall_ns)
        if not self_timed and not self.options.serves:
            self_timed = self._by_the_cpu_clock(planned)
        if not self_timed:
            return replace(planned, plan=plan, sliced=not later, unknown=unknown)
        counted = self.options.operations is not None
        told = tuple(timed.finding(counted=counted) for timed in self_timed)
        plan = replace(plan, findings=(*told, *plan.findings))
        if counted:
            return replace(planned, plan=replace(plan, mode=Mode.ALTERNATING))
        return replace(planned, plan=plan, self_timed=self_timed)

    def _again(self, planned: Planned, found: tuple[SelfTimed, ...]) -> tuple[SelfTimed, ...]:
        """Those whom another execution shows, too, beside the runs before and others after it."""
        pilots, sliced = planned.pilots, self._sliced(planned)
        if sliced is None:
            return ()
        return by_another(found, pilots, sliced, partial(self.alone_again, pilots))

    def _sliced(self, planned: Planned) -> Trial | None:
        """An unmeasured execution in which all take turns in slices, where they can.

        Commands that must not be alive at once take turns with one that sleeps, each for itself.
        """
        slice_ns = clock_slice_ns(self.options.slice_ns, tuple(planned.pilots.values()))
        request = self.request(planned.plan, planned.failures)
        request = replace(request, mode=Mode.INTERLEAVED, slice_ns=slice_ns, apart=False)
        requests: tuple[RaceRequest, ...] = (request,)
        if planned.plan.apart:
            alone = (variant for variant in request.variants if variant.name in planned.pilots)
            requests = tuple(
                replace(request, variants=beside_a_sleeper(variant)) for variant in alone
            )
        try:
            together = planned.plan.together
            trials = [
                trial for race_request in requests for trial in self.drain(race_request, together)
            ]
        except CommandFailed:
            # What fails so in the race itself is told there.
            return None
        return replace(
            trials[0],
            variants=tuple(variant for trial in trials for variant in trial.variants),
            slices=tuple(record for trial in trials for record in trial.slices),
        )

    def _worth_slicing(self, plan: RacePlan, pilots: Mapping[str, CommandPilot]) -> bool:
        if plan.apart and (self.options.serves or self._too_dear_alone(plan)):
            return False
        return _noteworthy(pilots)

    def _too_dear_alone(self, plan: RacePlan) -> bool:
        beside_ns = plan.execution_ns * TURNS_BESIDE_A_SLEEPER
        return beside_ns > self._budget_ns * _ALONE_SHARE

    def _may_wait(self, plan: RacePlan) -> bool:
        """A race in slices shows it by itself, where an execution more is dear."""
        dear = plan.execution_ns + STARTING_NS > self._budget_ns * _SLICED_SHARE
        counted = self.options.operations is not None
        return dear and plan.mode is Mode.INTERLEAVED and not self.options.serves and not counted

    def _by_the_cpu_clock(self, planned: Planned) -> tuple[SelfTimed, ...]:
        """Those who use less when their CPU clocks run faster."""
        tracer = self.ports.tracing(self.ports.meter)
        free = CpuPlan(self.options.cpus or ())
        specs = {
            variant.name: variant
            for variant in variant_specs(self.commands, self.options, free, {})
        }
        wish = TraceOptions(self.options.ports)
        self_timed: list[SelfTimed] = []
        for variant, pilot in planned.pilots.items():
            usually = partial(tracer.trace, specs[variant], wish)
            hurried = planned.traces.of(variant)
            one = by_the_cpu_clock(pilot.name, hurried, usually, pilot.cpu_ns)
            if one is not None:
                self_timed.append(one)
        return tuple(self_timed)

    def _of_programs(self) -> tuple[dict[str, CommandPilot], list[VariantFailure]]:
        pilots: dict[str, CommandPilot] = {}
        failures: list[VariantFailure] = []
        for command in self.commands:
            try:
                pilots[command.variant] = self._of_program(command)
                require_budget(self.options, pilots, len(self.commands))
            except RunFailed as error:
                if len(failures) + 1 >= len(self.commands) - 1 or not pilots:
                    raise
                failures.append(replace(error.failure, variant=command.variant))
        return pilots, failures

    def _of_program(self, command: CommandVariant) -> CommandPilot:
        """Three runs or more, or a single one that takes much of the budget.

        That one is looked at hundreds of times.
        """
        begun_ns = self.ports.clock.monotonic_ns()
        first, output = self._run_alone(command, digest=True)
        require_expected(self.options, command.name, output)
        took_ns = self.ports.clock.monotonic_ns() - begun_ns
        more = self._more(first, took_ns, command)
        again = next((digest for _, digest in more if digest), "")
        return CommandPilot(command.name, (first, *(run for run, _ in more)), output, again)

    def _more(
        self, first: PilotRun, took_ns: int, command: CommandVariant
    ) -> list[tuple[PilotRun, str]]:
        """Further runs; what the second one of the baseline prints is told, too."""
        baseline = command == self.commands[0]
        clock_ns = self.ports.clock.monotonic_ns
        enough_ns = clock_ns() + round(self._budget_ns * _MORE_SHARE / len(self.commands))
        more: list[tuple[PilotRun, str]] = []
        for number in range(2, self._count(first.wall_ns, took_ns) + 1):
            # Starting a run may take longer than a short run.
            if number > FEWEST_RUNS and clock_ns() > enough_ns:
                break
            more.append(self._run_alone(command, digest=baseline and number == TO_BE_SURE))
        return more

    def _count(self, wall_ns: int, took_ns: int) -> int:
        """Number of runs of each command; with its start one takes `took_ns`."""
        allowed_ns = self._budget_ns * _PILOTS_SHARE / len(self.commands)
        return runs_to_look_at(wall_ns, took_ns, allowed_ns)

    def _run_alone(self, command: CommandVariant, *, digest: bool) -> tuple[PilotRun, str]:
        prepare_ns = 0
        with passing_tmp(*(command.prepare or ())) as tmp:
            if command.prepare is not None:
                process = for_variant(
                    plain_process(command.prepare, self.options),
                    command.variant,
                    tmp,
                )
                what = f"--prepare {' '.join(command.prepare)}"
                prepare_ns = run_unmeasured(self.ports.meter, what, process)
            free = CpuPlan(self.options.cpus or ())
            process = for_variant(
                program_process(command, self.options, free), command.variant, tmp
            )
            run, output = self._within_patience(command, process, digest=digest)
        return replace(run, prepare_ns=prepare_ns), output

    def _within_patience(
        self, command: CommandVariant, process: ProcessSpec, *, digest: bool
    ) -> tuple[PilotRun, str]:
        """The run, ended as soon as it shows that the budget is too small for it: InputError."""
        cut_ns = longest_pilot_ns(self.options)
        if cut_ns is None:
            return pilot_run(self.ports.meter, command.name, process, digest=digest)
        try:
            cut = replace(process, deadline_ns=cut_ns)
            return pilot_run(self.ports.meter, command.name, cut, digest=digest)
        except RunFailed as error:
            if error.failure.code == "deadline":
                raise budget_too_small(
                    self.options, command.name, len(self.commands), cut_ns
                ) from None
            raise

    def _require_rest(self, trial: Trial) -> None:
        spent_ns = self.ports.clock.monotonic_ns() - self.start_ns
        require_rest_of_budget(self.options, spent_ns, trial.wall_ns)

    def _of_servers(self) -> tuple[dict[str, CommandPilot], list[VariantFailure]]:
        """Whole executions by turns, on all CPUs: what both do when nothing holds them."""
        free = CpuPlan(self.options.cpus or ())
        request = RaceRequest(
            variants=variant_specs(self.commands, self.options, free, {}),
            mode=Mode.ALTERNATING,
            slice_ns=self.options.slice_ns,
            executions=1,
            seed=self.options.seed,
            ports=self.options.ports,
            observe=True,
            # How much memory they take is known afterwards.
            apart=True,
        )
        trials = [*self.drain(request)]
        failures = [failure for trial in trials for failure in trial.failures]
        require_rest(self.commands, failures)
        request = request.without({failure.variant for failure in failures})
        self._require_rest(trials[0])
        longest_ns = max(totals.wall_ns for totals in trials[0].variants)
        if self._count(longest_ns, trials[0].wall_ns // len(trials[0].variants)) > 1:
            trials += self.drain(replace(request, executions=FEWEST_RUNS - 1))
        gone = {failure.variant for trial in trials for failure in trial.failures}
        pilots = {
            command.variant: CommandPilot(
                command.name,
                tuple(run_of_totals(trial.variant(command.variant)) for trial in trials),
            )
            for command in self.commands
            if command.variant not in gone
        }
        startup_ns = max(trial.wall_ns for trial in trials) - sum(
            variant.wall_ns for variant in trials[-1].variants
        )
        return _with_startup(pilots, startup_ns // (len(pilots) + 1)), failures


def _with_startup(pilots: dict[str, CommandPilot], startup_ns: int) -> dict[str, CommandPilot]:
    return {
        variant: replace(
            pilot,
            runs=tuple(replace(run, prepare_ns=max(startup_ns, 0)) for run in pilot.runs),
        )
        for variant, pilot in pilots.items()
    }


def _noteworthy(pilots: Mapping[str, CommandPilot]) -> bool:
    return any(pilot.least_cpu_ns >= NOTEWORTHY_NS for pilot in pilots.values())


def require_expected(options: Options, name: str, output: str) -> None:
    """RunFailed where the hash of what a command printed is not that of what it must print.

    InputError where the file with that cannot be read.
    """
    wanted = [] if options.expected_sha256 is None else [options.expected_sha256]
    if options.expected is not None:
        wanted.append(_sha256_of(options.expected))
    if all(sha256 == output for sha256 in wanted):
        return
    file = "" if options.expected is None else f" ({visible(options.expected)})"
    what = f"its SHA-256 is {output}" if output else "it could not be read"
    text = f"printed what is not expected{file}: {what}"
    raise RunFailed(name, VariantFailure("", "unexpected-output", text))


def require_readable(path: str) -> None:
    """InputError where what a command must print cannot be read."""
    _sha256_of(path)


def _sha256_of(path: str) -> str:
    try:
        return file_sha256(Path(path))
    except OSError as error:
        raise InputError(f"--expected {visible(path)}: {error.strerror}") from None
