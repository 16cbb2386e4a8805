"""Outcomes of each build, and of its check."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

EventKind = Literal["started", "finished", "cached", "failed", "replaced"]


@dataclass(frozen=True, slots=True)
class BuildEvent:
    """A stage, or the source, started, finished, was found in the cache or failed.

    Or something in the cache was not what was put there, and is made again.

    `label` is the variant's name, or says what it is. `expected_s` is what earlier builds took,
    or a default; `elapsed_s` the time it took, 0 at the start; `text` says why it failed.
    """

    kind: EventKind
    label: str
    elapsed_s: float
    expected_s: float
    text: str = ""


OnEvent = Callable[[BuildEvent], None]


def ignore(event: BuildEvent) -> None:
    """Show nothing."""
    del event


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
        """True if a loader may map it."""
        return self.kind in LOADED

    @property
    def names(self) -> frozenset[str]:
        """Names by which a loader may ask for it."""
        return frozenset((self.path.rpartition("/")[2], self.soname)) - {""}


@dataclass(frozen=True, slots=True)
class MadeLibrary:
    """A shared library that a build made, whether it is kept or not."""

    path: str
    soname: str = ""

    @property
    def names(self) -> frozenset[str]:
        """Names by which a loader may ask for it."""
        return frozenset((self.path.rpartition("/")[2], self.soname)) - {""}


def identity(files: Sequence[BuiltFile], program_sha256: str) -> str:
    """One hash for all files that count: that of the program where it is the only one."""
    counted = sorted((file.path, file.sha256) for file in files if file.kind != "object")
    if len(counted) <= 1:
        return program_sha256
    return hashlib.sha256(json.dumps(counted).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ProfileCoverage:
    """Coverage of a profile: of a program's `functions` so many were `profiled` (PGO, BOLT).

    None where that is not known: not every compiler says it.
    """

    used_by: Literal["PGO", "BOLT"]
    functions: int | None = None
    profiled: int | None = None

    @property
    def said(self) -> str:
        """As a sentence."""
        if self.functions is None or self.profiled is None:
            return f"{self.used_by}: share of functions with a profile is unknown"
        share = self.profiled / self.functions if self.functions else 0.0
        counts = f"{self.profiled} of {self.functions}"
        return f"{self.used_by}: {counts} functions profiled ({share:.0%})"


class BuildStatus(StrEnum):
    """Outcome of a build: see `BuildFacts.status`."""

    BUILT = "built"
    CACHED = "cached"
    FAILED = "failed"
    LEFT_OUT = "left out"
    NOT_AS_ASKED = "not as asked"
    SAME = "same"


class CheckStatus(StrEnum):
    """Outcome of the check of a build."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class BuildError:
    """A tool's message when a build failed: a line of a file (0 and empty where it names none).

    `file` is relative to the source folder where it lies in that; `way_out` says what helps.
    """

    file: str
    line: int
    text: str
    way_out: str = ""

    @property
    def said(self) -> str:
        """The error with its place: `dc.c:64: call to undeclared function 'x'`."""
        line = f":{self.line}" if self.line else ""
        return f"{self.file}{line}: {self.text}" if self.file else self.text


@dataclass(frozen=True, slots=True)
class BuildFacts:
    """One variant as built.

    `status`: `left out`, nothing was tried; `not as asked`, built of other parts or with other
    flags; `same`, its loaded bytes are those of the variant `same_as`, which is raced for it.
    `flags` are the compile flags asked for, `link_flags` those at the link; `choices` the axis
    values. `build_s` is the time of the build itself, also when it came from the cache, with the
    collection of its profile, without its dependencies. Sizes are of the artifact: file, and all
    executable sections. `loadable_sha256` hashes the bytes that get loaded. `log_tail` has the last
    lines of a failed build, or the reason why one was left out. `evidence` says what the artifact
    shows of the flags. `check` is `passed`, `failed` or `not checked`; `check_failed` says what
    failed, `check_tail` has the last lines of the check's log then; `out` why it is not raced at
    all. `layouts` has the loadable hash of each relink, and `layout_kind` says in what they differ.
    `files` are all that count, the
    program first; records of earlier versions have none. `coverage` is how much of the program had
    a profile, for whom. `error` is what failed the build, where a tool said so.
    """

    variant: str
    choices: tuple[tuple[str, str], ...]
    compiler: str
    flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    status: BuildStatus
    build_s: float
    size_bytes: int
    text_bytes: int
    loadable_sha256: str
    log_path: str = ""
    log_tail: str = ""
    evidence: tuple[str, ...] = ()
    check: CheckStatus = CheckStatus.NOT_CHECKED
    check_failed: str = ""
    check_tail: str = ""
    out: str = ""
    layouts: tuple[str, ...] = ()
    layout_kind: str = ""
    files: tuple[BuiltFile, ...] = ()
    same_as: str = ""
    coverage: tuple[ProfileCoverage, ...] = ()
    error: BuildError | None = None

    @property
    def why_failed(self) -> str:
        """The error that failed it, or else how its command ended."""
        if self.error is not None:
            return self.error.said
        return next(reversed(self.log_tail.splitlines()), self.said)

    @property
    def why_and_way_out(self) -> str:
        """The same, and what helps where that is known."""
        way_out = "" if self.error is None else self.error.way_out
        return f"{self.why_failed}; {way_out}" if way_out else self.why_failed

    @property
    def why_and_log(self) -> str:
        """The cause of the failure, and the place of its log."""
        return f"{self.why_failed}; log: {self.log_path}" if self.log_path else self.why_failed

    @property
    def failure(self) -> str:
        """The cause of the failure, the place of its log, and the way out."""
        way_out = "" if self.error is None else self.error.way_out
        return f"{self.why_and_log}; {way_out}" if way_out else self.why_and_log

    @property
    def identity(self) -> str:
        """One hash for all files that count; that of the program where it is the only one."""
        return identity(self.files, self.loadable_sha256)

    @property
    def said(self) -> str:
        """The status in words: `built`, `same as NAME`."""
        return f"same as {self.same_as}" if self.same_as else self.status

    @property
    def bad(self) -> bool:
        """True if it was tried, and there is no build of it that may be used."""
        return self.status in (BuildStatus.FAILED, BuildStatus.NOT_AS_ASKED)

    @property
    def raced_as(self) -> str:
        """The variant that is raced for it: itself, or the one whose bytes it has."""
        return self.same_as or self.variant
