"""`ensign run`: build, verify, race, decide; every step takes up what is already there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ensign import __version__
from ensign.builders.cache import Cache
from ensign.builders.events import BuildEvent, OnEvent
from ensign.lab.machine import MachineState, cpu_seats, machine_state
from ensign.lab.ports import Ports
from ensign.lab.study.arms import Field
from ensign.lab.study.fixed import FixedPlan, fixed_plan, plan_key
from ensign.lab.study.layouts import band_race, rotating
from ensign.lab.study.longer_slices import longer_key, with_longer_slices
from ensign.lab.study.prepare import Programs, build_programs, require_commands
from ensign.lab.study.record import StudyRecord, read_record, usable_record, write_record
from ensign.lab.study.result import study_result
from ensign.lab.study.sweeps import SweepProgress, missing_trials, run_sweeps
from ensign.lab.study_file import StudyFile
from ensign.model.errors import InputError, Interrupted
from ensign.model.findings import Finding, Severity
from ensign.model.placeholders import fill_all, shown
from ensign.model.results import StudyResult
from ensign.model.study import Study
from ensign.model.study_suite import Suite
from ensign.store.folder import StudyFolder

__all__ = ["BuildEvent", "Telling", "folder_of", "run_study", "stored_result"]


@dataclass(frozen=True, slots=True)
class Telling:
    """Whom to tell what happens: builds, pilots by workload, trials."""

    build: OnEvent
    pilot: Callable[[str], None]
    trial: Callable[[SweepProgress], None]


def folder_of(file: StudyFile) -> StudyFolder:
    """The results folder of a study."""
    return StudyFolder.beside(file.path, file.study.name)


def run_study(
    file: StudyFile, cache: Cache, ports: Ports, telling: Telling, *, update_lock: bool = False
) -> StudyResult:
    """The whole study. Interrupted on Ctrl-C; the same call goes on where it stopped."""
    folder = folder_of(file)
    try:
        with folder.locked():
            require_commands(file, ports.env)
            programs = build_programs(file, cache, ports, telling.build, update_lock=update_lock)
            _race(file, programs, folder, ports, telling)
            return stored_result(file)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; the same command goes on where it stopped") from None


def stored_result(file: StudyFile) -> StudyResult:
    """The result of what the store has. InputError where no sweep is complete yet."""
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
    longer = folder.trials(longer_key(record.key))
    relinked = folder.trials(record.band_key) if record.band_key else ()
    chosen = file.with_workloads(record.workloads).study
    return study_result(chosen, record, trials, longer, relinked)


def _race(
    file: StudyFile, programs: Programs, folder: StudyFolder, ports: Ports, telling: Telling
) -> None:
    study = file.study
    seats, seat_findings = cpu_seats(study.cpus)
    natural = Field(programs.artefacts, dict(programs.tools), seats, str(file.folder))
    field = rotating(study, natural, programs.relinks)
    facts = [result.facts for result in programs.report.results]
    hashes = {each.variant: each.loadable_sha256 for each in facts}
    raced = {each.variant: each.layouts for each in facts if each.variant in field.relinks}
    key = plan_key(study, hashes, raced)
    folder.sweep_leftovers()
    before = machine_state()
    fixed = fixed_plan(ports.meter, study, field, key, folder, telling.pilot)
    longer_study, longer = with_longer_slices(study, fixed.sweeps)
    races = [(study, field, fixed.sweeps), (longer_study, field, longer)]
    band = band_race(study, natural, fixed.sweeps, facts[0], programs.relinks)
    if band is not None:
        races.append((study, *band))
    known = usable_record(folder)
    # A trial that was damaged and deleted is raced again.
    missing = any(missing_trials(each, plan, folder) for each, _, plan in races)
    if known is not None and known.key == key and known.complete and not missing:
        return
    record = _record(study, programs, fixed, before)
    record = replace(
        record,
        findings=(*record.findings, *seat_findings, *suite_findings(file.suite)),
        source=(*record.source, *suite_facts(file.suite)),
        relinks=field.rotation,
        band_key="" if band is None else band[1].key,
    )
    write_record(folder, record)
    for raced_study, arms, plan in races:
        run_sweeps(ports.meter, raced_study, arms, plan, folder, telling.trial)
    write_record(folder, _ended(record, before, machine_state()))


def _record(
    study: Study, programs: Programs, fixed: FixedPlan, before: MachineState
) -> StudyRecord:
    report = programs.report
    return StudyRecord(
        key=fixed.sweeps.key,
        raced=tuple(name for name, _ in programs.artefacts),
        sweeps_planned=fixed.sweeps.sweeps,
        builds=tuple(result.facts for result in report.results),
        machine=before.facts_since(before),
        findings=(*report.findings, *fixed.findings),
        commands=commands_of(study, fixed.sweeps.requests),
        toolchains=report.toolchains,
        source=report.source,
        version=__version__,
        made_at=_now(),
        complete=False,
        workloads=tuple(workload.name for workload in study.workloads),
    )


def _ended(record: StudyRecord, before: MachineState, after: MachineState) -> StudyRecord:
    return replace(
        record,
        complete=True,
        machine=after.facts_since(before),
        findings=(*record.findings, *before.findings_until(after)),
        made_at=_now(),
    )


def commands_of(study: Study, requests: Mapping[str, int | None]) -> tuple[tuple[str, str], ...]:
    """What ran, per workload and for the server, with the number of requests filled in. Pure."""
    commands = [] if study.server is None else [("server", shown(study.server.command))]
    for workload in study.workloads:
        number = requests.get(workload.name)
        values = {} if number is None else {"requests": str(number)}
        if workload.drive is not None:
            said = f"{number} operations of {workload.drive.shown}"
        else:
            said = shown(fill_all(workload.load or workload.command or (), values))
        commands.append((workload.name, said))
    return tuple(commands)


def suite_facts(suite: Suite | None) -> tuple[tuple[str, str], ...]:
    """Where workloads were taken from, and how they differ from what was published. Pure."""
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
    """The same as a note in every report. Pure."""
    said = "; ".join(f"{name.replace('suite ', '')}: {text}" for name, text in suite_facts(suite))
    return (Finding("published-suite", Severity.NOTE, said),) if said else ()


def _now() -> str:
    return datetime.now(tz=UTC).isoformat(timespec="seconds")
