"""The results folder of a study: `.ensign/NAME/` beside the study file."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ensign.host.files import file_sha256, storage_errors, write_atomically
from ensign.host.regular_file import open_regular, read_json
from ensign.model.errors import FolderBusy, InputError
from ensign.model.quoting import quoted
from ensign.model.trials import Trial
from ensign.model.units import format_size
from ensign.store.trial_file import SUFFIX, from_bytes, to_bytes

Json = Mapping[str, object]
_LARGEST_TRIAL_BYTES = 256 << 20
_LARGEST_JSON_BYTES = 256 << 20
_DIGITS = 64


class StudyFolder:
    """Files only: trials are written once and never changed; plans and facts are JSON."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def beside(cls, study: Path, name: str) -> StudyFolder:
        """The folder of the study in that file."""
        return cls(study.resolve().parent / ".ensign" / name)

    def of_host(self, name: str) -> StudyFolder:
        """Results of one of the hosts that race the study."""
        return StudyFolder(self.root / "hosts" / name)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps a second run of the same study out. FolderBusy when there is one.

        StorageFailed where the folder cannot be made.
        """
        with storage_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            file = (self.root / "lock").open("w")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderBusy(f"another ensign is running this study ({self.root})") from None
            yield

    def write_json(self, name: str, value: Json) -> Path:
        """Writes `NAME.json` in one step."""
        path = self.json_file(name)
        return _write(path, json.dumps(value, indent=1, sort_keys=True).encode() + b"\n")

    def read_json(self, name: str) -> dict[str, object] | None:
        """The object in `NAME.json`, or None if there is none. InputError if it is broken."""
        path = self.json_file(name)
        try:
            with os.fdopen(open_regular(path), "rb") as file:
                data = file.read(_LARGEST_JSON_BYTES + 1)
            _require_small(data)
            value = read_json(data)
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as error:
            raise InputError(f"{path} is damaged ({error}); delete it and run again") from None
        if not isinstance(value, dict):
            raise InputError(f"{path} is damaged; delete it and run again")
        return value

    def json_file(self, name: str) -> Path:
        """Path of `NAME.json`, which may not be there."""
        return self.root / f"{name}.json"

    def write_trial(self, plan: str, trial: Trial) -> Path:
        """Writes a trial of that plan: to a temporary name, synced, renamed."""
        path = self._trials(plan) / trial_name(trial)
        data = to_bytes(trial)
        # Before the trial: one that is there has a hash, whenever this process is killed.
        TrialHashes(self._hashes(plan)).add(path.name, data)
        return _write(path, data)

    def remove_leftovers(self) -> None:
        """Removes what a killed run was writing; call it only under `locked`."""
        for path in self.root.glob("**/.*.part"):
            path.unlink(missing_ok=True)

    def done(self, plan: str) -> frozenset[tuple[int, str]]:
        """Round and workload of the trials that are there."""
        files = self.trial_files(plan)
        names = (path.name.removesuffix(SUFFIX).partition("-") for path in files)
        return frozenset(
            (int(round_index), workload)
            for round_index, _, workload in names
            if round_index.isdecimal()
        )

    def trials(self, plan: str) -> tuple[Trial, ...]:
        """All trials of that plan, without slices, in the order of rounds.

        InputError if a file is damaged.
        """
        return tuple(_read(path) for path in self.trial_files(plan))

    def named_trials(self, plan: str) -> Iterator[tuple[Path, Trial]]:
        """As `trials`, each with its file."""
        for path in self.trial_files(plan):
            yield path, _read(path)

    def changed_trials(self, plan: str) -> tuple[str, ...]:
        """Changes since it was written when it was raced, in sentences."""
        hashes = TrialHashes(self._hashes(plan))
        return hashes.differing(self.trial_files(plan)) if hashes.exist else ()

    def plans(self, prefix: str) -> frozenset[str]:
        """Names of the plans that have trials and begin like that."""
        return frozenset(path.parent.name for path in self.root.glob(f"trials/{prefix}*/*{SUFFIX}"))

    def confirmed_beside(self, prefix: str) -> int:
        """Number of other folders beside this one, of names that begin so, that were confirmed."""
        planned = self.root.parent.glob(f"{glob.escape(prefix)}*/confirm/*.json")
        return len({path.parents[1] for path in planned} - {self.root})

    def set_damaged_aside(self) -> tuple[str, ...]:
        """Renames trials that are not what was written, so that they are raced again.

        Their names; call it only under `locked`.
        """
        damaged = self.damaged()
        for path in damaged:
            path.rename(path.with_name(f"{path.name}.damaged"))
        return tuple(path.name for path in damaged)

    def damaged(self) -> tuple[Path, ...]:
        """Trials that are not what was written when they were raced."""
        hashed = self.root.glob("trials/*.sha256")
        return tuple(path for key in sorted(hashed) for path in self._damaged(key))

    def _damaged(self, hashes: Path) -> tuple[Path, ...]:
        trials = self.trial_files(hashes.name.removesuffix(".sha256"))
        return TrialHashes(hashes).changed(trials)

    def trial_count(self) -> int:
        """Number of trials of all plans that are there."""
        return sum(1 for _ in self.root.glob(f"trials/*/*{SUFFIX}"))

    def trial_files(self, plan: str) -> tuple[Path, ...]:
        """The files of all trials of that plan, as stored."""
        return tuple(sorted(self._trials(plan).glob(f"*{SUFFIX}")))

    def _trials(self, plan: str) -> Path:
        return self.root / "trials" / plan

    def _hashes(self, plan: str) -> Path:
        return self.root / "trials" / f"{plan}.sha256"


def trial_name(trial: Trial) -> str:
    """Name of its file."""
    return f"{trial.round_index:04d}-{trial.workload}{SUFFIX}"


def _require_small(data: bytes) -> None:
    if len(data) > _LARGEST_JSON_BYTES:
        raise ValueError(f"larger than {format_size(_LARGEST_JSON_BYTES)}")


def _read(path: Path) -> Trial:
    if path.stat().st_size > _LARGEST_TRIAL_BYTES:
        most = format_size(_LARGEST_TRIAL_BYTES)
        raise InputError(f"{path}: no trial is larger than {most}; delete the file and run again")
    try:
        return from_bytes(path.read_bytes())
    except InputError as error:
        raise InputError(f"{path}: {error}; delete the file and run again") from None


def _write(path: Path, data: bytes) -> Path:
    """In one step, into a folder that may not be there yet."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
    return path


