"""The second phase of a study: the best variants built afresh and raced again, by a fixed plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ensign.builders.cache import Cache
from ensign.lab.machine import machine_state
from ensign.lab.ports import Ports
from ensign.lab.study.confirm_plan import (
    ConfirmPlan,
    choose_finalists,
    confirming,
    confirming_study,
    edited,
    made_afresh,
    new_plan,
    read_plan,
    record_name,
    write_plan,
)
from ensign.lab.study.entered import entered, is_complete
from ensign.lab.study.prepare import build_programs
from ensign.lab.study.record import StudyRecord, usable_record, write_record
from ensign.lab.study.recording import ended, started
from ensign.lab.study.result import study_result
from ensign.lab.study.sweeps import SweepPlan, failed_in, missing_trials, run_sweeps
from ensign.lab.study.telling import Telling
from ensign.lab.study.tracing import judged_by_run
from ensign.lab.study_file import StudyFile
from ensign.model.findings import Finding, Severity
from ensign.model.results import Confirmation, StudyResult
from ensign.store.folder import StudyFolder

_KEY_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class Site:
    """Where a confirmation is carried out."""

    cache: Cache
    ports: Ports
    folder: StudyFolder
    telling: Telling


def confirm(file: StudyFile, explored: StudyResult, sweeps: SweepPlan, site: Site) -> None:
    """Plans what is not planned, builds and races what is missing; nothing without `confirm`.

    `explored` is the result of the `sweeps`, of which nothing is pooled in. InputError where the
    plan was edited; otherwise as `run_study`.
    """
    folder, asked = site.folder, file.study.race.confirm
    plan = read_plan(folder, sweeps.key)
    if plan is None:
        if asked is None:
            return
        finalists = choose_finalists(explored, file.variants, asked.finalists)
        plan = new_plan(file, asked, finalists, sweeps.key, sweeps.requests)
        _record_of(folder, plan)
        write_plan(folder, plan)
    if plan.finalists:
        _race(confirming(file, plan), plan, sweeps, site)


def _race(file: StudyFile, plan: ConfirmPlan, explored: SweepPlan, site: Site) -> None:
    folder, ports = site.folder, site.ports
    programs = build_programs(file, site.cache, ports, site.telling.build)
    arena, name = entered(file, programs), record_name(plan.exploration)
    key = plan.prefix + arena.key[:_KEY_CHARACTERS]
    sweeps = replace(
        explored, key=key, sweeps=plan.sweeps, requests=plan.requests, expected_ns=0, precision=None
    )
    judged = judged_by_run(
        file.study, programs, arena.natural, key, (folder, ports, site.telling.pilot)
    )
    known = _record_of(folder, plan)
    missing = missing_trials(file.study, arena.field, sweeps, folder)
    if not missing and is_complete(folder, known, key, programs, name):
        return
    before = machine_state()
    record = replace(
        started(file.study, programs, sweeps, before),
        ran=judged.ran,
        relinks=arena.field.rotation,
        plan_sha256=plan.sha256,
    )
    record = replace(record, findings=(*record.findings, *judged.findings))
    write_record(folder, record, name)
    with ports.race_lock.held() as shared:
        run_sweeps(ports.meter, file.study, arena.field, sweeps, folder, site.telling.trial)
    record = replace(record, findings=(*record.findings, *shared))
    write_record(folder, ended(record, before, machine_state()), name)


def with_confirmation(
    explored: StudyResult, file: StudyFile, folder: StudyFolder, key: str
) -> StudyResult:
    """The result with its second phase, where there is one: then the sweeps claim nothing.

    Once a plan is written the phase belongs to the result, also where the study no longer asks for
    it. InputError where the plan was edited.
    """
    plan, asked = read_plan(folder, key), file.study.race.confirm
    if plan is None:
        if asked is None:
            return explored
        pending = Confirmation((), 0, 0, explored.level, "", ())
        return replace(_exploring(explored), confirmation=pending)
    record = _record_of(folder, plan)
    fresh = made_afresh(file, plan)
    if record is not None and not record.relinks:
        fresh = tuple(each for each in fresh if each != "relinks")
    done = frozenset[tuple[int, str]]() if record is None else folder.done(record.key)
    confirmation = Confirmation(
        finalists=plan.finalists,
        sweeps=plan.sweeps,
        sweeps_done=len(done) // len(plan.workloads),
        level=plan.level_each,
        plan_sha256=plan.sha256,
        fresh=fresh,
    )
    if record is None or not _is_finished(folder, plan, record, len(done)):
        return replace(_exploring(explored), confirmation=confirmation)
    study = confirming_study(file.study, plan)
    count = len(plan.finalists)
    result = study_result(study, record, folder.trials(record.key), finalists=count)
    if result.layouts is None and explored.layouts is not None and explored.layouts.bands:
        # The baseline is the same one, and so is what its relinks do to it.
        result = replace(result, layouts=explored.layouts)
    doubts = (*_kept(file, plan), *_restarted(folder, plan, record))
    result = replace(result, findings=(*doubts, *result.findings))
    return replace(_exploring(explored), confirmation=replace(confirmation, result=result))


def _is_finished(folder: StudyFolder, plan: ConfirmPlan, record: StudyRecord, done: int) -> bool:
    """All trials are there, or every finalist failed."""
    if done >= plan.sweeps * len(plan.workloads):
        return True
    return failed_in(folder, record.key).issuperset(plan.finalists)


def _exploring(explored: StudyResult) -> StudyResult:
    """The sweeps without claims."""
    suite = tuple(replace(entry, no_slower=None, not_shown=()) for entry in explored.suite)
    return replace(explored, suite=suite, named=())


def _record_of(folder: StudyFolder, plan: ConfirmPlan) -> StudyRecord | None:
    """The record of what was raced; InputError where that was by another plan."""
    record = usable_record(folder, record_name(plan.exploration))
    if record is not None and record.plan_sha256 != plan.sha256:
        raise edited(folder, plan.exploration)
    return record


def _kept(file: StudyFile, plan: ConfirmPlan) -> tuple[Finding, ...]:
    """The study says something else by now."""
    race = file.study.race
    if race.margin == plan.margin and race.level == plan.level:
        return ()
    text = (
        f"the confirmation keeps the margin ({plan.margin or 'none'}) and level ({plan.level:g}) "
        "of its plan, which was fixed before its first trial; the study says otherwise now"
    )
    return (Finding("confirm-plan-kept", Severity.WARNING, text),)


def _restarted(folder: StudyFolder, plan: ConfirmPlan, record: StudyRecord) -> tuple[Finding, ...]:
    others = folder.plans(plan.prefix) - {record.key}
    if not others:
        return ()
    count = sum(len(folder.done(name)) for name in others)
    text = (
        f"{count} trials of this confirmation were raced with other programs before (the cache "
        "was emptied, or a profile came out differently) and are not counted"
    )
    return (Finding("confirm-restarted", Severity.WARNING, text),)
