"""Who takes part in a race of built programs, and what names its trials."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ensign.experiment.cpu_plan import cpus_of_study
from ensign.experiment.record import STUDY, Record, write_record
from ensign.experiment.study.layouts import rotating
from ensign.experiment.study.plan_store import plan_key
from ensign.experiment.study.prepare import BuiltPrograms
from ensign.experiment.study.record import with_checks_of
from ensign.experiment.study.study_confinement import inherited_library_path
from ensign.experiment.study.variants import VariantSet
from ensign.experiment.study_file import StudyFile
from ensign.model.findings import Finding
from ensign.store.folder import StudyFolder


@dataclass(frozen=True, slots=True)
class RaceSetup:
    """`variants` take turns with their relinks, `natural` have none; `key` names both."""

    natural: VariantSet
    variants: VariantSet
    key: str
    findings: tuple[Finding, ...]


def race_setup(file: StudyFile, programs: BuiltPrograms) -> RaceSetup:
    """The programs on their CPUs."""
    cpus, findings = cpus_of_study(file.study.cpus)
    natural = VariantSet(
        artifacts=programs.artifacts,
        tools=dict(programs.tools),
        cpus=cpus,
        folder=str(file.folder),
        trees=programs.trees,
        library_path=inherited_library_path(file.study.sandbox, os.environ),
    )
    variants = rotating(file.study, natural, programs.relinks)
    facts = [result.facts for result in programs.report.results]
    # Who is out decides who races: where that changes, trials are others.
    hashes = {each.variant: each.identity for each in facts if not each.out}
    raced = {each.variant: each.layouts for each in facts if each.variant in variants.relinks}
    return RaceSetup(natural, variants, plan_key(file.study, hashes, raced), findings)


def is_complete(
    folder: StudyFolder,
    known: Record,
    key: str,
    programs: BuiltPrograms,
    name: str = STUDY,
) -> Record | None:
    """The record with what the checks say now, where it says that all of a race is there."""
    if known.key != key or not known.complete:
        return None
    checked = with_checks_of(known, programs.report)
    if checked != known:
        write_record(folder, checked, name)
    return checked
