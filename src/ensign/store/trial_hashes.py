"""Hashes of trials, in the form of sha256sum, a line for each trial as it was raced."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from ensign.host.files import file_sha256, storage_errors
from ensign.model.errors import InputError
from ensign.model.quoting import quoted

_DIGITS = 64


class TrialHashes:
    """The file of them. Of several lines for one trial the last one counts."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def exist(self) -> bool:
        """Whether there are any: an ensign of before wrote none."""
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
        """Which of these files are not what was noted, in sentences. InputError."""
        try:
            lines = self._path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{self._path} is damaged ({error})") from None
        noted = {line[_DIGITS + 2 :]: line[:_DIGITS] for line in lines if len(line) > _DIGITS + 2}
        return tuple(
            f"{quoted(each.name)} is not the trial that was raced: its hash is another one"
            if each.name in noted
            else f"{quoted(each.name)} was not raced here: no hash of it was noted"
            for each in trials
            if noted.get(each.name) != file_sha256(each)
        )
