"""Evidence that travels: a study with its results as one bundle, and results from either."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath

from ensign import __version__
from ensign.experiment.record import (
    COMPARISON,
    FIGURES,
    Record,
    Verification,
    figures_of,
    verified_figures,
)
from ensign.experiment.study.confirm_plan import plan_name, read_plan, record_name
from ensign.experiment.study.opened import open_study
from ensign.experiment.study.record import STUDY, read_record
from ensign.experiment.study.result import with_redo
from ensign.experiment.study.round_plan import longer_key
from ensign.experiment.study.stored import folder_of, stored_result, stored_rounds
from ensign.experiment.study_file import StudyFile, read_study
from ensign.host.files import file_sha256, storage_errors, write_atomically
from ensign.host.regular_file import read_json
from ensign.host.signatures import BadSignatureError, Signer, sign, signer_of
from ensign.host.temporary import temporary_folder
from ensign.model.errors import InputError
from ensign.model.quoting import quoted
from ensign.model.results import Result
from ensign.model.study import Study, Training
from ensign.model.study_source import ArchiveSource, PathSource
from ensign.model.study_workload import Workload
from ensign.sources.obtain import lock_path
from ensign.store.bundle import (
    SUFFIX,
    BundleChanged,
    Manifest,
    is_bundle,
    pack,
    read_signed,
    unpack,
)
from ensign.store.folder import StudyFolder, trial_name


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
    """Verification of a comparison's bundle, unpacked there. InputError where it is damaged."""
    result = _compared(folder)
    kept = StudyFolder(folder).read_json(FIGURES)
    return verified_figures(kept, result, "measured executions")


def _compared(folder: Path) -> Result:
    from ensign.experiment.compare.result import read_bundled  # noqa: PLC0415  # few bundles

    return read_bundled(folder).result()


def raced_keys(folder: StudyFolder, record: Record) -> tuple[str, ...]:
    """All that the trials of a study are kept under."""
    keys = [record.key, longer_key(record.key), *filter(None, [record.spread_key])]
    plan = read_plan(folder, record.key)
    return (*keys, *(() if plan is None else sorted(folder.plans(plan.prefix))))


def changed_trials(folder: StudyFolder, record: Record) -> tuple[str, ...]:
    """Trials that are not what was written when they were raced, in sentences."""
    return tuple(text for key in raced_keys(folder, record) for text in folder.changed_trials(key))


def _verified_trials(folder: StudyFolder, file: StudyFile, record: Record) -> Verification:
    changed = changed_trials(folder, record)
    known = {workload.name for workload in file.study.workloads}
    unplanned = list(_unplanned(folder, record, known))
    count = sum(len(folder.trial_files(key)) for key in raced_keys(folder, record))
    checks = [
        f"{count} trials are held against their hashes, their names and the plan {record.key}"
    ]
    plan = read_plan(folder, record.key)
    if plan is not None:
        checks.append(f"the confirmation's plan is the one that was hashed ({plan.sha256[:12]}…)")
    return Verification(tuple(checks), (*changed, *unplanned))


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


__all__ = [
    "BadSignatureError",
    "BundleChanged",
    "BundledComparison",
    "StudyEvidence",
    "bundle",
    "is_bundle",
    "opened",
    "signer_of_bundle",
    "unbundle",
]

_EXPANDED = ".ensign/suite.json"
_LARGEST_EXPECTED_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class StudyEvidence:
    """A study with its results, from a study file or from a bundle, which `path` names.

    Files of a bundle are there only as long as `opened` is.
    """

    path: Path
    file: StudyFile

    def of_host(self, name: str) -> StudyEvidence:
        """The same with the results of that host of a cluster; empty: this machine's."""
        return replace(self, file=replace(self.file, host=name))

    def verified(self) -> Verification:
        """True if what was told of it follows from its raw trials. InputError as `result`."""
        return verify_study(self.file)

    def result(self) -> Result:
        """Everything anew from the raw trials. InputError where nothing is measured yet."""
        result = stored_result(self.file)
        record = read_record(folder_of(self.file))
        raced = {} if record is None else {"budget": record.budget, "precision": record.precision}
        return with_redo(result, self.file, raced, self.path if is_bundle(self.path) else None)


