"""A phase of a study: its race, the record that it leaves, and whom it tells what happens."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ensign.experiment.confinement import inherited_library_path
from ensign.experiment.machine import MachineState, cpus_of_study, machine_state
from ensign.experiment.pilots import CommandPilot
from ensign.experiment.ports import Ports
from ensign.experiment.record import Record
from ensign.experiment.self_timed import TO_BE_SURE, by_median, by_the_first, self_timed_findings
from ensign.experiment.study.executed_files import Judged, RaceCheck
from ensign.experiment.study.functions import study_functions
from ensign.experiment.study.layouts import rotating
from ensign.experiment.study.pilots import (
    alone_again,
)
from ensign.experiment.study.prepare import BuiltPrograms
from ensign.experiment.study.record import (
    STUDY,
    close_record,
    raced_by,
    started,
    usable_record,
    with_checks_of,
    write_record,
)
from ensign.experiment.study.round_plan import RoundPlan, RoundProgress, longer_key, missing_trials
from ensign.experiment.study.rounds import RaceContext, race_plan, round_findings
from ensign.experiment.study.sensitivity import sensitivity_findings
from ensign.experiment.study.stored import PhaseOutcome, stored_phase
from ensign.experiment.study.tracing import StudyTracing
from ensign.experiment.study.variants import VariantSet
from ensign.experiment.study_file import StudyFile
from ensign.host.cache import Cache
from ensign.meter.client import Meter
from ensign.model.builds import OnEvent
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.trials import Mode, Trial, failed_variants
from ensign.store.folder import StudyFolder
from ensign.workloads.registry import may_end_by_the_clock


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
    hashes = {build.variant: build.identity for build in facts if not build.out}
    raced = {fact.variant: fact.layouts for fact in facts if fact.variant in variants.relinks}
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
    """Context of a study, and its listeners."""

    cache: Cache
    ports: Ports
    folder: StudyFolder
    progress: ProgressCallbacks

    @property
    def tracing(self) -> StudyTracing:
        """Tracer of variants."""
        ports = self.ports
        tracer = ports.tracing(ports.meter)
        return StudyTracing(tracer, ports.clock, self.folder, self.progress.pilot)


@dataclass(frozen=True, slots=True)
class SideRace:
    """A race beside the rounds, of fewer workloads or of relinks; no round of theirs counts."""

    study: Study
    variants: VariantSet
    plan: RoundPlan


@dataclass(frozen=True, slots=True)
class PlannedPhase:
    """A race and its plan; `record` names where it is kept.

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
                replace(side_race, variants=replace(side_race.variants, check=check))
                for side_race in self.beside
            ),
        )


def race_phase(phase: PlannedPhase, context: StudyContext) -> PhaseOutcome:
    """Races what the store lacks. RaceFailed where the baseline fails; KeyboardInterrupt passes."""
    folder, name, key = context.folder, phase.record, phase.rounds.key
    races = [(side_race.study, side_race.variants, side_race.plan) for side_race in phase.beside]
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
    builds = phase.programs.report.results
    functions, untrained = study_functions(phase.study, phase.variants, trials, builds)
    about = (*timed, *sensitive, *untrained, *shared)
    findings = (*record.findings, *round_findings(phase.study, rounds), *about)
    record = replace(
        raced_by(record, rounds),
        findings=tuple(dict.fromkeys(findings)),
        functions=functions,
    )
    record = close_record(record, phase.before, machine_state())
    write_record(folder, record, name)
    longer = beside.get(longer_key(key), ())
    return PhaseOutcome(
        phase.study, rounds, record, trials, longer, beside.get(phase.spread_key, ())
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
    """Variants that fail in one race take no part in the later ones."""
    trials_by_key: dict[str, tuple[Trial, ...]] = {}
    for race in phase.beside:
        if phase.variants.has_failed(gone):
            break
        left = race.variants.without(gone)
        _, trials = race_plan(racing, race.study, left, race.plan)
        trials_by_key[race.plan.key] = trials
        gone |= failed_variants(trials)
    return trials_by_key


def _self_timed(
    phase: PlannedPhase, context: StudyContext, rounds: RoundPlan, trials: tuple[Trial, ...]
) -> tuple[Finding, ...]:
    study, meter = phase.study, context.ports.meter
    unasked = {name: runs for name, runs in rounds.alone.items() if name not in rounds.self_timed}
    signs = shown_by_the_race(study, unasked, trials)
    if signs:
        signs = shown_again(meter, study, phase.variants, rounds, signs, trials)
    return self_timed_findings(signs)


_KEY_CHARACTERS = 16


def plan_key(
    study: Study, hashes: Mapping[str, str], relinks: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Names everything that a trial depends on: programs, workloads, server, race. Pure.

    `hashes` are the loadable bytes per variant, `relinks` those of the relinks that are raced.
    Trials under one key may be compared.
    """
    left_out = {"margin", "prefer", "slice_check", "confirm", "executions"}
    if study.race.precision is None:
        left_out.add("precision")
    if not study.race.warmup:
        left_out.add("warmup")
    if study.race.stopping == "fixed":
        left_out.add("stopping")
    if not study.race.samples:
        left_out.add("samples")
    keys = study.model_dump(
        mode="json", include={"server", "cpus", "race"}, exclude={"race": left_out}
    )
    keys["workloads"] = [workload.identity for workload in study.workloads]
    if study.inputs:
        keys["inputs"] = {path: file.sha256 for path, file in study.inputs.items()}
    programs: dict[str, object] = {"study": keys, "programs": dict(hashes)}
    if relinks:
        programs["relinks"] = {name: list(relink) for name, relink in relinks.items()}
    text = json.dumps(programs, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARACTERS]


def shown_again(
    meter: Meter,
    study: Study,
    variants: VariantSet,
    rounds: RoundPlan,
    found: Mapping[str, str],
    trials: Sequence[Trial],
) -> dict[str, str]:
    """Those `found` in the race that executions alone after it show, too.

    On a machine that became faster meanwhile, fixed work uses less in the race than before it.
    """
    after = {}
    for workload in study.workloads:
        name = workload.name
        if name in found:
            known = (workload, rounds.requests.get(name), rounds.alone[name])
            after[name] = alone_again(meter, study, variants, *known)
    return shown_by_the_race(study, after, trials)


def shown_by_the_race(
    study: Study, alone: Mapping[str, CommandPilot], trials: Sequence[Trial]
) -> dict[str, str]:
    """Workloads that end by the wall clock, by executions in slices. Pure.

    The first two, or the medians of all: on a busy machine single ones say little.
    """
    signs: dict[str, str] = {}
    asked = [workload.name for workload in study.workloads if may_end_by_the_clock(workload)]
    for name in asked:
        pilot = alone.get(name)
        if pilot is None:
            continue
        raced = sorted(
            (
                trial
                for trial in trials
                if trial.workload == name and trial.mode is Mode.INTERLEAVED
            ),
            key=lambda trial: trial.round_index,
        )
        if len(raced) < TO_BE_SURE:
            continue
        pilots = {raced[0].variants[0].variant: pilot}
        if shown := by_the_first(pilots, raced) or by_median(pilots, raced):
            signs[name] = shown[0].how
    return signs
