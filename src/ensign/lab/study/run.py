"""`ensign run`: build, verify, race, decide; every step takes up what is already there."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from ensign.host.cache import Cache
from ensign.lab.machine import machine_state
from ensign.lab.ports import Ports
from ensign.lab.study.apart import SharingContext
from ensign.lab.study.confirm_plan import read_plan
from ensign.lab.study.confirming import ConfirmContext, confirm, with_confirmation
from ensign.lab.study.fixed import (
    PlanContext,
    fixed_plan,
    piloted,
    plan_findings,
    require_any_time_left,
)
from ensign.lab.study.layouts import spread_race
from ensign.lab.study.left import require_variants
from ensign.lab.study.longer_slices import longer_key, with_longer_slices
from ensign.lab.study.new_record import ended, raced_by, started
from ensign.lab.study.prepare import BuiltPrograms, build_programs, require_commands
from ensign.lab.study.progress import ProgressCallbacks
from ensign.lab.study.race_check import RaceCheck
from ensign.lab.study.race_setup import is_complete, race_setup
from ensign.lab.study.racing import RoundPlan, failed_in, missing_trials, run_rounds
from ensign.lab.study.record import StudyRecord, read_record, usable_record, write_record
from ensign.lab.study.request_problems import require_requests
from ensign.lab.study.result import study_result
from ensign.lab.study.rounds import RaceContext, race_rounds, round_findings
from ensign.lab.study.self_timed import self_timed_findings, shown_by_the_race
from ensign.lab.study.suite_facts import suite_facts, suite_findings
from ensign.lab.study.tracing import judged_by_run, judged_programs
from ensign.lab.study_file import StudyFile
from ensign.model.errors import InputError, Interrupted, RaceFailed
from ensign.model.results import StudyResult
from ensign.model.study import Study
from ensign.model.trials import Trial
from ensign.store.folder import StudyFolder

# Of the memory that is free when a study begins, for all variants of a race.
_SHARE_OF_MEMORY = 0.8


def folder_of(file: StudyFile) -> StudyFolder:
    """The results folder of a study."""
    return StudyFolder.beside(file.path, file.study.name)


def run_study(
    file: StudyFile,
    cache: Cache,
    ports: Ports,
    progress: ProgressCallbacks,
    *,
    update_lock: bool = False,
) -> None:
    """The whole study. Interrupted on Ctrl-C; the same call goes on where it stopped."""
    folder = folder_of(file)
    try:
        with folder.locked():
            require_commands(file, ports.env)
            require_requests(file)
            require_any_time_left(file.study, len(file.variants) - 1)
            programs = build_programs(file, cache, ports, progress.build, update_lock=update_lock)
            require_variants(folder, programs)
            rounds = _race(file, programs, folder, ports, progress)
            begun = read_plan(folder, rounds.key) is not None
            if begun or file.study.race.confirm is not None:
                file = file.with_metric(rounds.metric)
                explored, _ = _explored(file)
                context = ConfirmContext(cache, ports, folder, progress)
                confirm(file, explored, rounds, context)
            _require_left(programs, failed_in(folder, rounds.key))
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the same command goes on where it stopped") from None


def stored_result(file: StudyFile) -> StudyResult:
    """The result of what the store has. InputError where no round is complete yet."""
    explored, record = _explored(file)
    chosen = file.with_workloads(record.workloads)
    return with_confirmation(explored, chosen, folder_of(file), record.key)


def _explored(file: StudyFile) -> tuple[StudyResult, StudyRecord]:
    """The result of the rounds, and what it rests on."""
    study, record, trials = stored_rounds(file)
    folder = folder_of(file)
    longer = folder.trials(longer_key(record.key))
    relinked = folder.trials(record.spread_key) if record.spread_key else ()
    return study_result(study, record, trials, longer, relinked), record


def stored_rounds(file: StudyFile) -> tuple[Study, StudyRecord, tuple[Trial, ...]]:
    """The study as it was raced, its record and its raw trials. InputError where there are none."""
    folder = folder_of(file)
    record = read_record(folder)
    trials = () if record is None else folder.trials(record.key)
    if record is None or not trials:
        raise InputError(f"nothing of {file.path} is measured yet: 'ensign run {file.path}'")
    missing = set(record.workloads).difference(each.name for each in file.study.workloads)
    if missing:
        raise InputError(
            f"{file.path} no longer has the workload {', '.join(sorted(missing))}, which was "
            f"measured: 'ensign run {file.path}' measures those that it has now"
        )
    chosen = file.with_workloads(record.workloads).with_metric(record.metric)
    return chosen.study, record, trials


def _race(
    file: StudyFile,
    programs: BuiltPrograms,
    folder: StudyFolder,
    ports: Ports,
    progress: ProgressCallbacks,
) -> RoundPlan:
    study, before = file.study, machine_state()
    setup = race_setup(file, programs)
    memory_bytes = round(before.machine.memory.available_bytes * _SHARE_OF_MEMORY)
    variants, key = replace(setup.variants, memory_bytes=memory_bytes), setup.key
    folder.remove_leftovers()
    planning = PlanContext(ports.meter, ports.clock, folder, progress.pilot)
    is_planned = folder.json_file(f"plans/{key}").exists()
    looking = SharingContext(ports.tracing(ports.meter), ports.clock, folder, progress.pilot)
    with nullcontext(()) if is_planned else ports.race_lock.held() as shared:
        # Before baseline and twin are alive at once.
        sharing = looking.sharing(study, variants, key)
        variants = replace(variants, apart=sharing.apart)
        # Before each variant is run once: what cannot fit is refused at once.
        planning = replace(planning, traced=sharing.of_baseline)
        pilots = None if is_planned else piloted(planning, study, variants)
    judged = judged_by_run(
        study, programs, variants, key, (folder, ports, progress.pilot), sharing.ran
    )
    programs = judged_programs(programs, judged)
    require_variants(folder, programs)
    left_out = judged.wrong | judged.same.keys()
    check = RaceCheck(judged.traces, variants.artifacts[0][0])
    variants = replace(variants, artifacts=programs.artifacts, check=check)
    natural = replace(setup.natural.without(left_out), apart=sharing.apart, check=check)
    plan = fixed_plan(planning, study, variants, key, pilots)
    study = file.with_metric(plan.metric).study
    longer_study, longer = with_longer_slices(study, plan)
    races = [(longer_study, variants, longer)]
    baseline = programs.report.results[0].facts
    spread = spread_race(study, natural, plan, baseline, programs.relinks)
    if spread is not None:
        races.append((study, *spread))
    # A trial that was damaged and deleted is raced again.
    missing = not plan.closed or any(
        missing_trials(*race, folder) for race in ((study, variants, plan), *races)
    )
    if not missing and is_complete(folder, usable_record(folder), key, programs):
        return plan
    record = started(study, programs, plan, before)
    record = replace(
        record,
        findings=(
            *record.findings,
            *judged.findings,
            *plan_findings(plan),
            *shared,
            *setup.findings,
            *sharing.findings,
            *suite_findings(file.suite),
        ),
        source=(*record.source, *suite_facts(file.suite)),
        ran=judged.ran,
        relinks=variants.rotation,
        spread_key="" if spread is None else spread[1].key,
    )
    write_record(folder, record)
    progress.plan(plan)
    racing = RaceContext(ports.meter, ports.clock, folder, progress.plan, progress.trial)
    with ports.race_lock.held() as shared:
        plan = race_rounds(racing, study, variants, plan)
        # What fails in one race takes no part in the later ones.
        gone = failed_in(folder, plan.key)
        for raced_study, taking_part, extra in races:
            if not variants.has_failed(gone):
                left = taking_part.without(gone)
                gone |= run_rounds(ports.meter, raced_study, left, extra, folder, progress.trial)
    unasked = {name: runs for name, runs in plan.alone.items() if name not in plan.self_timed}
    timed = shown_by_the_race(study, unasked, folder.trials(plan.key))
    said = (
        *record.findings,
        *round_findings(study, plan),
        *self_timed_findings(timed),
        *shared,
    )
    record = replace(raced_by(record, plan), findings=tuple(dict.fromkeys(said)))
    write_record(folder, ended(record, before, machine_state()))
    return plan


def _require_left(programs: BuiltPrograms, failed: frozenset[str]) -> None:
    """RaceFailed where every variant failed."""
    others = {name for name, _ in programs.artifacts[1:]}
    if others and others <= failed:
        raise RaceFailed("every variant failed while it was raced: nothing is left to compare")