@dataclass(frozen=True, slots=True)
class BundledComparison:
    """A comparison of commands, from a bundle whose files are in `folder`."""

    path: Path
    folder: Path

    def verified(self) -> Verification:
        """True if what was told of it follows from what was measured. InputError as `result`."""
        return verify_comparison(self.folder)

    def result(self) -> Result:
        """Everything anew from the raw trials. InputError where the bundle is damaged."""
        return _compared(self.folder)

    @property
    def file(self) -> StudyFile:
        """There is none: InputError."""
        raise InputError(f"{self.path} is a comparison of commands, and no study")


@dataclass(frozen=True, slots=True)
class Bundled:
    """A bundle that was written: its hash is what to cite."""

    path: Path
    size_bytes: int
    sha256: str


@contextmanager
def opened(path: Path) -> Iterator[StudyEvidence | BundledComparison]:
    """A study file with the results beside it, or a bundle, which needs nothing of this machine.

    InputError as `read_study` and `unpack`.
    """
    if not is_bundle(path):
        file = open_study(path)
        yield StudyEvidence(path, file)
        return
    with temporary_folder("bundle") as folder:
        yield _unpacked(path, folder, unpack(path, folder))


def _unpacked(path: Path, folder: Path, manifest: Manifest) -> StudyEvidence | BundledComparison:
    if manifest.study == COMPARISON:
        return BundledComparison(path, folder)
    expand = partial(expanded_again, folder / _EXPANDED)
    file = read_study(folder / manifest.study, expand=expand)
    return StudyEvidence(path, file)


def bundle(path: Path, target: Path | None, key: Path | None = None) -> Bundled:
    """Writes what the report follows from: study, lock file and patches, record, plans, trials.

    `target` is a file, None for `NAME.bundle.zip` beside the study; `key` signs it. A bundle that
    is there already, a comparison's too, is signed, in its place without `target`. InputError
    where nothing is measured yet, or something else than was measured is there, StorageFailed.
    """
    if is_bundle(path):
        if key is None:
            raise InputError(f"{path} is a bundle already; --sign KEY signs it")
        return _write(target or path, _signed(path, key))
    file = open_study(path)
    result = stored_result(file)
    _require_as_raced(file)
    target = file.folder / f"{path.stem}.bundle{SUFFIX}" if target is None else target
    members = {name: member.read_bytes() for name, member in _members(file)}
    if file.suite is not None:
        members[_EXPANDED] = expansion(file.study)
    figures = json.dumps(figures_of(result), indent=1, sort_keys=True) + "\n"
    members[f".ensign/{file.study.name}/{FIGURES}.json"] = figures.encode()
    data = pack(path.name, __version__, members, None if key is None else partial(sign, key=key))
    return _write(target, data)


def _write(target: Path, data: bytes) -> Bundled:
    write_atomically(target.absolute(), data)
    return Bundled(target, len(data), file_sha256(target))


def _signed(path: Path, key: Path) -> bytes:
    """The same bundle with a signature. InputError where it has one, or does not follow."""
    if read_signed(path).signature is not None:
        raise InputError(f"{path} is signed already; 'ensign bundle {path} --verify' says by whom")
    with temporary_folder("bundle") as folder:
        manifest = unpack(path, folder)
        members = {name: (folder / name).read_bytes() for name in manifest.members}
        differs = _unpacked(path, folder, manifest).verified().differs
    if differs:
        raise InputError(f"{path} is not signed, because not all of it follows: {differs[0]}")
    return pack(manifest.study, manifest.ensign, members, partial(sign, key=key))


def _require_as_raced(file: StudyFile) -> None:
    """InputError where a trial is not the one that was raced: nobody should cite that."""
    folder = folder_of(file)
    record = read_record(folder)
    changed = () if record is None else changed_trials(folder, record)
    if changed:
        raise InputError(
            f"{changed[0]} ({folder.root}); delete what is wrong and run the study again"
        )


def signer_of_bundle(path: Path, signers: Path | None = None) -> Signer | None:
    """Signer of a bundle, None where nobody signed; see `signer_of`. InputError as `unpack`."""
    signed = read_signed(path)
    if signed.signature is None:
        return None
    return signer_of(signed.manifest, signed.signature, signers)


