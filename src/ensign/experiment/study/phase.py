"""Whom a run tells what happens."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ensign.experiment.confinement import inherited_library_path
from ensign.experiment.machine import MachineState, cpus_of_study, machine_state
from ensign.experiment.ports import Ports
from ensign.experiment.record import STUDY, Record, usable_record, write_record
from ensign.experiment.study.executed_files import Judged
from ensign.experiment.study.layouts import rotating
from ensign.experiment.study.plan_store import plan_key
from ensign.experiment.study.prepare import BuiltPrograms
from ensign.experiment.study.record import close_record, raced_by, started, with_checks_of
from ensign.experiment.study.result import study_result
from ensign.experiment.study.round_plan import RoundPlan, RoundProgress, longer_key, missing_trials
from ensign.experiment.study.rounds import RaceContext, race_plan, round_findings
from ensign.experiment.study.self_timed import self_timed_findings, shown_again, shown_by_the_race
from ensign.experiment.study.sensitivity import sensitivity_findings
from ensign.experiment.study.tracing import Sharing, SharingContext, judged_by_run
from ensign.experiment.study.variants import ProgramTree, VariantSet
from ensign.experiment.study_file import StudyFile
from ensign.experiment.traced_files import ExpectedFiles, FileMismatch, compare_files, summarize
from ensign.experiment.tracing import Identities
from ensign.host.cache import Cache
from ensign.model.build_events import OnEvent
from ensign.model.errors import RaceFailed
from ensign.model.executed_files import RanFile, RanOnce
from ensign.model.finding_kinds.ran import RAN_SOMETHING_ELSE, RAN_UNSEEN
from ensign.model.findings import Finding
from ensign.model.results import Result
from ensign.model.study import Study
from ensign.model.trials import Trial, VariantFailure, failed_variants, seen_in_race
from ensign.store.folder import StudyFolder


@dataclass(frozen=True, slots=True)
class ProgressCallbacks:
    """Whom to tell what happens: builds, pilots by workload, the plan of the rounds, trials.

    A finding is told that is worth to be known before the rounds have ended.
    """

    build: OnEvent
    pilot: Callable[[str], None]
    plan: Callable[[RoundPlan], None]
    trial: Callable[[RoundProgress], None]
    finding: Callable[[Finding], None]


@dataclass(frozen=True, slots=True)
class RaceSetup:
    """`variants` take turns with their relinks, `natural` have none; `key` names both."""

    natural: VariantSet
    variants: VariantSet
    key: str
    findings: tuple[Finding, ...]


def race_setup(file: StudyFile, programs: BuiltPrograms) -> RaceSetup:
    """The programs on their CPUs."""
    cpus, findings = cpus_of_study(file.study.cpus)
    natural = VariantSet(
        artifacts=programs.artifacts,
        tools=dict(programs.tools),
        cpus=cpus,
        folder=str(file.folder),
        trees=programs.trees,
        library_path=inherited_library_path(file.study.sandbox, os.environ),
    )
    variants = rotating(file.study, natural, programs.relinks)
    facts = [result.facts for result in programs.report.results]
    # Who is out decides who races: where that changes, trials are others.
    hashes = {each.variant: each.identity for each in facts if not each.out}
    raced = {each.variant: each.layouts for each in facts if each.variant in variants.relinks}
    return RaceSetup(natural, variants, plan_key(file.study, hashes, raced), findings)


def is_complete(
    folder: StudyFolder,
    known: Record,
    key: str,
    programs: BuiltPrograms,
    name: str = STUDY,
) -> Record | None:
    """The record with what the checks say now, where it says that all of a race is there."""
    if known.key != key or not known.complete:
        return None
    checked = with_checks_of(known, programs.report)
    if checked != known:
        write_record(folder, checked, name)
    return checked


@dataclass(frozen=True, slots=True)
class StudyContext:
    """Where a study is carried out, and who is told."""

    cache: Cache
    ports: Ports
    folder: StudyFolder
    progress: ProgressCallbacks

    @property
    def looking(self) -> SharingContext:
        """Who looks at what variants write."""
        ports = self.ports
        tracer = ports.tracing(ports.meter)
        return SharingContext(tracer, ports.clock, self.folder, self.progress.pilot)

    def judged(
        self,
        study: Study,
        programs: BuiltPrograms,
        variants: VariantSet,
        key: str,
        sharing: Sharing,
    ) -> Judged:
        """What every variant runs; see `judged_by_run`."""
        store = (self.folder, self.ports, self.progress.pilot)
        return judged_by_run(study, programs, variants, key, store, sharing.ran)


@dataclass(frozen=True, slots=True)
class SideRace:
    """A race beside the rounds, of fewer workloads or of relinks; no round of theirs counts."""

    study: Study
    variants: VariantSet
    plan: RoundPlan


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """What is raced, by which plan; `record` names where it is kept.

    `beside` are the races after the rounds (at longer slices, of relinks), `findings` and `source`
    what there is to say of it beforehand, `before` the machine as it was then.
    """

    study: Study
    programs: BuiltPrograms
    variants: VariantSet
    rounds: RoundPlan
    judged: Judged
    before: MachineState
    findings: tuple[Finding, ...]
    source: tuple[tuple[str, str], ...] = ()
    beside: tuple[SideRace, ...] = ()
    spread_key: str = ""
    plan_sha256: str = ""
    record: str = STUDY

    def checked(self) -> PlannedPhase:
        """The same, with every trial checked for what ran in it."""
        check = RaceCheck(self.judged.traces, self.variants.artifacts[0][0])
        return replace(
            self,
            variants=replace(self.variants, check=check),
            beside=tuple(
                replace(each, variants=replace(each.variants, check=check)) for each in self.beside
            ),
        )


@dataclass(frozen=True, slots=True)
class PhaseOutcome:
    """A phase that was raced: what it rests on, and its trials without slices."""

    study: Study
    rounds: RoundPlan
    record: Record
    trials: tuple[Trial, ...]
    longer: tuple[Trial, ...] = ()
    relinked: tuple[Trial, ...] = ()

    def result(self, finalists: int = 1) -> Result:
        """What it says. InputError where no round is whole."""
        return study_result(
            self.study, self.record, self.trials, self.longer, self.relinked, finalists=finalists
        )

    @property
    def failed(self) -> frozenset[str]:
        """The variants that failed in the rounds."""
        return failed_variants(self.trials)


def race_phase(phase: PlannedPhase, context: StudyContext) -> PhaseOutcome:
    """Races what the store lacks. RaceFailed where the baseline fails; KeyboardInterrupt passes."""
    folder, name, key = context.folder, phase.record, phase.rounds.key
    races = [(each.study, each.variants, each.plan) for each in phase.beside]
    # A trial that was damaged and deleted is raced again.
    missing = not phase.rounds.closed or any(
        missing_trials(*race, folder)
        for race in ((phase.study, phase.variants, phase.rounds), *races)
    )
    known = usable_record(folder, name)
    if known is not None and not missing:
        complete = is_complete(folder, known, key, phase.programs, name)
        if complete is not None:
            return stored_phase(phase.study, complete, folder, phase.rounds)
    record = _begun(phase)
    write_record(folder, record, name)
    context.progress.plan(phase.rounds)
    ports, progress = context.ports, context.progress
    racing = RaceContext(
        ports.meter, ports.clock, folder, progress.plan, progress.trial, progress.finding
    )
    with ports.race_lock.held() as shared:
        rounds, trials = race_plan(racing, phase.study, phase.variants, phase.rounds)
        beside = _race_beside(phase, racing, failed_variants(trials))
        timed = _self_timed(phase, context, rounds, trials)
    sensitive = sensitivity_findings(phase.study, phase.variants, trials)
    said = (*record.findings, *round_findings(phase.study, rounds), *timed, *sensitive, *shared)
    record = replace(raced_by(record, rounds), findings=tuple(dict.fromkeys(said)))
    record = close_record(record, phase.before, machine_state())
    write_record(folder, record, name)
    longer = beside.get(longer_key(key), ())
    return PhaseOutcome(
        phase.study, rounds, record, trials, longer, beside.get(phase.spread_key, ())
    )


def stored_phase(
    study: Study, record: Record, folder: StudyFolder, rounds: RoundPlan | None = None
) -> PhaseOutcome:
    """A phase as the store has it."""
    return PhaseOutcome(
        study,
        rounds or RoundPlan(record.key, record.rounds_planned, {}, 0),
        record,
        folder.trials(record.key),
        folder.trials(longer_key(record.key)),
        folder.trials(record.spread_key) if record.spread_key else (),
    )


def _begun(phase: PlannedPhase) -> Record:
    record = started(phase.study, phase.programs, phase.rounds, phase.before)
    return replace(
        record,
        findings=(*record.findings, *phase.judged.findings, *phase.findings),
        source=(*record.source, *phase.source),
        ran=phase.judged.ran,
        relinks=phase.variants.rotation,
        spread_key=phase.spread_key,
        plan_sha256=phase.plan_sha256,
    )


def _race_beside(
    phase: PlannedPhase, racing: RaceContext, gone: frozenset[str]
) -> dict[str, tuple[Trial, ...]]:
    """What fails in one race takes no part in the later ones."""
    found: dict[str, tuple[Trial, ...]] = {}
    for race in phase.beside:
        if phase.variants.has_failed(gone):
            break
        left = race.variants.without(gone)
        _, trials = race_plan(racing, race.study, left, race.plan)
        found[race.plan.key] = trials
        gone |= failed_variants(trials)
    return found


def _self_timed(
    phase: PlannedPhase, context: StudyContext, rounds: RoundPlan, trials: tuple[Trial, ...]
) -> tuple[Finding, ...]:
    study, meter = phase.study, context.ports.meter
    unasked = {name: runs for name, runs in rounds.alone.items() if name not in rounds.self_timed}
    found = shown_by_the_race(study, unasked, trials)
    if found:
        found = shown_again(meter, study, phase.variants, rounds, found, trials)
    return self_timed_findings(found)


@dataclass(frozen=True, slots=True)
class RaceCheck:
    """Holds each trial against the traced executions: who ran something else is out.

    `traces` are of all variants that take part, on each workload on which they were traced. The
    `baseline` is the variant that other variants are made of: its twin, and its relinks.
    """

    traces: Sequence[RanOnce]
    baseline: str
    identities: Identities = field(default_factory=Identities)

    def __call__(self, trial: Trial, variants: VariantSet) -> Trial:
        """The trial without the variants that ran something else, which have failed in it.

        What ran besides is a finding. RaceFailed where it is the baseline, or its twin.
        """
        failures: list[VariantFailure] = []
        findings: list[Finding] = []
        paths = dict(variants.artifacts)
        for variant in (each.variant for each in trial.variants):
            # The twin and the baseline of a later group have names of their own.
            path = paths.get(variant) or variants.twin or variants.artifacts[0][1]
            found = self._seen(trial, variant, variants.trees.get(path))
            problems = (*found.others, *found.changed)
            if found.unseen and not found.own:
                problems = (*problems, *found.unseen)
            if problems and (variant not in paths or variant == variants.artifacts[0][0]):
                raise RaceFailed(
                    f"{variant} ran other files than when it was looked at, on workload "
                    f"{trial.workload}: {summarize(problems)}; remove the study's results folder "
                    "to look at it again"
                )
            if problems:
                failures.append(
                    VariantFailure(
                        variant,
                        RAN_SOMETHING_ELSE.code,
                        summarize(problems),
                        workload=trial.workload,
                        round_index=trial.round_index,
                    )
                )
            elif found.unseen:
                findings.append(RAN_UNSEEN.found(summarize(found.unseen), variant))
        if not failures and not findings:
            return trial
        left = trial.without({each.variant for each in failures})
        return replace(
            left,
            failures=(*left.failures, *failures),
            findings=(*left.findings, *findings),
        )

    def _seen(self, trial: Trial, variant: str, tree: ProgramTree | None) -> FileMismatch:
        looked = self._looked_at(variant, trial.workload, tree)
        if looked is None:
            return FileMismatch()
        return compare_files(looked, seen_in_race([trial], variant), self.identities)

    def _looked_at(
        self, variant: str, workload: str, tree: ProgramTree | None
    ) -> ExpectedFiles | None:
        """What that variant ran there; where it was not traced, its own files on another workload.

        It then runs the machine's files as the baseline does.
        """
        own = [each for each in self.traces if each.variant == variant]
        own = own or [each for each in self.traces if each.variant == self.baseline]
        here = [each for each in own if each.workload == workload]
        chosen: list[RanOnce] = here[:1]
        if not here:
            chosen = own[:1]
            chosen += [
                replace(each, files=tuple(file for file in each.files if not file.built))
                for each in self.traces
                if (each.variant, each.workload) == (self.baseline, workload)
            ][:1]
        files = dict(_placed([file for each in chosen for file in each.files], tree))
        if not files:
            return None
        return ExpectedFiles(
            identities={path: file.sha256 for path, file in files.items()},
            made=frozenset(path for path, file in files.items() if file.made),
            copied=None if tree is None else tree.files,
            whole=all(not each.not_judged for each in chosen),
        )


def _placed(files: Sequence[RanFile], tree: ProgramTree | None) -> Iterator[tuple[str, RanFile]]:
    """Files by the paths that they have in the race, or that they are copied from."""
    for file in files:
        if not file.built:
            yield file.path, file
        elif tree is not None:
            yield f"{tree.folders[0]}/{file.path}", file
