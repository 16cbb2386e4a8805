"""Files of a variant that count: its program, and all that the study keeps beside it. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["program", "library", "data", "object"]

LOADED = ("program", "library")


@dataclass(frozen=True, slots=True)
class BuiltFile:
    """One file; `path` is relative to the source folder.

    A `program` or `library` is an ELF file that can be loaded: `sha256` hashes what of it is, and
    `text_bytes` is its code. `data` is hashed whole; an `object` (archives, too) only ever gets
    linked, so it does not count.
    """

    path: str
    kind: Kind
    size_bytes: int
    text_bytes: int
    sha256: str
    soname: str = ""

    @property
    def loaded(self) -> bool:
        """Whether a loader may map it."""
        return self.kind in LOADED

    @property
    def names(self) -> frozenset[str]:
        """By which a loader may be asked for it."""
        return frozenset((self.path.rpartition("/")[2], self.soname)) - {""}


@dataclass(frozen=True, slots=True)
class MadeLibrary:
    """A shared library that a build made, whether it is kept or not."""

    path: str
    soname: str = ""

    @property
    def names(self) -> frozenset[str]:
        """By which a loader may be asked for it."""
        return frozenset((self.path.rpartition("/")[2], self.soname)) - {""}


def identity(files: Sequence[BuiltFile], program_sha256: str) -> str:
    """One hash for all files that count: that of the program where it is the only one."""
    counted = sorted((each.path, each.sha256) for each in files if each.kind != "object")
    if len(counted) <= 1:
        return program_sha256
    return hashlib.sha256(json.dumps(counted).encode()).hexdigest()