def unbundle(path: Path, folder: Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Gives study, lock file and patches back to run again: their paths, and what is missing.

    InputError where `path` is no bundle, or where the folder has such files already.
    """
    if not is_bundle(path):
        raise InputError(f"{path} is not a bundle; 'ensign bundle STUDY' makes one")
    with opened(path) as evidence:
        given = dict(_inputs(evidence.file))
        targets = tuple(folder / name for name in given)
        for target in targets:
            if target.exists():
                raise InputError(f"{target} is there already; choose another folder")
        for source, target in zip(given.values(), targets, strict=True):
            with storage_errors(target):
                target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, source.read_bytes())
        return targets, tuple(_missing(evidence.file, folder))


def _missing(file: StudyFile, folder: Path) -> Iterator[str]:
    """Files beside a study that are too large for a bundle."""
    asked, suite = file.study.source, file.suite
    if isinstance(asked, PathSource):
        yield f"the source is not in a bundle: put it at {folder / asked.path}"
    if isinstance(asked, ArchiveSource) and "://" not in asked.url:
        yield f"the archive is not in a bundle: put it at {folder / asked.url}"
    carried = {name for name, _ in _inputs(file)}
    for name in dict.fromkeys((*_expected(file), *_read(file))):
        if name not in carried and "{" not in name:
            yield f"{name} of a workload is not in a bundle: put it at {folder / name}"
    if suite is not None and suite.path is not None:
        yield f"the suite is not in a bundle: put it at {folder / suite.path}"


def _members(file: StudyFile) -> Iterator[tuple[str, Path]]:
    """Names in the bundle, laid out as beside a study file, and the files themselves."""
    yield from _inputs(file)
    folder, record = folder_of(file), read_record(folder_of(file))
    if record is None:
        raise InputError(f"nothing of {file.path} has been measured yet: 'ensign run {file.path}'")
    plan = read_plan(folder, record.key)
    names = [STUDY, f"plans/{record.key}"]
    keys = raced_keys(folder, record)
    if plan is not None:
        names += [plan_name(record.key), record_name(record.key)]
    paths = [folder.json_file(name) for name in names]
    paths += [trial for key in keys for trial in folder.trial_files(key)]
    for path in paths:
        if path.exists():
            yield str(path.relative_to(folder.root.parent.parent)), path


def _inputs(file: StudyFile) -> Iterator[tuple[str, Path]]:
    """Study file first, lock file, patches and what workloads must print, in its folder."""
    lock = lock_path(file.path)
    named = [(file.path.name, file.path), (lock.name, lock)]
    expected = [name for name in _expected(file) if _may_be_carried(file.folder / name)]
    beside = (*file.study.source.apply, *expected)
    plain = dict.fromkeys(str(PurePosixPath(name)) for name in beside)
    below = [(name, file.folder / name) for name in plain if _is_below(name)]
    for name, path in (*named, *below):
        if path.is_file():
            yield name, path


def _expected(file: StudyFile) -> Iterator[str]:
    """Files that say what workloads must print; a bundle is no place for large ones."""
    for workload in file.study.workloads:
        if workload.expected_file is not None:
            yield str(PurePosixPath(workload.expected_file))


def _may_be_carried(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _LARGEST_EXPECTED_BYTES


def _read(file: StudyFile) -> Iterator[str]:
    """Files that workloads read, and that nobody else makes."""
    for workload in file.study.workloads:
        if workload.stdin is not None and workload.stdin not in file.study.inputs:
            yield workload.stdin


def _is_below(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def expansion(study: Study) -> bytes:
    """Workloads and training of a study whose suite was taken in. Pure."""
    training = None if study.training is None else study.training.model_dump(exclude_unset=True)
    workloads = [workload.model_dump(exclude_unset=True) for workload in study.workloads]
    return json.dumps({"workloads": workloads, "training": training}, indent=1).encode()


def expanded_again(path: Path, study: Study) -> Study:
    """The study with the workloads and the training of such a file. InputError without one."""
    try:
        document = read_json(path.read_bytes())
        training = document["training"] and Training.model_validate(document["training"])
        workloads = [Workload.model_validate(table) for table in document["workloads"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError("the bundle does not say what its suite's tests are") from None
    changes = {"suite": None, "workloads": workloads, "training": training}
    return study.model_copy(update=changes)
