"""Whether what was told of an experiment follows from what was measured: all of it, anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ensign.experiment.compare.result import read_bundled
from ensign.experiment.record import FIGURES, Record, Verification, figures_of, verified_figures
from ensign.experiment.study.confirm_plan import read_plan, record_name
from ensign.experiment.study.record import read_record
from ensign.experiment.study.round_plan import longer_key
from ensign.experiment.study.run import folder_of, stored_result, stored_rounds
from ensign.experiment.study_file import StudyFile
from ensign.model.errors import InputError
from ensign.model.quoting import quoted
from ensign.model.results import Result
from ensign.store.folder import StudyFolder, trial_name


def keep_figures(folder: StudyFolder, result: Result) -> None:
    """Write what is told of a study now, for `verify_study`. StorageFailed."""
    figures = figures_of(result)
    try:
        kept = folder.read_json(FIGURES)
    except InputError:
        kept = None
    if kept != figures:
        folder.write_json(FIGURES, figures)


def verify_study(file: StudyFile) -> Verification:
    """Trials against their hashes and plans, and the figures that were told against the trials.

    InputError where nothing is measured, or where the study is damaged.
    """
    _, record, _ = stored_rounds(file)
    folder = folder_of(file)
    raced = _verified_trials(folder, file, record)
    try:
        return raced + verified_figures(folder.read_json(FIGURES), stored_result(file), "trials")
    except InputError as error:
        if not raced.differs:
            raise
        return raced + Verification((), (str(error),))


def verify_comparison(folder: Path) -> Verification:
    """Of the bundle of a comparison, unpacked there. InputError where it is damaged."""
    result = read_bundled(folder).result()
    kept = StudyFolder(folder).read_json(FIGURES)
    return verified_figures(kept, result, "measured executions")


def raced_keys(folder: StudyFolder, record: Record) -> tuple[str, ...]:
    """All that the trials of a study are kept under."""
    keys = [record.key, longer_key(record.key), *filter(None, [record.spread_key])]
    plan = read_plan(folder, record.key)
    return (*keys, *(() if plan is None else sorted(folder.plans(plan.prefix))))


def changed_trials(folder: StudyFolder, record: Record) -> tuple[str, ...]:
    """What of the trials is not what was written when they were raced, in sentences."""
    return tuple(text for key in raced_keys(folder, record) for text in folder.changed_trials(key))


def _verified_trials(folder: StudyFolder, file: StudyFile, record: Record) -> Verification:
    changed = changed_trials(folder, record)
    known = {each.name for each in file.study.workloads}
    unplanned = list(_unplanned(folder, record, known))
    count = sum(len(folder.trial_files(key)) for key in raced_keys(folder, record))
    said = [f"{count} trials are held against their hashes, their names and the plan {record.key}"]
    plan = read_plan(folder, record.key)
    if plan is not None:
        said.append(f"the confirmation's plan is the one that was hashed ({plan.sha256[:12]}…)")
    return Verification(tuple(said), (*changed, *unplanned))


def _unplanned(folder: StudyFolder, record: Record, workloads: set[str]) -> Iterator[str]:
    """Trials that no plan asked for, or that are not what they are called."""
    if folder.read_json(f"plans/{record.key}") is None:
        yield f"the plan {record.key} is missing"
    plan = read_plan(folder, record.key)
    confirming = None if plan is None else read_record(folder, record_name(record.key))
    rounds = {record.key: record.rounds_planned}
    if confirming is not None:
        rounds[confirming.key] = confirming.rounds_planned
    for key in raced_keys(folder, record):
        for path, trial in folder.named_trials(key):
            called = trial_name(trial)
            if path.name != called or trial.workload not in workloads:
                yield f"{quoted(path.name)} is the trial {quoted(called)}"
            if key in rounds and trial.round_index >= rounds[key]:
                yield f"{quoted(path.name)} is no trial of the {rounds[key]} planned rounds"
