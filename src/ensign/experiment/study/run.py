"""The steps of a study; every one of them takes up what is already there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from ensign.experiment.exclusions import same_programs
from ensign.experiment.judge import result_of_record
from ensign.experiment.machine import MachineState, machine_state
from ensign.experiment.steps import ExperimentOutcome
from ensign.experiment.study.budget import require_any_time_left
from ensign.experiment.study.confirm import confirm
from ensign.experiment.study.confirm_plan import read_plan
from ensign.experiment.study.layouts import spread_race
from ensign.experiment.study.phase import (
    PlannedPhase,
    RaceSetup,
    SideRace,
    StudyContext,
    race_phase,
    race_setup,
)
from ensign.experiment.study.pilots import Pilots, PlanContext, piloted
from ensign.experiment.study.prepare import (
    BuiltPrograms,
    build_programs,
    require_commands,
)
from ensign.experiment.study.record import require_variants, started
from ensign.experiment.study.relink_count import chosen_count, store_count, stored_count
from ensign.experiment.study.request_problems import require_requests
from ensign.experiment.study.result import experiment_of, with_redo
from ensign.experiment.study.round_plan import (
    RoundPlan,
    fixed_plan,
    plan_findings,
    with_longer_slices,
)
from ensign.experiment.study.set_up import MeterAfterSetUp
from ensign.experiment.study.stored import (
    PhaseOutcome,
    SecondPhase,
    stored_result,
    with_confirmation,
)
from ensign.experiment.study.tracing import Sharing, judged_programs
from ensign.experiment.study.variants import VariantSet
from ensign.experiment.study_file import StudyFile
from ensign.model.errors import EnsignError, InputError, Interrupted, RaceFailed
from ensign.model.finding_kinds.race import PUBLISHED_SUITE
from ensign.model.findings import Finding
from ensign.model.results import Result, Stopped
from ensign.model.study_suite import Suite

# Of the memory that is free when a study begins, for all variants of a race.
_SHARE_OF_MEMORY = 0.8


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """Both phases of a study; `second` is None where nothing is to be confirmed.

    `error` is what failed while it raced: what was measured before is to be reported first. Equal
    programs are all there is, where they are not raced.
    """

    first: PhaseOutcome | None
    second: SecondPhase | None = None
    error: RaceFailed | None = None
    equal: EqualPrograms | None = None


@dataclass(frozen=True, slots=True)
class EqualPrograms:
    """Nothing to race: all that was built is one program."""

    programs: BuiltPrograms
    before: MachineState
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Ready:
    """Knowledge before there is a plan; without `pilots` there is one already."""

    prepared: BuiltPrograms
    setup: RaceSetup
    variants: VariantSet
    sharing: Sharing
    planning: PlanContext
    pilots: Pilots | None
    shared: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class StudySteps:
    """Steps of an experiment for a study.

    `known` is what there is to say beforehand; `race_same`: where all programs are equal the
    baseline races against its twin. `told` is what others say of the result, instead of how the
    study's file is run again.
    """

    file: StudyFile
    context: StudyContext
    update_lock: bool = False
    install_dependencies: bool = False
    known: tuple[Finding, ...] = ()
    race_same: bool = True
    told: Callable[[Result], Result] | None = None
    meter: MeterAfterSetUp | None = None
    cleaned: list[EnsignError] = field(default_factory=list)

    @contextmanager
    def held(self) -> Iterator[StudySteps]:
        """The study's folder. Interrupted on Ctrl-C; the same call goes on where it stopped.

        Set-up commands run before the first execution, if there is any, and clean-up commands then.
        """
        meter = MeterAfterSetUp(self.context.ports.meter, self.file)
        try:
            with self.context.folder.locked(), meter.cleaned_up(self.cleaned):
                yield replace(self, meter=meter)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; the same command goes on where it stopped") from None

    def prepare(self) -> BuiltPrograms:
        """Builds what is missing, proved and checked."""
        file, context = self.file, self.context
        require_commands(file, context.ports.env)
        require_requests(file)
        require_any_time_left(file.study, len(file.variants) - 1)
        programs = build_programs(
            file,
            context.cache,
            context.ports,
            context.progress.build,
            update_lock=self.update_lock,
            install_dependencies=self.install_dependencies,
        )
        require_variants(context.folder, programs)
        return programs

    @property
    def _racing(self) -> StudyContext:
        """Context of executions: after the set-up commands."""
        meter, context = self.meter, self.context
        if meter is None:
            return context
        return replace(context, ports=replace(context.ports, meter=meter))

    def _ready(self, prepared: BuiltPrograms, before: MachineState) -> _Ready:
        """The programs with as many relinks as are worth it, and pilots where there is no plan."""
        file, context = self.file, self._racing
        folder, ports = context.folder, context.ports
        setup = race_setup(file, prepared)
        first_key, chosen, worth = setup.key, stored_count(folder, setup.key), None
        prepared, setup = self._with_relinks(prepared, setup, chosen)
        memory_bytes = round(before.machine.memory.available_bytes * _SHARE_OF_MEMORY)
        variants = replace(setup.variants, memory_bytes=memory_bytes)
        folder.remove_leftovers()
        planning = PlanContext(ports.meter, ports.clock, folder, context.progress.pilot)
        is_planned = folder.json_file(f"plans/{setup.key}").exists()
        with nullcontext(()) if is_planned else ports.race_lock.held() as shared:
            # Before baseline and twin are alive at once.
            sharing = context.tracing.sharing(file.study, variants, first_key)
            variants = replace(variants, apart=sharing.apart)
            # Before each variant is run once: what cannot fit is refused at once.
            planning = replace(planning, traced=sharing.of_baseline)
            pilots = None if is_planned else piloted(planning, file.study, variants)
            if pilots is not None and chosen is None:
                results = prepared.report.results
                count = chosen_count(planning, file.study, variants, results, pilots)
                pilots = replace(pilots, spent_ns=pilots.spent_ns + count.spent_ns)
                store_count(folder, first_key, count.relinks)
                worth = count.relinks
        prepared, setup = self._with_relinks(prepared, setup, worth)
        variants = replace(setup.variants, memory_bytes=memory_bytes, apart=sharing.apart)
        return _Ready(prepared, setup, variants, sharing, planning, pilots, shared)

    def _with_relinks(
        self, prepared: BuiltPrograms, setup: RaceSetup, count: int | None
    ) -> tuple[BuiltPrograms, RaceSetup]:
        """The programs with so many relinks, built once more where there are fewer."""
        if count is None or count <= setup.variants.rotation:
            return prepared, setup
        file, context = self.file.with_relinks(count), self.context
        prepared = build_programs(file, context.cache, context.ports, context.progress.build)
        return prepared, race_setup(file, prepared)

    def plan(self, prepared: BuiltPrograms) -> PlannedPhase | EqualPrograms:
        """The rounds; found in the store, or by unmeasured executions."""
        file, folder = self.file, self.context.folder
        study, before = file.study, machine_state()
        if self._are_equal(prepared):
            return EqualPrograms(prepared, before)
        ready = self._ready(prepared, before)
        prepared, setup, sharing = ready.prepared, ready.setup, ready.sharing
        key, variants = setup.key, ready.variants
        judged = self._racing.tracing.judged(study, prepared, variants, key, sharing.ran)
        programs = judged_programs(prepared, judged)
        require_variants(folder, programs)
        if self._are_equal(programs):
            return EqualPrograms(programs, before, judged.findings)
        variants = replace(variants, artifacts=programs.artifacts)
        left_out = judged.wrong | judged.same.keys()
        natural = replace(setup.natural.without(left_out), apart=sharing.apart)
        plan = fixed_plan(ready.planning, study, variants, key, ready.pilots)
        study = file.with_metric(plan.metric).study
        longer, longer_plan = with_longer_slices(study, plan)
        beside = [SideRace(longer, variants, longer_plan)]
        baseline = programs.report.results[0].facts
        spread = spread_race(study, natural, plan, baseline, programs.relinks)
        if spread is not None:
            beside.append(SideRace(study, *spread))
        return PlannedPhase(
            study=study,
            programs=programs,
            variants=variants,
            rounds=plan,
            judged=judged,
            before=before,
            findings=(
                *self.known,
                *plan_findings(plan),
                *ready.shared,
                *setup.findings,
                *sharing.findings,
                *suite_findings(file.suite),
            ),
            source=suite_facts(file.suite),
            beside=tuple(beside),
            spread_key="" if spread is None else spread[1].key,
        ).checked()

    def race(self, planned: PlannedPhase | EqualPrograms) -> StudyOutcome:
        """The rounds, and the races beside them."""
        if isinstance(planned, EqualPrograms):
            return StudyOutcome(None, equal=planned)
        try:
            return StudyOutcome(race_phase(planned, self._racing))
        except RaceFailed as error:
            return StudyOutcome(None, error=error)

    def confirm(self, raced: StudyOutcome) -> StudyOutcome:
        """The best variants built afresh and raced again, where that is or was asked for."""
        first = raced.first
        if first is None:
            return raced
        try:
            raced = replace(raced, second=self._confirmed(first))
            _require_left(first)
        except RaceFailed as error:
            return replace(raced, error=error)
        return raced

    def judge(self, raced: StudyOutcome) -> ExperimentOutcome:
        """The result; where racing failed, that of what was measured before."""
        if raced.equal is not None:
            return ExperimentOutcome(self._with_redo(self._equal(raced.equal)))
        if raced.first is None or (raced.error is not None and raced.second is None):
            try:
                return ExperimentOutcome(self._with_redo(stored_result(self.file)), raced.error)
            except InputError as error:
                # Nothing whole was measured before it failed.
                raise raced.error or error from None
        explored = raced.first.result()
        result = with_confirmation(explored, self.file, self.context.folder, raced.second)
        failed = raced.error or next(iter(self.cleaned), None)
        return ExperimentOutcome(self._with_redo(result), failed)

    def _are_equal(self, programs: BuiltPrograms) -> bool:
        return not self.race_same and len(programs.artifacts) == 1

    def _equal(self, equal: EqualPrograms) -> Result:
        study, programs = self.file.study, equal.programs
        record = started(study, programs, RoundPlan("", 0, {}, 0), equal.before)
        withheld = same_programs([result.facts.variant for result in programs.report.results])
        findings = (*self.known, *record.findings, *equal.findings)
        record = replace(record, findings=findings, withheld=withheld, stopped=Stopped.WITHHELD)
        return result_of_record(experiment_of(study), record)

    def _with_redo(self, result: Result) -> Result:
        if self.told is not None:
            return self.told(result)
        race = self.file.study.race
        raced = {"budget": race.budget, "precision": race.precision or ""}
        return with_redo(result, self.file, raced)

    def _confirmed(self, first: PhaseOutcome) -> SecondPhase | None:
        begun = read_plan(self.context.folder, first.rounds.key) is not None
        if not begun and self.file.study.race.confirm is None:
            return None
        file = self.file.with_metric(first.rounds.metric)
        return confirm(file, first, self._racing)


def _require_left(first: PhaseOutcome) -> None:
    """RaceFailed where every variant failed."""
    others = set(first.record.raced[1:])
    if others and others <= first.failed:
        raise RaceFailed("every variant failed while it was raced: nothing is left to compare")


def suite_facts(suite: Suite | None) -> tuple[tuple[str, str], ...]:
    """Origin of the workloads, and how they differ from what was published."""
    if suite is None:
        return ()
    place = f"version {suite.version}" if suite.path is None else f"folder {suite.path}"
    scale = "as published"
    if suite.scale != 1:
        values = "too" if suite.scale_values else "as published"
        scale = (
            f"key spaces, preloads and fixed numbers of requests times {suite.scale:g}, "
            f"sizes of values {values}"
        )
    return (
        ("suite", f"{suite.kind}, {place}"),
        ("suite scale", scale),
        ("suite load", "one thread of ensign's own generator holds all connections"),
    )


def suite_findings(suite: Suite | None) -> tuple[Finding, ...]:
    """The same as a note in every report."""
    origin = "; ".join(f"{name.replace('suite ', '')}: {text}" for name, text in suite_facts(suite))
    return (PUBLISHED_SUITE.found(origin),) if origin else ()
