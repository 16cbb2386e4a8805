"""The second phase of a study: the best variants built afresh and raced again, by a fixed plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ensign.experiment.machine import machine_state
from ensign.experiment.study.confirm_plan import (
    ConfirmPlan,
    TimeLeft,
    choose_extremes,
    choose_finalists,
    confirming,
    new_plan,
    read_plan,
    record_name,
    write_plan,
)
from ensign.experiment.study.phase import PlannedPhase, StudyContext, race_phase, race_setup
from ensign.experiment.study.prepare import build_programs
from ensign.experiment.study.record import require_variants
from ensign.experiment.study.round_plan import RoundPlan, raced_ns, taken_up
from ensign.experiment.study.stored import PhaseOutcome, SecondPhase, confirming_record
from ensign.experiment.study_file import StudyFile
from ensign.model.finding_kinds.race import (
    CONFIRMED_BEYOND_BUDGET,
)
from ensign.model.findings import Finding
from ensign.model.study import Study
from ensign.model.trials import Trial
from ensign.model.units import parse_duration_ns
from ensign.store.folder import StudyFolder

_KEY_CHARACTERS = 8


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
        confirming_record(folder, plan)
        write_plan(folder, plan)
    if not plan.finalists:
        return SecondPhase(plan)
    planned = _planned(confirming(file, plan), plan, first, context)
    return SecondPhase(plan, race_phase(planned, context))


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
    confirming_record(folder, plan)
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
