"""The results folder of a study: `.ensign/NAME/` beside the study file."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ensign.host.files import storage_errors, write_atomically
from ensign.host.json_text import read_json
from ensign.model.errors import InputError
from ensign.model.trials import Trial
from ensign.store.trial_file import from_bytes, to_bytes

Json = Mapping[str, object]


class StudyFolder:
    """Files only: trials are written once and never changed; plans and facts are JSON."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def beside(cls, study: Path, name: str) -> StudyFolder:
        """The folder of the study in that file."""
        return cls(study.resolve().parent / ".ensign" / name)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps a second run of the same study out. InputError when there is one.

        StorageFailed where the folder cannot be made.
        """
        with storage_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            file = (self.root / "lock").open("w")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"another ensign is running this study ({self.root})") from None
            yield

    def write_json(self, name: str, value: Json) -> Path:
        """Writes `NAME.json` in one step."""
        path = self.json_file(name)
        return _write(path, json.dumps(value, indent=1, sort_keys=True).encode() + b"\n")

    def read_json(self, name: str) -> dict[str, object] | None:
        """The object in `NAME.json`, or None if there is none. InputError if it is broken."""
        path = self.json_file(name)
        try:
            value = read_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InputError(f"{path} is damaged ({error}); delete it and run again") from None
        if not isinstance(value, dict):
            raise InputError(f"{path} is damaged; delete it and run again")
        return value

    def json_file(self, name: str) -> Path:
        """Where `NAME.json` is, or would be."""
        return self.root / f"{name}.json"

    def write_trial(self, plan: str, trial: Trial) -> Path:
        """Writes a trial of that plan: to a temporary name, synced, renamed."""
        path = self._trials(plan) / f"{trial.round_index:04d}-{trial.workload}.parquet"
        return _write(path, to_bytes(trial))

    def remove_leftovers(self) -> None:
        """Removes what a killed run was writing; call it only under `locked`."""
        for path in self.root.glob("**/.*.part"):
            path.unlink(missing_ok=True)

    def done(self, plan: str) -> frozenset[tuple[int, str]]:
        """Round and workload of the trials that are there."""
        names = (path.stem.partition("-") for path in self._trials(plan).glob("*.parquet"))
        return frozenset((int(round_index), workload) for round_index, _, workload in names)

    def trials(self, plan: str) -> tuple[Trial, ...]:
        """All trials of that plan, without slices, in the order of rounds.

        InputError if a file is damaged.
        """
        read: list[Trial] = []
        for path in self.trial_files(plan):
            try:
                read.append(from_bytes(path.read_bytes(), with_slices=False))
            except InputError as error:
                raise InputError(f"{path}: {error}; delete the file and run again") from None
        return tuple(read)

    def plans(self, prefix: str) -> frozenset[str]:
        """Names of the plans that have trials and begin like that."""
        return frozenset(path.parent.name for path in self.root.glob(f"trials/{prefix}*/*.parquet"))

    def trial_files(self, plan: str) -> tuple[Path, ...]:
        """The files of all trials of that plan, as stored."""
        return tuple(sorted(self._trials(plan).glob("*.parquet")))

    def _trials(self, plan: str) -> Path:
        return self.root / "trials" / plan


def _write(path: Path, data: bytes) -> Path:
    """In one step, into a folder that may not be there yet."""
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
    return path
