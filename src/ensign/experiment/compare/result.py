"""A finished race of commands: what its result follows from, in memory or as one bundle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from pydantic import TypeAdapter, ValidationError

import ensign
from ensign.experiment.compare.commands import (
    CommandVariant,
    FailedCommand,
    deadline_hint,
    failed_commands,
    failure_of,
)
from ensign.experiment.compare.options import Options
from ensign.experiment.compare.plan import race_ended_early
from ensign.experiment.compare.race import RaceOutcome
from ensign.experiment.compare.workloads import PlannedWorkloads
from ensign.experiment.exclusions import failure_findings
from ensign.experiment.judge import explored_only, judge, result_of_record
from ensign.experiment.loop import SoFar
from ensign.experiment.pilots import CommandPilot
from ensign.experiment.record import COMPARISON, FIGURES, Record, SeenRunning, figures_of, spread_of
from ensign.host.files import write_atomically
from ensign.host.regular_file import read_json
from ensign.model.errors import EnsignError, InputError
from ensign.model.experiment import Experiment
from ensign.model.finding_kinds.builds import SAME_BYTES
from ensign.model.finding_kinds.judgment import NO_TWIN
from ensign.model.finding_kinds.race import LONGER_WOULD_TELL
from ensign.model.findings import Finding
from ensign.model.results import Confirmation, MachineFacts, Result, Stopped, VariantFacts
from ensign.model.trials import Trial, VariantFailure, name_without_group
from ensign.model.units import duration_option
from ensign.stats.expected import longer_race
from ensign.stats.winner import promising


@dataclass(frozen=True, slots=True)
class FinishedRace:
    """A race that ended, not judged yet.

    `so_far` has who took part, `early` the commands that failed before it, `planned` what was seen
    of each workload; `withheld` is why nothing may be said, `same` who was not raced because an
    earlier command is the same program, `confinement` what confined it.
    """

    experiment: Experiment
    commands: tuple[CommandVariant, ...]
    so_far: SoFar
    planned: PlannedWorkloads
    outcome: RaceOutcome
    spent_ns: int
    machine: MachineFacts
    machine_findings: tuple[Finding, ...]
    made_at: str
    early: tuple[FailedCommand, ...] = ()
    shared: tuple[Finding, ...] = ()
    withheld: str = ""
    same: frozenset[str] = frozenset()
    confinement: str = ""

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Trials; one that failed for a deadline that nobody set says how to set one."""
        return tuple(
            replace(trial, failures=tuple(self._told(failure) for failure in trial.failures))
            if trial.failures
            else trial
            for trial in self.outcome.trials
        )

    @property
    def error(self) -> EnsignError | None:
        """The failure, also where some was measured."""
        late = [failure for trial in self.trials for failure in trial.failures]
        failed = (*self.early, *failed_commands(self.commands, late))
        return self.outcome.error or (failure_of(failed) if failed else None)

    def _told(self, failure: VariantFailure) -> VariantFailure:
        deadline_ns = self.planned.deadline_ns
        if failure.code != "deadline" or deadline_ns is None:
            return failure
        return replace(failure, text=f"{failure.text}; {deadline_hint(deadline_ns)}")


@dataclass(frozen=True, slots=True)
class CompareEvidence:
    """A race of commands that ended: its rule, what it rests on, and its trials.

    One that only `explores` claims nothing; the `second` race of its finalist does.
    """

    experiment: Experiment
    record: Record
    trials: tuple[Trial, ...]
    redo: str = ""
    explores: bool = False
    second: CompareEvidence | None = None

    def result(self) -> Result:
        """Everything that reports and the exit status need. Pure."""
        raced = self._of_race()
        if not self.explores or raced.withheld:
            return raced
        return replace(explored_only(raced), confirmation=self._confirmation(raced))

    def finalist(self) -> str:
        """The best command, if its mean is below the baseline's; empty where there is none."""
        return self._finalist(self._of_race())

    def _finalist(self, raced: Result) -> str:
        best = () if self._is_cut_off else promising(raced)
        return best[0].comparison.variant if best else ""

    @property
    def _is_cut_off(self) -> bool:
        return self.record.stopped in (Stopped.INTERRUPTED, Stopped.FAILED)

    def _confirmation(self, raced: Result) -> Confirmation:
        second, asked = self.second, self.experiment
        result = None if second is None else second.result()
        finalists = () if second is None else second.record.raced[1:]
        is_open = self._is_cut_off or (second is None and self._finalist(raced) != "")
        plan = json.dumps([finalists, asked.metric, asked.margin, asked.level, asked.seed])
        return Confirmation(
            finalists=finalists,
            rounds=0 if result is None else result.rounds_done,
            rounds_done=0 if result is None else result.rounds_done,
            level=asked.level,
            plan_sha256="" if is_open else hashlib.sha256(plan.encode()).hexdigest(),
            fresh=("executions",),
            result=result,
        )

    def _of_race(self) -> Result:
        record, extra = self.record, {"redo": self.redo}
        if record.withheld or not self.trials:
            known = result_of_record(self.experiment, record)
            failed = failure_findings(record.early, record.raced)
            return replace(known, findings=(*failed, *known.findings), extra=extra)
        result = judge(self.experiment, record, self.trials).result
        longer = () if record.doubt else self._longer(result)
        findings = (*result.findings, *longer)
        return replace(result, findings=findings, trials=self.trials, extra=extra)

    def write_bundle(self, path: Path) -> None:
        """One file that `read_bundled` reads; slices are left out. StorageFailed."""
        from ensign.store.bundle import pack  # noqa: PLC0415  # at first use

        bare = self.without_slices()
        text = json.dumps(
            TypeAdapter(CompareEvidence).dump_python(bare, mode="json"), indent=1, sort_keys=True
        )
        figures = json.dumps(figures_of(bare.result()), indent=1, sort_keys=True)
        members = {COMPARISON: text.encode(), f"{FIGURES}.json": figures.encode()}
        write_atomically(path.absolute(), pack(COMPARISON, ensign.__version__, members))

    def without_slices(self) -> CompareEvidence:
        """The same without what makes it large."""
        second = None if self.second is None else self.second.without_slices()
        trials = tuple(replace(trial, slices=()) for trial in self.trials)
        return replace(self, trials=trials, second=second)

    def _longer(self, result: Result) -> tuple[Finding, ...]:
        """Finding on a longer race that would decide what is open, where nothing else is wrong."""
        same = {finding.subject for finding in self.record.findings if finding.is_a(SAME_BYTES)}
        others = (one for one in result.comparisons if one.variant not in same)
        longer = longer_race(others, result.margin)
        if longer is None or self.record.used_s is None:
            return ()
        racing_ns = sum(trial.wall_ns for trial in self.trials)
        whole_ns = self.record.used_s * 1e9 - racing_ns + longer.times * racing_ns
        text = (
            f"to find a difference of {longer.difference * 100:g} % here in 4 of 5 races "
            f"takes about --budget {duration_option(whole_ns)}"
        )
        return (LONGER_WOULD_TELL.found(text),)


