"""What ran: the files that were executed or mapped for execution in traced executions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RanFile:
    """One file of one traced execution.

    `path` is relative to the source folder for what the variant built (`built`), else absolute.
    `sha256` is of what gets loaded; empty where it could not be read. `made`: the execution wrote
    it itself. The tasks spent about `cpu_ns` in its code, as far as they were looked at.
    """

    path: str
    sha256: str
    built: bool
    soname: str = ""
    made: bool = False
    cpu_ns: int = 0

    @property
    def names(self) -> frozenset[str]:
        """By which a loader may have been asked for it."""
        return frozenset((self.path.rpartition("/")[2], self.soname)) - {""}


@dataclass(frozen=True, slots=True)
class RanOnce:
    """One traced execution of a variant; `not_judged` says what was not seen, or is empty."""

    variant: str
    workload: str
    files: tuple[RanFile, ...]
    not_judged: str = ""


@dataclass(frozen=True, slots=True)
class WhatRan:
    """A file that ran, once for all: the workloads and the variants that loaded it.

    `same` says whether it was the same file for all of these variants.
    """

    path: str
    built: bool
    variants: tuple[str, ...]
    workloads: tuple[str, ...]
    same: bool
