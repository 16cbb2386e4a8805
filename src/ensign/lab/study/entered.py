"""Who takes part in a race of built programs, and what names its trials."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ensign.lab.machine import cpu_seats
from ensign.lab.study.arms import Field
from ensign.lab.study.fixed import plan_key
from ensign.lab.study.layouts import rotating
from ensign.lab.study.prepare import Programs
from ensign.lab.study.record import STUDY, StudyRecord, write_record
from ensign.lab.study.recording import with_checks_of
from ensign.lab.study_file import StudyFile
from ensign.model.findings import Finding
from ensign.store.folder import StudyFolder


@dataclass(frozen=True, slots=True)
class Entered:
    """`field` takes turns with relinks where it has them, `natural` has none; `key` names both."""

    natural: Field
    field: Field
    key: str
    findings: tuple[Finding, ...]


def entered(file: StudyFile, programs: Programs) -> Entered:
    """The programs on their CPUs."""
    seats, findings = cpu_seats(file.study.cpus)
    natural = Field(
        artefacts=programs.artefacts,
        tools=dict(programs.tools),
        seats=seats,
        folder=str(file.folder),
        trees=programs.trees,
        library_path=os.environ.get("LD_LIBRARY_PATH", ""),
    )
    field = rotating(file.study, natural, programs.relinks)
    facts = [result.facts for result in programs.report.results]
    # Who is out decides who races: where that changes, trials are others.
    hashes = {each.variant: each.identity for each in facts if not each.out}
    raced = {each.variant: each.layouts for each in facts if each.variant in field.relinks}
    return Entered(natural, field, plan_key(file.study, hashes, raced), findings)


def is_complete(
    folder: StudyFolder, known: StudyRecord | None, key: str, programs: Programs, name: str = STUDY
) -> bool:
    """Whether a record says that all of a race is there; then it gets what the checks say now."""
    if known is None or known.key != key or not known.complete:
        return False
    checked = with_checks_of(known, programs.report)
    if checked != known:
        write_record(folder, checked, name)
    return True