def read_bundled(folder: Path) -> CompareEvidence:
    """Content of a bundle. InputError where it is damaged, or of another version."""
    from ensign.store.trial_file import require_plausible  # noqa: PLC0415  # at first use

    path = folder / COMPARISON
    try:
        evidence = TypeAdapter(CompareEvidence).validate_python(read_json(path.read_bytes()))
    except (ValidationError, ValueError):
        raise InputError(f"{COMPARISON} in the bundle is of another version of ensign") from None
    try:
        second = () if evidence.second is None else evidence.second.trials
        for trial in (*evidence.trials, *second):
            require_plausible(trial)
    except ValueError as error:
        raise InputError(f"{COMPARISON} in the bundle is no comparison: {error}") from None
    return evidence


_NO_TWIN = "no A/A twin was raced: nothing shows what this measurement can be trusted with"


def compare_evidence(options: Options, raced: FinishedRace, redo: str = "") -> CompareEvidence:
    """A race that ended as what its result follows from."""
    record = compare_record(options, raced)
    return CompareEvidence(raced.experiment, record, named_trials(raced), redo)


def compare_record(options: Options, raced: FinishedRace) -> Record:
    """Evidence of the result beside its trials."""
    left = [command for command in raced.commands if command.variant in raced.so_far.variants]
    pilots = raced.planned.pilots
    return Record(
        key="",
        raced=tuple(e.name for e in raced.commands if e.variant not in raced.same),
        rounds_planned=len({trial.round_index for trial in raced.outcome.trials}),
        builds=(),
        machine=raced.machine,
        findings=(
            *race_ended_early(raced.outcome.error),
            *raced.shared,
            *raced.planned.findings,
            *raced.planned.traces.findings,
            *raced.machine_findings,
            *(() if options.twin else (NO_TWIN.found(_NO_TWIN),)),
        ),
        commands=tuple((command.name, command.text) for command in raced.commands),
        toolchains=(),
        source=(),
        version=ensign.__version__,
        confinement=raced.confinement,
        made_at=raced.made_at,
        complete=True,
        metric=raced.experiment.metric,
        has_twin=options.twin,
        mode=raced.planned.mode,
        early=tuple(
            replace(command.failure, variant=command.command.name) for command in raced.early
        ),
        seen={command.name: _seen(raced, command) for command in left},
        measured=tuple(
            _piloted(command, pilots) for command in left if command.variant in raced.planned.pilots
        ),
        doubt=raced.planned.doubt(loaded=options.serves),
        withheld=raced.withheld,
        stopped=raced.outcome.stopped,
        used_s=raced.spent_ns / 1e9,
    )


def named_trials(raced: FinishedRace) -> tuple[Trial, ...]:
    """The trials with the names that readers know; variants race under short ones.

    Those are safe in paths.
    """
    names = {command.variant: command.name for command in raced.commands}
    return tuple(_named(trial, names) for trial in raced.trials)


def _named(trial: Trial, names: Mapping[str, str]) -> Trial:
    def name(variant: str) -> str:
        bare = name_without_group(variant)
        return names.get(bare, bare) + variant.removeprefix(bare)

    return replace(
        trial,
        variants=tuple(replace(totals, variant=name(totals.variant)) for totals in trial.variants),
        slices=tuple(replace(record, variant=name(record.variant)) for record in trial.slices),
        failures=tuple(
            replace(failure, variant=name(failure.variant)) for failure in trial.failures
        ),
        findings=tuple(
            replace(finding, subject=name(finding.subject)) for finding in trial.findings
        ),
        groups=tuple(tuple(map(name, group)) for group in trial.groups),
    )


def _seen(raced: FinishedRace, command: CommandVariant) -> SeenRunning:
    trace = raced.planned.traces.of(command.variant)
    return SeenRunning(trace.mapped, trace.not_judged)


def _piloted(command: CommandVariant, pilots: Mapping[str, CommandPilot]) -> VariantFacts:
    pilot = pilots[command.variant]
    return VariantFacts(
        variant=command.name,
        workload="",
        user_s=median(run.user_ns for run in pilot.runs) / 1e9,
        system_s=median(run.system_ns for run in pilot.runs) / 1e9,
        wall=spread_of([run.wall_ns / 1e9 for run in pilot.runs]),
        peak_memory_bytes=pilot.peak_memory_bytes,
        cost_ns=float(pilot.cpu_ns),
    )
