"""The second phase of a study: the best variants built afresh and raced again, by a fixed plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ensign.experiment.judge import explored_only
from ensign.experiment.machine import machine_state
from ensign.experiment.record import Record
from ensign.experiment.study.confirm_plan import (
    ConfirmPlan,
    TimeLeft,
    choose_extremes,
    choose_finalists,
    confirming,
    confirming_level,
    confirming_study,
    edited,
    made_afresh,
    new_plan,
    read_plan,
    record_name,
    write_plan,
)
from ensign.experiment.study.phase import (
    PhaseOutcome,
    PlannedPhase,
    StudyContext,
    race_phase,
    race_setup,
    stored_phase,
)
from ensign.experiment.study.prepare import build_programs
from ensign.experiment.study.record import require_variants, usable_record
from ensign.experiment.study.round_plan import RoundPlan, raced_ns, taken_up
from ensign.experiment.study_file import StudyFile
from ensign.model.finding_kinds.race import (
    CONFIRM_PLAN_KEPT,
    CONFIRM_RESTARTED,
    CONFIRMED_BEYOND_BUDGET,
)
from ensign.model.findings import Finding
from ensign.model.results import Confirmation, Result
from ensign.model.study import Study
from ensign.model.trials import Trial
from ensign.model.units import parse_duration_ns
from ensign.store.folder import StudyFolder

_KEY_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class SecondPhase:
    """The plan of a confirmation and what of it is raced; None for either that is not there yet."""

    plan: ConfirmPlan | None
    raced: PhaseOutcome | None = None


def confirm(file: StudyFile, first: PhaseOutcome, context: StudyContext) -> SecondPhase | None:
    """Plans what is not planned, builds and races what is missing; nothing without `confirm`.

    Nothing of the `first` phase is pooled in. InputError where the plan was edited.
    """
    folder, asked, rounds = context.folder, file.study.race.confirm, first.rounds
    plan = read_plan(folder, rounds.key)
    if plan is None:
        if asked is None:
            return None
        choose = choose_extremes if asked.extremes else choose_finalists
        finalists = choose(first.result(), file.variants, asked.finalists)
        time_left = _time_left(file.study, len(finalists), rounds, folder)
        plan = new_plan(file, asked, finalists, rounds, time_left)
        _record_of(folder, plan)
        write_plan(folder, plan)
    if not plan.finalists:
        return SecondPhase(plan)
    planned = _planned(confirming(file, plan), plan, first, context)
    return SecondPhase(plan, race_phase(planned, context))


def second_phase(file: StudyFile, folder: StudyFolder, key: str) -> SecondPhase | None:
    """Confirmation in the store; None where there is none. InputError where a plan was edited."""
    plan = read_plan(folder, key)
    if plan is None:
        return None if file.study.race.confirm is None else SecondPhase(None)
    record = _record_of(folder, plan)
    if record is None:
        return SecondPhase(plan)
    return SecondPhase(plan, stored_phase(confirming_study(file.study, plan), record, folder))


def _planned(
    file: StudyFile, plan: ConfirmPlan, first: PhaseOutcome, context: StudyContext
) -> PlannedPhase:
    """The finalists, built afresh, on the rounds of the plan."""
    folder, before = context.folder, machine_state()
    programs = build_programs(file, context.cache, context.ports, context.progress.build)
    setup, name = race_setup(file, programs), record_name(plan.exploration)
    require_variants(folder, programs, name)
    key = plan.prefix + setup.key[:_KEY_CHARACTERS]
    round_ns = _round_ns(file.study, len(plan.finalists), first.rounds, first.trials)
    rounds = taken_up(folder, _rounds_of(plan, key, first.rounds, round_ns))
    sharing = context.tracing.sharing(file.study, setup.natural, key)
    judged = context.tracing.judged(file.study, programs, setup.natural, key, sharing.ran)
    _record_of(folder, plan)
    return PlannedPhase(
        study=file.study,
        programs=programs,
        variants=replace(setup.variants, apart=sharing.apart),
        rounds=rounds,
        judged=judged,
        before=before,
        findings=(*sharing.findings, *_late(plan)),
        plan_sha256=plan.sha256,
        record=name,
    ).checked()


def _rounds_of(plan: ConfirmPlan, key: str, explored: RoundPlan, round_ns: int) -> RoundPlan:
    """The confirming rounds, raced as those that explored; `round_ns` is what each may take."""
    return replace(
        explored,
        key=key,
        rounds=plan.rounds,
        requests=plan.requests,
        expected_ns=plan.rounds * round_ns,
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
    """Budget that the rounds and the races beside them have left."""
    keys = folder.plans(rounds.key)
    raced = {key: folder.trials(key) for key in keys}
    own = raced.pop(rounds.key, ())
    beside_ns = sum(raced_ns(trials, rounds.overhead_ns) for trials in raced.values())
    used_ns = rounds.spent_ns + _own_ns(rounds, own) + beside_ns
    left_ns = parse_duration_ns(study.race.budget) - used_ns
    return TimeLeft(max(left_ns, 0), _round_ns(study, finalists, rounds, own))


def _own_ns(rounds: RoundPlan, own: Sequence[Trial]) -> int:
    """Time of the rounds that explored."""
    return max(rounds.used_ns, raced_ns(own, rounds.overhead_ns))


def _round_ns(study: Study, finalists: int, rounds: RoundPlan, own: Sequence[Trial]) -> int:
    """Time of a round of baseline, twin and finalists, by the rounds that explored."""
    executions = sum(len(trial.variants) for trial in own) or 1
    return _own_ns(rounds, own) * (finalists + 2) * len(study.workloads) // executions


def _late(plan: ConfirmPlan) -> tuple[Finding, ...]:
    if plan.allowed_ns is not None:
        return ()
    text = (
        "the budget was used up when a confirmation was asked for: its time comes on top; with "
        "'confirm' from the start the budget is shared out"
    )
    return (CONFIRMED_BEYOND_BUDGET.found(text),)


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
        fresh = tuple(each for each in fresh if each != "relinks")
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


def _record_of(folder: StudyFolder, plan: ConfirmPlan) -> Record | None:
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
