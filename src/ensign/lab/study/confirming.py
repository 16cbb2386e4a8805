"""The second phase of a study: the best variants built afresh and raced again, by a fixed plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ensign.host.cache import Cache
from ensign.lab.machine import machine_state
from ensign.lab.ports import Ports
from ensign.lab.study.apart import SharingContext
from ensign.lab.study.confirm_plan import (
    ConfirmPlan,
    TimeLeft,
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
from ensign.lab.study.fixed import raced_ns, taken_up
from ensign.lab.study.left import require_variants
from ensign.lab.study.new_record import ended, raced_by, started
from ensign.lab.study.prepare import build_programs
from ensign.lab.study.progress import ProgressCallbacks
from ensign.lab.study.race_check import RaceCheck
from ensign.lab.study.race_setup import is_complete, race_setup
from ensign.lab.study.racing import RoundPlan, failed_in, missing_trials
from ensign.lab.study.record import StudyRecord, usable_record, write_record
from ensign.lab.study.result import study_result
from ensign.lab.study.rounds import RaceContext, race_rounds, round_findings
from ensign.lab.study.tracing import judged_by_run
from ensign.lab.study_file import StudyFile
from ensign.model.finding_kinds.race import (
    CONFIRM_PLAN_KEPT,
    CONFIRM_RESTARTED,
    CONFIRMED_BEYOND_BUDGET,
)
from ensign.model.findings import Finding
from ensign.model.results import Confirmation, StudyResult
from ensign.model.study import Study
from ensign.model.units import parse_duration_ns
from ensign.store.folder import StudyFolder

_KEY_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class ConfirmContext:
    """Where a confirmation is carried out."""

    cache: Cache
    ports: Ports
    folder: StudyFolder
    progress: ProgressCallbacks


def confirm(
    file: StudyFile, explored: StudyResult, rounds: RoundPlan, context: ConfirmContext
) -> None:
    """Plans what is not planned, builds and races what is missing; nothing without `confirm`.

    `explored` is the result of the `rounds`, of which nothing is pooled in. InputError where the
    plan was edited; otherwise as `run_study`.
    """
    folder, asked = context.folder, file.study.race.confirm
    plan = read_plan(folder, rounds.key)
    if plan is None:
        if asked is None:
            return
        finalists = choose_finalists(explored, file.variants, asked.finalists)
        time_left = _time_left(file.study, len(finalists), rounds, folder)
        plan = new_plan(file, asked, finalists, rounds, time_left)
        _record_of(folder, plan)
        write_plan(folder, plan)
    if plan.finalists:
        _race(confirming(file, plan), plan, rounds, context)


def _race(file: StudyFile, plan: ConfirmPlan, explored: RoundPlan, context: ConfirmContext) -> None:
    folder, ports = context.folder, context.ports
    programs = build_programs(file, context.cache, ports, context.progress.build)
    setup, name = race_setup(file, programs), record_name(plan.exploration)
    require_variants(folder, programs, name)
    key = plan.prefix + setup.key[:_KEY_CHARACTERS]
    rounds = taken_up(folder, _rounds_of(plan, key, explored))
    looking = SharingContext(
        ports.tracing(ports.meter), ports.clock, folder, context.progress.pilot
    )
    sharing = looking.sharing(file.study, setup.natural, key)
    store = (folder, ports, context.progress.pilot)
    judged = judged_by_run(file.study, programs, setup.natural, key, store, sharing.ran)
    known = _record_of(folder, plan)
    missing = not rounds.closed or missing_trials(file.study, setup.variants, rounds, folder)
    if not missing and is_complete(folder, known, key, programs, name):
        return
    before = machine_state()
    check = RaceCheck(judged.traces, setup.variants.artifacts[0][0])
    variants = replace(setup.variants, apart=sharing.apart, check=check)
    record = replace(
        started(file.study, programs, rounds, before),
        ran=judged.ran,
        relinks=setup.variants.rotation,
        plan_sha256=plan.sha256,
    )
    record = replace(record, findings=(*record.findings, *judged.findings, *sharing.findings))
    write_record(folder, record, name)
    context.progress.plan(rounds)
    progress = context.progress
    racing = RaceContext(ports.meter, ports.clock, folder, progress.plan, progress.trial)
    with ports.race_lock.held() as shared:
        rounds = race_rounds(racing, file.study, variants, rounds)
    findings = (*record.findings, *round_findings(file.study, rounds), *_late(plan), *shared)
    record = replace(raced_by(record, rounds), findings=findings)
    write_record(folder, ended(record, before, machine_state()), name)


def _rounds_of(plan: ConfirmPlan, key: str, explored: RoundPlan) -> RoundPlan:
    """The confirming rounds, raced as those that explored."""
    return replace(
        explored,
        key=key,
        rounds=plan.rounds,
        requests=plan.requests,
        expected_ns=plan.allowed_ns or 0,
        precision=None,
        exact=plan.precision is None,
        closed=False,
        allowed_ns=plan.allowed_ns,
        spent_ns=0,
        pilots=0,
        first=plan.rounds if plan.precision is not None else 0,
        finalists=len(plan.finalists),
        reached=None,
    )


def _time_left(study: Study, finalists: int, rounds: RoundPlan, folder: StudyFolder) -> TimeLeft:
    """What the rounds and the races beside them have left of the budget."""
    keys = folder.plans(rounds.key)
    raced = {key: folder.trials(key) for key in keys}
    own = raced.pop(rounds.key, ())
    own_ns = max(rounds.used_ns, raced_ns(own, rounds.overhead_ns))
    used_ns = own_ns + sum(raced_ns(trials, rounds.overhead_ns) for trials in raced.values())
    variants = sum(len(trial.variants) for trial in own) or 1
    runs = (finalists + 2) * len(study.workloads)
    round_ns = own_ns * runs // variants
    left_ns = parse_duration_ns(study.race.budget) - rounds.spent_ns - used_ns
    return TimeLeft(max(left_ns, 0), round_ns)


def _late(plan: ConfirmPlan) -> tuple[Finding, ...]:
    if plan.allowed_ns is not None:
        return ()
    text = (
        "the budget was used up when a confirmation was asked for: its time comes on top; with "
        "'confirm' from the start the budget is shared out"
    )
    return (CONFIRMED_BEYOND_BUDGET.found(text),)


def with_confirmation(
    explored: StudyResult, file: StudyFile, folder: StudyFolder, key: str
) -> StudyResult:
    """The result with its second phase, where there is one: then the rounds claim nothing.

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
    planned = plan.rounds if record is None else record.rounds_planned
    confirmation = Confirmation(
        finalists=plan.finalists,
        rounds=planned,
        rounds_done=len(done) // len(plan.workloads),
        level=plan.level_each,
        plan_sha256=plan.sha256,
        fresh=fresh,
    )
    if record is None or not _is_finished(folder, plan, record, len(done)):
        return replace(_exploring(explored), confirmation=confirmation)
    study = confirming_study(file.study, plan)
    count = len(plan.finalists)
    result = study_result(study, record, folder.trials(record.key), finalists=count)
    if result.layouts is None and explored.layouts is not None and explored.layouts.spreads:
        # The baseline is the same one, and so is what its relinks do to it.
        result = replace(result, layouts=explored.layouts)
    doubts = (*_kept(file, plan), *_restarted(folder, plan, record))
    result = replace(result, findings=(*doubts, *result.findings))
    return replace(_exploring(explored), confirmation=replace(confirmation, result=result))


def _is_finished(folder: StudyFolder, plan: ConfirmPlan, record: StudyRecord, done: int) -> bool:
    """All trials are there, or every finalist failed."""
    if record.complete and done >= record.rounds_planned * len(plan.workloads):
        return True
    return failed_in(folder, record.key).issuperset(plan.finalists)


def _exploring(explored: StudyResult) -> StudyResult:
    """The rounds without claims."""
    suite = tuple(replace(entry, non_inferior=None, not_shown=()) for entry in explored.suite)
    return replace(explored, suite=suite, significant=())


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
    return (CONFIRM_PLAN_KEPT.found(text),)


def _restarted(folder: StudyFolder, plan: ConfirmPlan, record: StudyRecord) -> tuple[Finding, ...]:
    others = folder.plans(plan.prefix) - {record.key}
    if not others:
        return ()
    count = sum(len(folder.done(name)) for name in others)
    text = (
        f"{count} trials of this confirmation were raced with other programs before (the cache "
        "was emptied, or a profile came out differently) and are not counted"
    )
    return (CONFIRM_RESTARTED.found(text),)