class TrialHashes:
    """The file with the hash of each trial as it was raced, in the form of sha256sum.

    Of several lines for one trial the last one counts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def exist(self) -> bool:
        """True if there are any: an ensign of before wrote none."""
        return self._path.exists()

    def add(self, name: str, data: bytes) -> None:
        """Note the hash of a trial that is about to be written. StorageFailed."""
        line = f"{hashlib.sha256(data).hexdigest()}  {name}\n".encode()
        with storage_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a+b") as file:
                if file.tell() and not self._ends_whole():
                    line = b"\n" + line  # a killed process left half a line
                file.write(line)
                file.flush()
                os.fsync(file.fileno())

    def _ends_whole(self) -> bool:
        with self._path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"

    def differing(self, trials: Sequence[Path]) -> tuple[str, ...]:
        """Files that are not what was noted, in sentences. InputError."""
        noted = self._noted()
        return tuple(
            f"{quoted(trial.name)} is not the trial that was raced: its hash is another one"
            if trial.name in noted
            else f"{quoted(trial.name)} was not raced here: no hash of it was noted"
            for trial in trials
            if noted.get(trial.name) != file_sha256(trial)
        )

    def changed(self, trials: Sequence[Path]) -> tuple[Path, ...]:
        """Files of which another hash was noted. InputError."""
        noted = self._noted()
        return tuple(
            trial
            for trial in trials
            if trial.name in noted and noted[trial.name] != file_sha256(trial)
        )

    def _noted(self) -> dict[str, str]:
        try:
            lines = self._path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{self._path} is damaged ({error})") from None
        return {line[_DIGITS + 2 :]: line[:_DIGITS] for line in lines if len(line) > _DIGITS + 2}
