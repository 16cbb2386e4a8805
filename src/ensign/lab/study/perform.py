"""`ensign run`: build, verify, race, decide; every step takes up what is already there."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from ensign.host.cache import Cache
from ensign.lab.machine import machine_state
from ensign.lab.ports import Ports
from ensign.lab.study.apart import SharingSite
from ensign.lab.study.confirm_plan import read_plan
from ensign.lab.study.confirming import Site, confirm, with_confirmation
from ensign.lab.study.entered import entered, is_complete
from ensign.lab.study.fixed import (
    PlanSite,
    fixed_plan,
    piloted,
    plan_findings,
    require_any_room,
)
from ensign.lab.study.layouts import band_race
from ensign.lab.study.left import require_variants
from ensign.lab.study.longer_slices import longer_key, with_longer_slices
from ensign.lab.study.prepare import Programs, build_programs, require_commands
from ensign.lab.study.race_check import RaceCheck
from ensign.lab.study.record import StudyRecord, read_record, usable_record, write_record
from ensign.lab.study.recording import ended, raced_by, started
from ensign.lab.study.result import study_result
from ensign.lab.study.rounds import Course, race_rounds, round_findings
from ensign.lab.study.self_timed import self_timed_findings, shown_by_the_race
from ensign.lab.study.suite_facts import suite_facts, suite_findings
from ensign.lab.study.sweeps import SweepPlan, failed_in, missing_trials, run_sweeps
from ensign.lab.study.telling import Telling
from ensign.lab.study.tracing import judged_by_run, judged_programs
from ensign.lab.study_file import StudyFile
from ensign.model.errors import InputError, Interrupted, RaceFailed
from ensign.model.results import StudyResult
from ensign.model.study import Study
from ensign.model.trials import Trial
from ensign.store.folder import StudyFolder

# Of the memory that is free when a study begins, for all arms of a race.
_SHARE_OF_MEMORY = 0.8


def folder_of(file: StudyFile) -> StudyFolder:
    """The results folder of a study."""
    return StudyFolder.beside(file.path, file.study.name)


def run_study(
    file: StudyFile, cache: Cache, ports: Ports, telling: Telling, *, update_lock: bool = False
) -> None:
    """The whole study. Interrupted on Ctrl-C; the same call goes on where it stopped."""
    folder = folder_of(file)
    try:
        with folder.locked():
            require_commands(file, ports.env)
            require_any_room(file.study, len(file.variants) - 1)
            programs = build_programs(file, cache, ports, telling.build, update_lock=update_lock)
            require_variants(folder, programs)
            sweeps = _race(file, programs, folder, ports, telling)
            begun = read_plan(folder, sweeps.key) is not None
            if begun or file.study.race.confirm is not None:
                file = file.with_metric(sweeps.metric)
                explored, _ = _explored(file)
                site = Site(cache, ports, folder, telling)
                confirm(file, explored, sweeps, site)
            _require_left(programs, failed_in(folder, sweeps.key))
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the same command goes on where it stopped") from None


def stored_result(file: StudyFile) -> StudyResult:
    """The result of what the store has. InputError where no sweep is complete yet."""
    explored, record = _explored(file)
    chosen = file.with_workloads(record.workloads)
    return with_confirmation(explored, chosen, folder_of(file), record.key)


def _explored(file: StudyFile) -> tuple[StudyResult, StudyRecord]:
    """The result of the sweeps, and what it rests on."""
    study, record, trials = stored_sweeps(file)
    folder = folder_of(file)
    longer = folder.trials(longer_key(record.key))
    relinked = folder.trials(record.band_key) if record.band_key else ()
    return study_result(study, record, trials, longer, relinked), record


def stored_sweeps(file: StudyFile) -> tuple[Study, StudyRecord, tuple[Trial, ...]]:
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
    file: StudyFile, programs: Programs, folder: StudyFolder, ports: Ports, telling: Telling
) -> SweepPlan:
    study, before = file.study, machine_state()
    arena = entered(file, programs)
    memory_bytes = round(before.machine.memory.available_bytes * _SHARE_OF_MEMORY)
    field, key = replace(arena.field, memory_bytes=memory_bytes), arena.key
    folder.sweep_leftovers()
    site = PlanSite(ports.meter, ports.clock, folder, telling.pilot)
    is_planned = folder.json_file(f"plans/{key}").exists()
    looking = SharingSite(ports.tracing(ports.meter), ports.clock, folder, telling.pilot)
    with nullcontext(()) if is_planned else ports.race_lock.held() as shared:
        # Before baseline and twin are alive at once.
        sharing = looking.sharing(study, field, key)
        field = replace(field, apart=sharing.apart)
        # Before each variant is run once: what cannot fit is refused at once.
        site = replace(site, traced=sharing.of_baseline)
        pilots = None if is_planned else piloted(site, study, field)
    judged = judged_by_run(study, programs, field, key, (folder, ports, telling.pilot), sharing.ran)
    programs = judged_programs(programs, judged)
    require_variants(folder, programs)
    left_out = judged.wrong | judged.same.keys()
    check = RaceCheck(judged.traces, field.artefacts[0][0])
    field = replace(field, artefacts=programs.artefacts, check=check)
    natural = replace(arena.natural.without(left_out), apart=sharing.apart, check=check)
    plan = fixed_plan(site, study, field, key, pilots)
    study = file.with_metric(plan.metric).study
    longer_study, longer = with_longer_slices(study, plan)
    races = [(longer_study, field, longer)]
    baseline = programs.report.results[0].facts
    band = band_race(study, natural, plan, baseline, programs.relinks)
    if band is not None:
        races.append((study, *band))
    # A trial that was damaged and deleted is raced again.
    missing = not plan.closed or any(
        missing_trials(*race, folder) for race in ((study, field, plan), *races)
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
            *arena.findings,
            *sharing.findings,
            *suite_findings(file.suite),
        ),
        source=(*record.source, *suite_facts(file.suite)),
        ran=judged.ran,
        relinks=field.rotation,
        band_key="" if band is None else band[1].key,
    )
    write_record(folder, record)
    telling.plan(plan)
    course = Course(ports.meter, ports.clock, folder, telling.plan, telling.trial)
    with ports.race_lock.held() as shared:
        plan = race_rounds(course, study, field, plan)
        # What fails in one race takes no part in the later ones.
        gone = failed_in(folder, plan.key)
        for raced_study, arms, extra in races:
            if not field.has_failed(gone):
                left = arms.without(gone)
                gone |= run_sweeps(ports.meter, raced_study, left, extra, folder, telling.trial)
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


def _require_left(programs: Programs, failed: frozenset[str]) -> None:
    """RaceFailed where every variant failed."""
    others = {name for name, _ in programs.artefacts[1:]}
    if others and others <= failed:
        raise RaceFailed("every variant failed while it was raced: nothing is left to compare")
