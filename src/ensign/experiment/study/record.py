"""Evidence that a race is going to rest on, as the record that is stored with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

import ensign
from ensign.experiment.record import Record
from ensign.experiment.traced_files import summarize
from ensign.model.builds import BuildFacts
from ensign.model.errors import InputError, RaceFailed
from ensign.model.finding_kinds.builds import CHECK_FAILED
from ensign.model.finding_kinds.proof import FLAG_OVERRIDDEN, FLAGS_DIFFER
from ensign.model.findings import Finding, Severity
from ensign.model.placeholders import fill_all, shown
from ensign.model.study import Study
from ensign.store.folder import StudyFolder
from ensign.store.trial_file import MOST_ROUNDS

if TYPE_CHECKING:  # who reads a record builds and races nothing
    from ensign.builders.build_results import BuildReport
    from ensign.experiment.machine import MachineState
    from ensign.experiment.study.prepare import BuiltPrograms
    from ensign.experiment.study.round_plan import RoundPlan

STUDY = "study"
_RECORD = TypeAdapter(Record)
_JUDGED_ANEW = (CHECK_FAILED, FLAG_OVERRIDDEN, FLAGS_DIFFER)


def started(study: Study, programs: BuiltPrograms, plan: RoundPlan, before: MachineState) -> Record:
    """The record of a race that is about to begin."""
    report = programs.report
    return Record(
        key=plan.key,
        raced=tuple(name for name, _ in programs.artifacts),
        rounds_planned=plan.rounds,
        builds=tuple(result.facts for result in report.results),
        machine=before.facts_since(before),
        findings=report.findings,
        commands=commands_of(study, plan.requests),
        toolchains=report.toolchains,
        source=report.source,
        version=ensign.__version__,
        made_at=_now(),
        complete=False,
        workloads=tuple(workload.name for workload in study.workloads),
        expected=plan.precision,
        budget=study.race.budget,
        precision=study.race.precision or "",
        metric=plan.metric,
        confinement=report.confinement,
    )


def raced_by(record: Record, plan: RoundPlan) -> Record:
    """The record with what the plan came to when its rounds were closed. Pure."""
    first = 0 if record.relinks else plan.first
    return replace(
        record,
        rounds_planned=plan.rounds,
        expected=plan.precision,
        first=first,
        stopped=plan.stopped,
    )


def close_record(record: Record, before: MachineState, after: MachineState) -> Record:
    """The record of a race that has all its trials; the machine was read before and after."""
    return replace(
        record,
        complete=True,
        machine=after.facts_since(before),
        findings=(*record.findings, *before.findings_until(after)),
        made_at=_now(),
    )


def with_checks_of(record: Record, report: BuildReport) -> Record:
    """The record with what checks and the study's words on flags say now. Pure.

    Trials do not depend on them.
    """
    now = {result.facts.variant: result.facts for result in report.results}
    builds = tuple(
        replace(
            build,
            check=now[build.variant].check,
            evidence=now[build.variant].evidence,
            check_failed=now[build.variant].check_failed,
            check_tail=now[build.variant].check_tail,
            out=now[build.variant].out,
        )
        if build.variant in now
        else build
        for build in record.builds
    )
    before = [finding for finding in record.findings if finding.is_a(*_JUDGED_ANEW)]
    found = [finding for finding in report.findings if finding.is_a(*_JUDGED_ANEW)]
    findings = record.findings
    if set(before) != set(found):
        findings = (*(finding for finding in findings if finding not in before), *found)
    return replace(record, builds=builds, findings=findings)


def commands_of(study: Study, requests: Mapping[str, int | None]) -> tuple[tuple[str, str], ...]:
    """Commands per workload and of the server, with the number of requests filled in. Pure."""
    commands = [] if study.server is None else [("server", shown(study.server.command))]
    for workload in study.workloads:
        number = requests.get(workload.name)
        values = {} if number is None else {"requests": str(number)}
        if workload.drive is not None:
            text = f"{number} operations of {workload.drive.shown}"
        else:
            argv = workload.load or workload.command or ()
            text = workload.shown if workload.ends else shown(fill_all(argv, values))
        commands.append((workload.name, text))
    return tuple(commands)


def _now() -> str:
    return datetime.now(tz=UTC).isoformat(timespec="seconds")


_WAY_OUT = "fix that, or leave it out, and run it again: what is built stays built"


def require_variants(folder: StudyFolder, programs: BuiltPrograms, record: str = STUDY) -> None:
    """RaceFailed where nobody is left: the baseline and its twin alone would show nothing.

    What was measured before gets what the checks say now.
    """
    why = nobody_left(programs)
    if not why:
        return
    known = usable_record(folder, record)
    if known is not None:
        write_record(folder, with_checks_of(known, programs.report), record)
    raise RaceFailed(why)


def nobody_left(programs: BuiltPrograms) -> str:
    """Why no variant is left, and the way out; empty where one is, or where none was withdrawn.

    Where all are the same as the baseline, that is the answer of the study. Pure.
    """
    raced = [name for name, _ in programs.artifacts]
    if len(raced) > 1:
        return ""
    reasons: dict[str, list[BuildFacts]] = {}
    for result in programs.report.results:
        facts = result.facts
        if facts.variant not in raced and not facts.same_as:
            why = _why(facts, programs.report.findings)
            reasons.setdefault(why, []).append(facts)
    if not reasons:
        return ""
    notes = [
        f"{', '.join(build.variant for build in alike)}: {why}{_log(alike[0])}"
        for why, alike in reasons.items()
    ]
    return (
        f"nothing is left to compare with {raced[0]}, so nothing is raced: "
        f"{summarize(notes)}; {_WAY_OUT}"
    )


def _why(facts: BuildFacts, findings: Sequence[Finding]) -> str:
    errors = [each for each in findings if each.severity is Severity.ERROR]
    for finding in errors:
        if finding.subject == facts.variant:
            return finding.text
    if facts.out or not facts.log_tail:
        return facts.out or facts.said
    return f"{facts.said}: {facts.why_and_way_out}"


def _log(facts: BuildFacts) -> str:
    return f"; log: {facts.log_path}" if facts.log_path and not facts.out else ""


def write_record(folder: StudyFolder, record: Record, name: str = STUDY) -> None:
    """Replaces the record of the study, or of its confirmation, in one step."""
    folder.write_json(name, json.loads(_RECORD.dump_json(record)))


def usable_record(folder: StudyFolder, name: str = STUDY) -> Record | None:
    """The record; None also where it is damaged or of another version: a run writes it anew."""
    try:
        return read_record(folder, name)
    except InputError:
        return None


def read_record(folder: StudyFolder, name: str = STUDY) -> Record | None:
    """The record, or None before the first run. InputError if it is damaged."""
    stored = folder.read_json(name)
    if stored is None:
        return None
    record: Record | None = None
    with suppress(ValueError):
        record = _RECORD.validate_json(json.dumps(stored))
    if record is None or not 0 <= record.rounds_planned <= MOST_ROUNDS:
        raise InputError(f"{folder.json_file(name)} is damaged; run the study again")
    return record
