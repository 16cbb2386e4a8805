"""Calls of compilers, linkers and archivers, as the recorder saw them during a build."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """A file that a call wrote; `path` is absolute as the build saw it."""

    path: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class LinkInput:
    """A file that a link took, or that `objcopy` or `strip` changed, as it was just before.

    `kind` is `object`, `archive`, `thin` (an archive that names files) or `shared`; `members` are
    an archive's, as name and SHA-256.
    """

    path: str
    kind: str
    sha256: str
    members: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `argv` is what the build asked for, `ran` what was run after rewriting.

    `tool` is the role of the program (`cc`, `cxx`, `ld`, `ar`, `ranlib`, `nm`, `as`, `objcopy`,
    `strip`, `launcher` where ccache ran no compiler), `program` its path,
    `cwd` the folder it ran in; response files (`@file`) are expanded in both lists. `exit` is None
    where a signal ended it.
    """

    tool: str
    program: str
    argv: tuple[str, ...]
    ran: tuple[str, ...]
    cwd: str
    started_unix_ns: int
    wall_ns: int
    exit: int | None
    outputs: tuple[Output, ...]
    inputs: tuple[LinkInput, ...] = ()
