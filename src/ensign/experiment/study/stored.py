"""The results of a study as its folder has them; nothing is built or raced for that."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ensign.experiment.judge import explored_only
from ensign.experiment.record import FIGURES, Record, figures_of
from ensign.experiment.study.confirm_plan import (
    ConfirmPlan,
    confirming_level,
    confirming_study,
    edited,
    made_afresh,
    read_plan,
    record_name,
)
from ensign.experiment.study.record import read_record, usable_record
from ensign.experiment.study.result import study_result
from ensign.experiment.study.round_plan import RoundPlan, longer_key
from ensign.experiment.study_file import StudyFile
from ensign.model.errors import InputError
from ensign.model.finding_kinds.race import CONFIRM_PLAN_KEPT, CONFIRM_RESTARTED
from ensign.model.findings import Finding
from ensign.model.results import Confirmation, Result
from ensign.model.study import Study
from ensign.model.trials import Trial, failed_variants
from ensign.store.folder import StudyFolder


def folder_of(file: StudyFile) -> StudyFolder:
    """The results folder of a study; on one of several hosts, that host's."""
    folder = StudyFolder.beside(file.path, file.study.name)
    return folder.of_host(file.host) if file.host else folder


def stored_result(file: StudyFile) -> Result:
    """The result of what the store has. InputError where no round is complete yet."""
    study, record = _raced_study(file)
    folder = folder_of(file)
    explored = stored_phase(study, record, folder).result()
    chosen = file.with_workloads(record.workloads)
    return with_confirmation(explored, chosen, folder, second_phase(chosen, folder, record.key))


def stored_rounds(file: StudyFile) -> tuple[Study, Record, tuple[Trial, ...]]:
    """The study as it was raced, its record and its raw trials. InputError where there are none."""
    study, record = _raced_study(file)
    return study, record, folder_of(file).trials(record.key)


def _raced_study(file: StudyFile) -> tuple[Study, Record]:
    folder = folder_of(file)
    record = read_record(folder)
    if record is None or not folder.trial_files(record.key):
        raise InputError(f"nothing of {file.path} has been measured yet: 'ensign run {file.path}'")
    missing = set(record.workloads).difference(workload.name for workload in file.study.workloads)
    if missing:
        raise InputError(
            f"{file.path} no longer has the workload {', '.join(sorted(missing))}, which was "
            f"measured: 'ensign run {file.path}' measures those that it has now"
        )
    chosen = file.with_workloads(record.workloads).with_metric(record.metric)
    return chosen.study, record


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
        """Result. InputError where no round is whole."""
        return study_result(
            self.study, self.record, self.trials, self.longer, self.relinked, finalists=finalists
        )

    @property
    def failed(self) -> frozenset[str]:
        """The variants that failed in the rounds."""
        return failed_variants(self.trials)


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


@dataclass(frozen=True, slots=True)
class SecondPhase:
    """The plan of a confirmation and what of it is raced; None for either that is not there yet."""

    plan: ConfirmPlan | None
    raced: PhaseOutcome | None = None


def second_phase(file: StudyFile, folder: StudyFolder, key: str) -> SecondPhase | None:
    """Confirmation in the store; None where there is none. InputError where a plan was edited."""
    plan = read_plan(folder, key)
    if plan is None:
        return None if file.study.race.confirm is None else SecondPhase(None)
    record = confirming_record(folder, plan)
    if record is None:
        return SecondPhase(plan)
    return SecondPhase(plan, stored_phase(confirming_study(file.study, plan), record, folder))


def with_confirmation(
    explored: Result, file: StudyFile, folder: StudyFolder, second: SecondPhase | None
) -> Result:
    """The result with its second phase, where there is one: then the rounds claim nothing.

    Once a plan is written the phase belongs to the result, also where the study no longer asks for
    it.
    """
    if second is None:
        return explored
    plan, raced = second.plan, second.raced
    if plan is None:
        pending = Confirmation((), 0, 0, explored.level, "", ())
        return replace(explored_only(explored), confirmation=pending)
    record = None if raced is None else raced.record
    fresh = made_afresh(file, plan)
    if record is not None and not record.relinks:
        fresh = tuple(part for part in fresh if part != "relinks")
    done = 0 if raced is None else len(raced.trials)
    confirmation = Confirmation(
        finalists=plan.finalists,
        rounds=plan.rounds if record is None else record.rounds_planned,
        rounds_done=done // len(plan.workloads),
        level=plan.level_each,
        plan_sha256=plan.sha256,
        fresh=fresh,
    )
    if raced is None or not _is_finished(plan, raced):
        return replace(explored_only(explored), confirmation=confirmation)
    result = raced.result(len(plan.finalists))
    if result.layouts is None and explored.layouts is not None and explored.layouts.spreads:
        # The baseline is the same one, and so is what its relinks do to it.
        result = replace(result, layouts=explored.layouts)
    doubts = (*_kept(file, plan), *_restarted(folder, plan, raced.record))
    result = replace(result, findings=(*doubts, *result.findings))
    return replace(explored_only(explored), confirmation=replace(confirmation, result=result))


def _is_finished(plan: ConfirmPlan, raced: PhaseOutcome) -> bool:
    """All trials are there, or every finalist failed."""
    record = raced.record
    if record.complete and len(raced.trials) >= record.rounds_planned * len(plan.workloads):
        return True
    return raced.failed.issuperset(plan.finalists)


def confirming_record(folder: StudyFolder, plan: ConfirmPlan) -> Record | None:
    """The record of what was raced; InputError where that was by another plan."""
    record = usable_record(folder, record_name(plan.exploration))
    if record is not None and record.plan_sha256 != plan.sha256:
        raise edited(folder, plan.exploration)
    return record


def _kept(file: StudyFile, plan: ConfirmPlan) -> tuple[Finding, ...]:
    """The study says something else by now."""
    race = file.study.race
    if (race.margin, confirming_level(race), race.prefer) == (plan.margin, plan.level, plan.prefer):
        return ()
    text = (
        f"the confirmation keeps the margin ({plan.margin or 'none'}), level ({plan.level:g}) and "
        f"preference ({plan.prefer}) of its plan, which was fixed before its first trial; the "
        "study says otherwise now"
    )
    return (CONFIRM_PLAN_KEPT.found(text),)


def _restarted(folder: StudyFolder, plan: ConfirmPlan, record: Record) -> tuple[Finding, ...]:
    others = folder.plans(plan.prefix) - {record.key}
    if not others:
        return ()
    count = sum(len(folder.done(name)) for name in others)
    text = (
        f"{count} trials of this confirmation were raced with other programs before (the cache "
        "was emptied, or a profile came out differently) and are not counted"
    )
    return (CONFIRM_RESTARTED.found(text),)


def keep_figures(folder: StudyFolder, result: Result) -> None:
    """Write what is told of a study now, so that a verification can tell. StorageFailed."""
    figures = figures_of(result)
    try:
        kept = folder.read_json(FIGURES)
    except InputError:
        kept = None
    if kept != figures:
        folder.write_json(FIGURES, figures)
